// Package provider is the contract for making what a platform asked for:
// provision, update, deprovision, bind and unbind as idempotent steps, and the
// inventory of all that exists. It knows neither HTTP nor the store. The
// adapters stand beside it (provider/demo); provider/providertest is the suite
// that each of them passes.
package provider

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// A Provider makes things. Every method is one step: it starts or looks at the
// work, never waits for it, and may be called any number of times for one
// operation, also when an earlier call has done its work but its answer was
// lost, and also by two callers at once.
//
// A step answers with a Status, with a *Failure (the operation has failed for
// good), or with any other error, which is taken as passing: the step is
// repeated until the operation's deadline.
//
// Nothing that is not Ours is ever changed; the step then fails and says so.
type Provider interface {
	// Provision makes the instance. What is ours of another incarnation is
	// deleted before anything new is made. "Exists and is ours" is success.
	Provision(ctx context.Context, in Instance) (Status, error)

	// Update makes an existing instance be as in says. A failed update leaves
	// the instance as it was.
	Update(ctx context.Context, in Instance) (Status, error)

	// Deprovision removes the instance, whatever its incarnation, and all that
	// was made for it except its bindings, which are unbound before. Done
	// means observed to be absent. "Was never there" is success. In has no
	// parameters: a deletion must work when they cannot be decrypted. What is
	// needed of them is recorded with what is made.
	Deprovision(ctx context.Context, in Instance) (Status, error)

	// Bind makes the binding's own principal. Done carries the Grant, the same
	// one each time it is called for the same operation.
	Bind(ctx context.Context, b Binding) (Status, error)

	// Unbind removes the principal, whatever its incarnation, and all that was
	// made for the binding. Done means observed to be absent. Neither b nor its
	// instance has parameters, nor b a secret, as in Deprovision.
	Unbind(ctx context.Context, b Binding) (Status, error)
}

// An Inventory lists everything that a provider holds, also what no record
// knows of.
type Inventory interface {
	// List reads one page of what exists, in no promised order. Cursor is
	// empty for the first page, then the returned next; next is empty at the
	// end. It changes nothing.
	List(ctx context.Context, cursor string) (page []Holding, next string, err error)
}

// A Holding is one thing in the inventory.
type Holding struct {
	Name string
	Tags Tags
	// Created is when it was made, UTC.
	Created time.Time
	// PlanID is the plan that it is of, where the thing itself tells.
	PlanID string
}

// A Kind is what an operation does.
type Kind string

// The kinds. Their values are also what users name in messages.
const (
	KindProvision   Kind = "provision"
	KindUpdate      Kind = "update"
	KindDeprovision Kind = "deprovision"
	KindBind        Kind = "bind"
	KindUnbind      Kind = "unbind"
)

// An Operation is what a step belongs to.
type Operation struct {
	// ID is the same in every step of one operation and in no other: use it
	// as the idempotency token of calls to the cloud.
	ID   string
	Kind Kind
	// Started is when the platform asked for it, UTC.
	Started time.Time
	// Synchronous says that the platform waits for the answer, a few seconds
	// at most.
	Synchronous bool
}

// An Instance is all that a provider is told of a service instance.
type Instance struct {
	Platform string // the platform's immutable id
	ID       string // the platform's id of the instance, any characters
	// Incarnation is the id of the operation that created this instance. An
	// id may be used again after a deletion; its incarnation differs.
	Incarnation string
	ServiceID   string
	PlanID      string
	Operation   Operation
	// Parameters are the user's, a JSON object; numbers keep their digits. Nil
	// if there are none, and in a deletion.
	Parameters json.RawMessage
	// Settings is what the operator fixed in the plan; nil when the plan has
	// left the catalog.
	Settings map[string]any
}

// A Binding is all that a provider is told of a service binding.
type Binding struct {
	Instance    Instance // its Operation is the binding's operation
	ID          string
	Incarnation string          // the operation that created the binding
	AppGUID     string          // empty for a service key
	Route       string          // the route to forward, if one is bound
	Parameters  json.RawMessage // as the instance's
	// Secret is 32 random bytes, chosen and stored before the first step and
	// the same in each: derive generated passwords from it, so that a repeated
	// Bind gives the same credentials. Nil when unbinding.
	Secret []byte
}

// String names the instance and keeps its parameters out of logs.
func (in Instance) String() string {
	return fmt.Sprintf("instance %q of %q", in.ID, in.Platform)
}

// GoString keeps the parameters out of %#v.
func (in Instance) GoString() string { return in.String() }

// LogValue keeps the parameters out of structured logs.
func (in Instance) LogValue() slog.Value { return slog.StringValue(in.String()) }

// String names the binding and keeps its secret and parameters out of logs.
func (b Binding) String() string { return fmt.Sprintf("binding %q of %v", b.ID, b.Instance) }

// GoString keeps the secret out of %#v.
func (b Binding) GoString() string { return b.String() }

