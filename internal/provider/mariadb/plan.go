package mariadb

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	jsonschema "github.com/longshore/longshore/internal/catalog/schema"
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

//go:embed settings.schema.json
var settingsText []byte

var readSettings = jsonschema.Settings[settings]("databases", settingsText)

// Check implements check.Func.
func Check(plan check.Plan) (json.RawMessage, error) {
	m, problems := readSettings(plan.Settings)
	if problems != nil {
		return nil, errors.Join(problems...)
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
	record record // the instance's first one
	limits limits
}

// want reads an instance's parameters and its plan, and asks the server whether it has the collation. It
// changes nothing.
func want(ctx context.Context, at *site, in provider.Instance) (wanted, error) {
	tags := provider.TagsOf(in)
	name := namesOf(tags).database
	w := wanted{record: record{
		name: name, instance: name, label: hosted.Label{Tags: tags, PlanID: in.PlanID, Created: at.Now()},
		details: details{Phase: making, Changed: in.Operation.ID, Collation: defaultCollation},
	}}
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
	w.record.details.Collation = a.Collation
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

// wantedBinding is a binding as the request describes it.
type wantedBinding struct {
	names              names
	record             record // the binding's first one
	password, verifier string
	limits             limits
	tls                bool
}

func wantBinding(at *site, b provider.Binding) (w wantedBinding, err error) {
	tags := hosted.BindingTags(b)
	w.names, w.tls = namesOf(tags), at.Access.TLS != hosted.TLSDisable
	w.record = record{
		name: w.names.login, instance: w.names.database,
		label:   hosted.Label{Tags: tags, PlanID: b.Instance.PlanID, Created: at.Now()},
		details: details{Phase: making, Role: roleAll},
	}
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
		w.record.details.Role = roleReadOnly
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
