package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// settings are the snapshot of a plan, as instances record it. Zero means no limit.
type settings struct {
	ConnectionLimit  int      `json:"connection_limit,omitempty"`
	StatementTimeout int      `json:"statement_timeout,omitempty"` // seconds
	SizeWarning      int      `json:"size_warning,omitempty"`      // megabytes
	ValidDays        int      `json:"valid_days,omitempty"`
	Extensions       []string `json:"extensions,omitempty"`
	Target           string   `json:"target,omitempty"`
	hosted.Deletion
}

func settingsOf(snapshot json.RawMessage) (settings, error) {
	return hosted.Recorded[settings](snapshot)
}

// Check implements check.Func.
func Check(plan check.Plan) (json.RawMessage, error) {
	var m settings
	err := hosted.ReadSettings(plan.Settings, &m.Deletion, []hosted.Number{
		{Name: "connection_limit", Max: 10000, Into: &m.ConnectionLimit,
			Remedy: "write how many connections a database takes, 1 to 10000, or leave it out for any number"},
		{Name: "statement_timeout", Max: 86400, Into: &m.StatementTimeout,
			Remedy: "write after how many seconds a statement ends, 1 to 86400, or leave it out for never"},
		{Name: "size_warning", Max: math.MaxInt32, Into: &m.SizeWarning,
			Remedy: "write the megabytes from which on users are warned, or leave it out for no warning"},
		{Name: "valid_days", Max: 3650, Into: &m.ValidDays,
			Remedy: "write for how many days a binding's password is valid, 1 to 3650, or leave it out for ever"},
	}, "extensions", "target")
	if err != nil {
		return nil, err
	}
	if m.Extensions, err = extensions(plan.Settings["extensions"]); err != nil {
		return nil, err
	}
	if v, ok := plan.Settings["target"]; ok {
		if m.Target, ok = v.(string); !ok || m.Target == "" {
			return nil, advice.For("target", "is not a name", "name the server that the plan's databases are made on, or "+
				"leave it out")
		}
	}
	return json.Marshal(m)
}

// maxExtensions and maxExtensionName bound the size of a snapshot.
const (
	maxExtensions    = 100
	maxExtensionName = 63
)

// extensions reads the list of extensions that users may ask for.
func extensions(v any) ([]string, error) {
	const how = "list names of extensions in letters, digits, - and _, each once, such as [pgcrypto, citext], or leave it out " +
		"for none"
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	var all []string
	for _, item := range list {
		name, isText := item.(string)
		if !isText || name == "" || len(name) > maxExtensionName || slices.Contains(all, name) ||
			strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			ok = false
			break
		}
		all = append(all, name)
	}
	if !ok || len(all) > maxExtensions {
		return nil, advice.For("extensions", "is not a list of extensions", how)
	}
	slices.Sort(all)
	return all, nil
}

// asked holds the parameters of a provision, an update, or a bind.
type asked struct {
	Extensions []string `json:"extensions"`
	Locale     string   `json:"locale"`
	Role       string   `json:"role"`
}

// roleReadOnly is the role of a binding that only reads.
const roleReadOnly = "read_only"

// A wantedInstance is an instance as the request describes it.
type wantedInstance struct {
	label    hosted.Label // of the owner role, without details
	settings settings
	details  details
	asked    asked
	locale   string
}

// wanted reads an instance's parameters and its plan, and asks the server whether it offers what they ask
// for. It changes nothing.
func (p *Provider) wanted(ctx context.Context, s *site, in provider.Instance) (w wantedInstance, err error) {
	m, err := settingsOf(in.Snapshot)
	if err != nil {
		return w, err
	}
	w = wantedInstance{
		label: hosted.Label{Tags: provider.TagsOf(in), PlanID: in.PlanID, Created: p.Now()}, settings: m,
	}
	w.details = details{Limit: m.ConnectionLimit, Warn: int64(m.SizeWarning) << 20, Operation: in.Operation.ID}
	if w.asked, err = hosted.Asked[asked](in.Parameters); err != nil {
		return w, err
	}
	for _, name := range w.asked.Extensions {
		if !slices.Contains(m.Extensions, name) {
			return w, provider.Failf("The plan does not allow an extension that was asked for. It allows: %s.",
				list(m.Extensions))
		}
	}
	if w.asked.Locale == "" && len(w.asked.Extensions) == 0 {
		return w, nil
	}
	has, err := s.Server.offers(ctx, w.asked.Locale, w.asked.Extensions)
	switch {
	case err != nil:
		return w, s.Explain(err)
	case w.asked.Locale != "" && has.locale == "":
		return w, provider.Failf("The database server has no such locale. Ask for another one, such as C or en-US-x-icu, or " +
			"for none.")
	}
	for _, name := range w.asked.Extensions {
		if !slices.Contains(has.extensions, name) {
			return w, provider.Failf("The database server has no extension %s that users may create. "+
				"Leave it out, or ask the operator of the service.", name)
		}
	}
	w.locale = has.locale
	return w, nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// configure returns the act that gives the database its settings.
func (w wantedInstance) configure(label hosted.Label) any {
	d := w.details
	d.Ready, label.PlanID = true, w.label.PlanID
	c := configure{label: d.text(label), limit: d.connections(), extensions: w.asked.Extensions}
	if w.settings.StatementTimeout > 0 {
		c.timeout = fmt.Sprintf("%ds", w.settings.StatementTimeout)
	}
	return c
}
