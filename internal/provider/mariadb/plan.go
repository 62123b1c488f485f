package mariadb

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// limits hold for each account; zero is no limit.
type limits struct {
	Connections      int `json:"connection_limit,omitempty"`
	StatementTimeout int `json:"statement_timeout,omitempty"` // seconds
}

// settings are what instances record of their plan.
type settings struct {
	limits
	// RetainDays is how long a deleted database is retained; 0 to drop it at once.
	RetainDays int `json:"retain_days,omitempty"`
}

// settingsOf reads what an instance recorded of its plan.
func settingsOf(snapshot json.RawMessage) (m settings, err error) {
	if len(snapshot) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(snapshot, &m); err != nil {
		return m, fmt.Errorf("reading the recorded settings of the plan: %w", err)
	}
	return m, nil
}

// Check finds what is wrong with the settings of a plan. What instances record of
// it are its limits.
func Check(plan provider.Checked) (json.RawMessage, error) {
	var m settings
	err := hosted.ReadNumbers(plan.Settings, []hosted.Number{
		{Name: "connection_limit", Min: 1, Max: 10000, Into: &m.Connections,
			Remedy: "write how many connections a binding may have, 1 to 10000, or leave it out for any number"},
		{Name: "statement_timeout", Min: 1, Max: 86400, Into: &m.StatementTimeout,
			Remedy: "write after how many seconds a statement ends, 1 to 86400, or leave it out for never"},
		hosted.RetainDays(&m.RetainDays),
	}, hosted.OnDelete)
	if err == nil {
		err = hosted.CheckDeletion(plan.Settings, m.RetainDays)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// Roles of a binding.
const (
	roleAll      = "read_write"
	roleReadOnly = "read_only"
)

// asked are the parameters of a provision and of a bind. Their schemas have refused
// all else.
type asked struct {
	Collation string `json:"collation"`
	Role      string `json:"role"`
}

func parameters(raw json.RawMessage) (a asked, err error) {
	if len(raw) > 0 && json.Unmarshal(raw, &a) != nil {
		return a, provider.Failf("The parameters are not those that the plan describes. Look at its schema.")
	}
	return a, nil
}

// defaultCollation compares text as people read it, in every version.
const defaultCollation = "utf8mb4_unicode_ci"

// wanted is what an instance is to be.
type wanted struct {
	names     names
	tags      provider.Tags
	planID    string
	operation string
	now       time.Time
	collation string
	limits    limits
}

// wanted reads what is asked for, and checks it with the server before anything is
// touched.
func (p *Provider) wanted(ctx context.Context, s *site, in provider.Instance) (wanted, error) {
	tags := provider.TagsOf(in)
	w := wanted{
		names: namesOf(tags), tags: tags, planID: in.PlanID, operation: in.Operation.ID, now: p.now(), collation: defaultCollation,
	}
	m, err := settingsOf(in.Snapshot)
	if err != nil {
		return w, err
	}
	w.limits = m.limits
	if in.Source != nil && in.Source.Retained == nil {
		return w, provider.Failf("A MariaDB database cannot be made from another one. Order an empty one, and copy the data.")
	}
	a, err := parameters(in.Parameters)
	if err != nil || a.Collation == "" {
		return w, err
	}
	if in.Operation.Kind == provider.KindUpdate {
		return w, provider.Failf("The collation of a database stays as it is. Leave it out, and change that of its tables.")
	}
	w.collation = a.Collation
	has := strings.Trim(a.Collation, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
	if has {
		if has, err = s.Server.collation(ctx, a.Collation); err != nil {
			return w, s.Explain(err)
		}
	}
	if !has {
		return w, provider.Failf("The database server has no such collation of utf8mb4. Ask for another one, such as %s, or for none.",
			defaultCollation)
	}
	return w, nil
}

// record is the instance's, made now.
func (w wanted) record(phase string) record {
	return record{
		name: w.names.instance, instance: w.names.instance,
		label: hosted.Label{Tags: w.tags, PlanID: w.planID, Created: w.now.UTC()},
		facts: facts{Phase: phase, Changed: w.operation, Collation: w.collation},
	}
}

// wantedBinding is what a binding is to be.
type wantedBinding struct {
	names              names
	tags, instance     provider.Tags
	planID             string
	now                time.Time
	readOnly           bool
	password, verifier string
	limits             limits
	tls                bool
}

func (p *Provider) wantedBinding(b provider.Binding) (w wantedBinding, err error) {
	if len(b.Secret) == 0 {
		return w, errors.New("a bind needs the binding's secret")
	}
	tags := provider.BindingTagsOf(b)
	w = wantedBinding{
		names: namesOf(tags), tags: tags, instance: provider.TagsOf(b.Instance), planID: b.Instance.PlanID, now: p.now(),
	}
	m, err := settingsOf(b.Instance.Snapshot)
	if err != nil {
		return w, err
	}
	w.limits = m.limits
	a, err := parameters(b.Parameters)
	if err != nil {
		return w, err
	}
	w.readOnly = a.Role == roleReadOnly
	if w.password, err = hosted.Password(b.Secret, w.names.login); err != nil {
		return w, err
	}
	w.verifier = verifierOf(w.password)
	return w, nil
}

// verifierOf is what the server keeps of a password: what it is told in place of it.
func verifierOf(password string) string {
	once := sha1.Sum([]byte(password))
	twice := sha1.Sum(once[:])
	return "*" + strings.ToUpper(hex.EncodeToString(twice[:]))
}

func (w wantedBinding) role() string {
	if w.readOnly {
		return roleReadOnly
	}
	return roleAll
}

// record is the binding's, made now.
func (w wantedBinding) record() record {
	return record{
		name: w.names.login, instance: w.names.instance,
		label: hosted.Label{Tags: w.tags, PlanID: w.planID, Created: w.now.UTC()},
		facts: facts{Phase: making, Role: w.role()},
	}
}

// over is the record in place of one that stands at the account already.
func (w wantedBinding) over(r record) record {
	fresh := w.record()
	r.label, r.facts = fresh.label, fresh.facts
	return r
}
