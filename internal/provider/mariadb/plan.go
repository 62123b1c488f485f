package mariadb

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// limits apply to each account; zero means no limit.
type limits struct {
	Connections      int `json:"connection_limit,omitempty"`
	StatementTimeout int `json:"statement_timeout,omitempty"` // seconds
}

// settings are the snapshot of a plan, as instances record it.
type settings struct {
	limits
	hosted.Deletion
}

// Check implements check.Func.
func Check(plan check.Plan) (json.RawMessage, error) {
	var m settings
	if err := hosted.ReadSettings(plan.Settings, &m.Deletion, []hosted.Number{
		{Name: "connection_limit", Min: 1, Max: 10000, Into: &m.Connections,
			Remedy: "write how many connections a binding may have, 1 to 10000, or leave it out for any number"},
		{Name: "statement_timeout", Min: 1, Max: 86400, Into: &m.StatementTimeout,
			Remedy: "write after how many seconds a statement ends, 1 to 86400, or leave it out for never"},
	}); err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

// The roles that a binding may have.
const (
	roleAll      = "read_write"
	roleReadOnly = "read_only"
)

// asked holds the parameters of a provision or a bind.
type asked struct {
	Collation string `json:"collation"`
	Role      string `json:"role"`
}

// defaultCollation compares text as people expect, and exists in every version.
const defaultCollation = "utf8mb4_unicode_ci"

// wanted is an instance as the request describes it.
type wanted struct {
	tags      provider.Tags
	planID    string
	operation string
	now       time.Time
	collation string
	limits    limits
}

// wanted reads an instance's parameters and its plan, and asks the server whether it has the collation. It
// changes nothing.
func (p *Provider) wanted(ctx context.Context, at *site, in provider.Instance) (wanted, error) {
	w := wanted{tags: provider.TagsOf(in), planID: in.PlanID, operation: in.Operation.ID, now: p.Now(),
		collation: defaultCollation}
	m, err := hosted.Recorded[settings](in.Snapshot)
	if err != nil {
		return w, err
	}
	w.limits = m.limits
	a, err := hosted.Asked[asked](in.Parameters)
	if err != nil || a.Collation == "" {
		return w, err
	}
	if in.Operation.Kind == operation.Update {
		return w, provider.Failf("The collation of a database stays as it is. Leave it out, and change that of its tables.")
	}
	w.collation = a.Collation
	has := strings.Trim(a.Collation, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
	if has {
		if has, err = at.Server.collation(ctx, a.Collation); err != nil {
			return w, at.Explain(err)
		}
	}
	if !has {
		return w, provider.Failf("The database server has no such collation of utf8mb4. Ask for another one, such as %s, or "+
			"for none.",
			defaultCollation)
	}
	return w, nil
}

// record returns the record of an instance that is about to be made.
func (w wanted) record() record {
	name := namesOf(w.tags).database
	return record{
		name: name, instance: name, label: hosted.Label{Tags: w.tags, PlanID: w.planID, Created: w.now},
		details: details{Phase: making, Changed: w.operation, Collation: w.collation},
	}
}

// wantedBinding is a binding as the request describes it.
type wantedBinding struct {
	names              names
	tags               provider.Tags
	planID             string
	now                time.Time
	role               string
	password, verifier string
	limits             limits
	tls                bool
}

func (p *Provider) wantedBinding(b provider.Binding) (w wantedBinding, err error) {
	tags := hosted.BindingTags(b)
	w = wantedBinding{names: namesOf(tags), tags: tags, planID: b.Instance.PlanID, now: p.Now(), role: roleAll}
	m, err := hosted.Recorded[settings](b.Instance.Snapshot)
	if err != nil {
		return w, err
	}
	w.limits = m.limits
	a, err := hosted.Asked[asked](b.Parameters)
	if err != nil {
		return w, err
	}
	if a.Role == roleReadOnly {
		w.role = roleReadOnly
	}
	if w.password, err = hosted.Password(b.Secret, w.names.login); err != nil {
		return w, err
	}
	w.verifier = verifierOf(w.password)
	return w, nil
}

// verifierOf returns the hash that the server stores for a password. The server never gets the password
// itself.
func verifierOf(password string) string {
	once := sha1.Sum([]byte(password))
	twice := sha1.Sum(once[:])
	return "*" + strings.ToUpper(hex.EncodeToString(twice[:]))
}

// record returns the record of a binding that is about to be made.
func (w wantedBinding) record() record {
	return record{
		name: w.names.login, instance: w.names.database,
		label:   hosted.Label{Tags: w.tags, PlanID: w.planID, Created: w.now},
		details: details{Phase: making, Role: w.role},
	}
}

// over returns the new record to write over one that the account already has.
func (w wantedBinding) over(r record) record {
	fresh := w.record()
	fresh.serial, fresh.version = r.serial, r.version
	return fresh
}