// LogValue keeps the secret out of structured logs.
func (b Binding) LogValue() slog.Value { return slog.StringValue(b.String()) }

// A Status is how far a step has come.
type Status struct {
	Done bool
	// Percent is 0 to 100, a hint for people.
	Percent int
	// Description is shown to the platform's user; no secrets.
	Description string
	// After is when to ask again; zero leaves it to the caller.
	After time.Duration
	// Grant is what Bind gives when it is done.
	Grant *Grant
}

// LogValue keeps the Grant out of slog, whose JSON handler would marshal it.
func (s Status) LogValue() slog.Value {
	return slog.GroupValue(slog.Bool("done", s.Done), slog.Int("percent", s.Percent),
		slog.String("description", s.Description), slog.Duration("after", s.After))
}

// A Grant is what a binding gives an application. It holds secrets: it is
// stored sealed and never logged.
type Grant struct {
	Credentials     map[string]any `json:"credentials,omitempty"`
	SyslogDrainURL  string         `json:"syslog_drain_url,omitempty"`
	RouteServiceURL string         `json:"route_service_url,omitempty"`
	VolumeMounts    []VolumeMount  `json:"volume_mounts,omitempty"`
	Endpoints       []Endpoint     `json:"endpoints,omitempty"`
	ExpiresAt       time.Time      `json:"expires_at,omitzero"`
	RenewBefore     time.Time      `json:"renew_before,omitzero"`
}

// String keeps a Grant out of logs, as a value and by its pointer.
func (Grant) String() string { return "[redacted grant]" }

// GoString keeps a Grant out of %#v.
func (g Grant) GoString() string { return g.String() }

// LogValue keeps a Grant out of slog, whose JSON handler would marshal it.
func (g Grant) LogValue() slog.Value { return slog.StringValue(g.String()) }

// A VolumeMount is in the form of version 2.10 and later (BIND-34).
type VolumeMount struct {
	Driver       string       `json:"driver"`
	ContainerDir string       `json:"container_dir"`
	Mode         string       `json:"mode"`        // r or rw
	DeviceType   string       `json:"device_type"` // shared
	Device       VolumeDevice `json:"device"`
}

// A VolumeDevice names what is mounted.
type VolumeDevice struct {
	VolumeID    string         `json:"volume_id"`
	MountConfig map[string]any `json:"mount_config,omitempty"`
}

// An Endpoint is a network address that the application may reach (BIND-26).
type Endpoint struct {
	Host     string   `json:"host"`
	Ports    []string `json:"ports"`
	Protocol string   `json:"protocol,omitempty"` // tcp unless set
}

// A Failure ends an operation for good.
type Failure struct {
	// Message is shown to the platform's user: what went wrong and what to
	// do, no internals, no secrets.
	Message string
	// InstanceUsable and UpdateRepeatable say more of a failed update or
	// deprovision (ERR-10); nil is not sent and means true.
	InstanceUsable   *bool
	UpdateRepeatable *bool
}

func (f *Failure) Error() string { return f.Message }

// Failf makes a Failure from a format.
func Failf(format string, args ...any) *Failure {
	return &Failure{Message: fmt.Sprintf(format, args...)}
}

// Tags are on everything that is made, so that it can be found from the ids
// alone.
type Tags struct {
	Platform    string `json:"platform"`
	Instance    string `json:"instance"`
	Binding     string `json:"binding,omitempty"` // empty on what belongs to the instance
	Incarnation string `json:"incarnation"`
}

// TagsOf are the tags of what is made for an instance.
func TagsOf(in Instance) Tags {
	return Tags{Platform: in.Platform, Instance: in.ID, Incarnation: in.Incarnation}
}

// BindingTagsOf are the tags of what is made for a binding.
func BindingTagsOf(b Binding) Tags {
	return Tags{Platform: b.Instance.Platform, Instance: b.Instance.ID, Binding: b.ID, Incarnation: b.Incarnation}
}

// SameIDs reports whether both name the same platform, instance and binding,
// whatever their incarnation.
func (t Tags) SameIDs(o Tags) bool {
	t.Incarnation, o.Incarnation = "", ""
	return t == o
}

// Name derives the name of a thing from the ids it is made for: prefix, role
// and a hash over the length-prefixed ids, so that two platforms with one id,
// or ids that read the same when joined, never meet. It holds lower-case
// letters, digits and hyphens only. It panics on a prefix or role that cannot
// be part of a name, which no input can cause.
func Name(prefix, role string, t Tags) string {
	for _, s := range []string{prefix, role} {
		if s == "" || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			panic(fmt.Sprintf("name part %q is not of a-z, 0-9 and -", s))
		}
	}
	h := sha256.New()
	for _, id := range []string{t.Platform, t.Instance, t.Binding} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(id)))
		h.Write(n[:])
		h.Write([]byte(id))
	}
	sum := base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:16])
	return prefix + "-" + role + "-" + sum
}
