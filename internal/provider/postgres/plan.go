package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog/schema"
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

//go:embed settings.schema.json
var settingsText []byte

var readSettings = schema.Settings[settings]("databases", settingsText)

// Check implements check.Func.
func Check(plan check.Plan) (json.RawMessage, error) {
	m, problems := readSettings(plan.Settings)
	if problems != nil {
		return nil, errors.Join(problems...)
	}
	slices.Sort(m.Extensions)
	return json.Marshal(m)
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
