// Package provider is the contract for making what a platform asked for:
// provision, update, deprovision, bind and unbind as idempotent steps, and the
// inventory of all that exists. It knows neither HTTP nor the store. The
// adapters stand in internal/provider; test/providertest is the suite
// that each of them passes.
package provider

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider/grants"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/secret"
)

// A Provider makes things. Every method is one step: it starts or looks at the
// work, never waits for it, and may be called any number of times for one
// operation, also when an earlier call has done its work but its answer was
// lost. One caller runs it at a time; if that caller dies midway, another may
// follow while the dead one's last call is still on its way.
//
// A step answers with a Status, with a *Failure (the operation has failed for
// good), or with any other error, which is taken as passing: the step is
// repeated until the operation's deadline.
//
// Ours means that the tags match: broker, platform, ids and incarnation. Names derive
// from all of these (Name): two lives of one id share nothing. What has the name and
// other tags is somebody else's: the step leaves it as it is, fails and says so.
//
// Before it trusts an absence, a step proves that it talks to the target whose
// identity is recorded, unless the provider is an Identifier; otherwise it returns a
// passing error.
type Provider interface {
	// Provision makes the instance. "Exists and is ours" is success.
	Provision(ctx context.Context, in Instance) (Status, error)

	// Update makes an existing instance be as in says. A failed update leaves
	// the instance as it was.
	Update(ctx context.Context, in Instance) (Status, error)

	// Deprovision removes the instance and all that was made for it except its
	// bindings, which are unbound before. Done means observed to be absent. "Was never there" is success. In has no
	// parameters: a deletion must work when they cannot be decrypted. What is
	// needed of them is recorded with what is made. What a plan has be kept for a time is
	// not removed before: see Adopter.
	Deprovision(ctx context.Context, in Instance) (Status, error)

	// Bind makes the binding's own principal. Done carries the Grant, the same
	// one each time it is called for the same operation.
	Bind(ctx context.Context, b Binding) (Status, error)

	// Unbind removes the principal and all that was made for the binding. Done means observed to be absent. Neither b nor its
	// instance has parameters, nor b a secret, as in Deprovision.
	Unbind(ctx context.Context, b Binding) (Status, error)
}

// An Identifier is a Provider whose targets are proven by its caller, before each step and
// apart from it. A provider that has connections proves a target on the very one that it
// then uses, and is none.
type Identifier interface {
	// Identify asks the target of the instance who it is. Without a name in in.Target it
	// chooses one. It changes nothing.
	Identify(ctx context.Context, in Instance) (Target, error)
}

// A Refuser is a Provider whose plans may refuse a deletion, such as that of what is
// not empty.
type Refuser interface {
	// Refuses looks whether Deprovision would be refused, and changes nothing. It is
	// asked before the first binding is removed. A *Failure that is Untouched refuses.
	// Any other error is passing.
	Refuses(ctx context.Context, in Instance) error
}

// An Inventory lists everything that a provider holds, also what no record
// knows of.
type Inventory interface {
	// List reads one page of what exists, in no promised order. Cursor is
	// empty for the first page, then the returned next; next is empty at the
	// end. It lists nothing of another broker and changes nothing. A target
	// that cannot be reached is an error, never an empty page: beside the error
	// stand what was listed, and a next that goes on with the next target. An
	// error beside no next, or the same one, ends the provider's part of the sweep.
	List(ctx context.Context, cursor string) (page []Holding, next string, err error)
}

// A Quarantiner can put a thing out of use without deleting it: logins are
// locked, keys made inactive, the thing is tagged. An Inventory may implement
// it. Repeating either is success, and so is a thing that is gone or of another
// incarnation, which is left as it is.
type Quarantiner interface {
	Quarantine(ctx context.Context, h Holding) error
	// Release puts the thing into use again as it was before.
	Release(ctx context.Context, h Holding) error
}

// An Adopter is a Quarantiner whose instances can be retained, which is a quarantine with
// a date, and undeleted.
type Adopter interface {
	Quarantiner
	// Adopt has the instance's thing that h names be of the owner in h.Tags, if it is of
	// the former owner: it rewrites the label, conditional on what that said, and nothing
	// else. If it is of that owner already, that is success; a *Failure says that it is
	// not there, or is somebody else's. It stays in quarantine.
	Adopt(ctx context.Context, h Holding, former Tags) error
}

// A Holding is one thing in the inventory.
type Holding struct {
	secret.Holder
	Name string `json:"name"`
	Tags Tags   `json:"tags"`
	// Created is when it was made, UTC.
	Created time.Time `json:"created"`
	// PlanID is the plan that it is of, where the thing itself tells.
	PlanID string `json:"plan_id,omitempty"`
	// Target and State are what its deletion needs beside the ids, as an
	// Instance or Binding would carry them.
	Target Target `json:"target,omitzero"`
	State  State  `json:"state,omitzero"`
	// Epoch is the one that the target is at, as List saw it; for Quarantine and
	// Release the one that it has been at, as in an Instance.
	Epoch target.Epoch `json:"epoch,omitzero"`
	// RetainedUntil says that it is retained, and for how long: its tags are those
	// of the instance that was deleted. Zero on what is not retained.
	RetainedUntil time.Time `json:"retained_until,omitzero"`
}

// A Target is the place where things are made: an account, a database server.
// The operator's rules choose it at provision, by broker, platform or plan;
// users never do. It is recorded with the instance. How to reach it (role,
// secret, endpoint) is looked up by its name in today's settings.
type Target struct {
	Name string `json:"name,omitempty"`
	// Identity is what the target itself answers when asked who it is: an
	// account's id, or a random id that this broker wrote into a server.
	Identity string `json:"identity,omitempty"`
}

// State is what a provider remembers of an instance or a binding, at most
// limits.State bytes. It is stored sealed, is committed before the next step
// runs, outlives operations, and is dropped with the record. The zero State is
// none.
type State struct {
	secret.Holder
	// Format is the provider's own version of Data.
	Format int          `json:"format,omitempty"`
	Data   secret.Bytes `json:"data,omitempty"`
}

// Encode is what ParseState reads: nil for the zero State.
func (s State) Encode() []byte {
	if s.Format == 0 && len(s.Data) == 0 {
		return nil
	}
	return append(binary.AppendUvarint(nil, uint64(s.Format)), s.Data...)
}

// ParseState reads what Encode wrote.
func ParseState(raw []byte) (State, error) {
	if len(raw) == 0 {
		return State{}, nil
	}
	format, n := binary.Uvarint(raw)
	if n <= 0 {
		return State{}, errors.New("a provider's state has no format")
	}
	return State{Format: int(format), Data: raw[n:]}, nil
}

// StateOf is a state of a format, whose data is JSON.
func StateOf(format int, data any) *State {
	raw, _ := json.Marshal(data) // texts, numbers and times
	return &State{Format: format, Data: raw}
}

// Read reads what StateOf has written; of no state, it reads nothing. The state of a later
// program is an error that passes: a deployment is under way.
func (s State) Read(format int, into any) error {
	switch s.Format {
	case 0:
		return nil
	case format:
		if err := json.Unmarshal(s.Data, into); err != nil {
			return fmt.Errorf("reading a provider's state: %w", err)
		}
		return nil
	}
	return fmt.Errorf("a provider's state has format %d, and this program knows %d", s.Format, format)
}

// A Place is where an instance was ordered, for tags that people read. Each
// member may be empty, and may hold any characters.
type Place struct {
	Organization string `json:"organization,omitempty"` // its id
	Space        string `json:"space,omitempty"`        // its id, or the namespace
	InstanceName string `json:"instance_name,omitempty"`
}

// A Source is the instance that another one is to be restored from. The commit
// of each step checks that it is unchanged and ready.
type Source struct {
	secret.Holder
	Platform    string          `json:"platform"`
	ID          string          `json:"id"`
	Incarnation string          `json:"incarnation"`
	Origin      Origin          `json:"origin,omitzero"` // as the instance's
	Snapshot    json.RawMessage `json:"snapshot,omitempty"`
	Target      Target          `json:"target,omitzero"`
	State       State           `json:"state,omitzero"`
}

// Tags are those of the source, to whoever restores from it.
func (s Source) Tags(broker string) Tags {
	return Tags{Broker: broker, Platform: s.Platform, Instance: s.ID, Incarnation: s.Incarnation, Origin: s.Origin}
}

// An Operation is what a step belongs to.
type Operation struct {
	// ID is the same in every step of one operation and in no other: use it
	// as the idempotency token of calls to the cloud.
	ID   string         `json:"id"`
	Kind operation.Kind `json:"kind"`
	// Started is when the platform asked for it, UTC.
	Started time.Time `json:"started"`
	// Deadline is when it fails unless it is done; zero if that is not known.
	Deadline time.Time `json:"deadline,omitzero"`
	// Synchronous says that the platform waits for the answer, a few seconds
	// at most.
	Synchronous bool `json:"synchronous,omitempty"`
}

// An Instance is all that a provider is told of a service instance. Its JSON is
// what package remote sends: it holds secrets, and is never stored or logged.
type Instance struct {
	secret.Holder
	// Broker is the broker's own random identity: two brokers in one account
	// never take each other's things for theirs.
	Broker   string `json:"broker,omitempty"`
	Platform string `json:"platform"` // the platform's immutable id
	ID       string `json:"id"`       // the platform's id of the instance, any characters
	// Incarnation is the id of the operation that created this instance. An
	// id may be used again after a deletion; its incarnation differs.
	Incarnation string `json:"incarnation"`
	// Origin is set for an instance that was undeleted: what it has was made for another
	// one. A provision of it finds that, and makes nothing anew.
	Origin    Origin    `json:"origin,omitzero"`
	ServiceID string    `json:"service_id"`
	PlanID    string    `json:"plan_id"`
	Operation Operation `json:"operation"`
	// Parameters are the user's, a JSON object; numbers keep their digits. Nil
	// if there are none, and in a deletion.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Settings is what the operator fixed in the plan; nil when the plan has
	// left the catalog. Its numbers are of any type that a decoder of YAML or
	// JSON gives, json.Number included.
	Settings map[string]any `json:"settings"`
	// Snapshot is what the plan meant when the instance was made or last moved to
	// another plan or maintenance version, as Check gave it; in an update what it is
	// to mean, and Former what it meant before. Never addresses or secrets.
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
	Former   json.RawMessage `json:"former,omitempty"`
	// Maintenance is the version of the plan's maintenance_info that the
	// instance is at, or is to be at.
	Maintenance string `json:"maintenance,omitempty"`
	Place       Place  `json:"place,omitzero"`
	Target      Target `json:"target,omitzero"`
	// Epoch is the latest one that the target has said to be at: a step that finds it
	// at an earlier one, or on another line, changes nothing (Epoch.Check). Zero if
	// nothing is known of it, or for a provider without epochs.
	Epoch target.Epoch `json:"epoch,omitzero"`
	// State is the instance's. A step of a binding reads it and cannot
	// change it.
	State State `json:"state,omitzero"`
	// Unfinished says in a deprovision that the instance never was ready: nobody has
	// used it.
	Unfinished bool `json:"unfinished,omitempty"`
	// Source is set for a provision that restores another instance.
	Source *Source `json:"source,omitempty"`
}

// A Binding is all that a provider is told of a service binding.
type Binding struct {
	secret.Holder
	Instance    Instance        `json:"instance"` // its Operation is the binding's operation
	ID          string          `json:"id"`
	Incarnation string          `json:"incarnation"`          // the operation that created the binding
	AppGUID     string          `json:"app_guid,omitempty"`   // empty for a service key
	Route       string          `json:"route,omitempty"`      // the route to forward, if one is bound
	Parameters  json.RawMessage `json:"parameters,omitempty"` // as the instance's
	// Secret is 32 random bytes, chosen and stored before the first step and
	// the same in each: derive generated passwords from it, so that a repeated
	// Bind gives the same credentials. Nil when unbinding.
	Secret secret.Bytes `json:"secret"`
	// State is the binding's own.
	//
	// A secret that the cloud chooses and shows once takes two steps: the first
	// makes it and returns it as State, not done; the next finds it in State,
	// verifies that it works and that it is the only one, and is done with the
	// Grant and a State that no longer holds it. A secret that is not in State
	// was never recorded: the step revokes it.
	State State `json:"state,omitzero"`
}

// A Status is how far a step has come.
type Status struct {
	secret.Holder
	Done bool `json:"done,omitempty"`
	// Percent is 0 to 100, a hint for people.
	Percent int `json:"percent,omitempty"`
	// Description is shown to the platform's user; no secrets.
	Description string `json:"description,omitempty"`
	// After is when to ask again; zero leaves it to the caller.
	After time.Duration `json:"after,omitempty"`
	// Grant is what Bind gives when it is done.
	Grant *Grant `json:"grant,omitempty"`
	// State replaces the recorded state; nil leaves it.
	State *State `json:"state,omitempty"`
	// Target replaces the recorded target, where a first step has learnt its
	// identity; nil leaves it.
	Target *Target `json:"target,omitempty"`
}

// A Grant is what a binding gives an application. It holds secrets: it is
// stored sealed and never logged.
type Grant struct {
	secret.Holder
	Credentials     map[string]any       `json:"credentials,omitempty"`
	SyslogDrainURL  string               `json:"syslog_drain_url,omitempty"`
	RouteServiceURL string               `json:"route_service_url,omitempty"`
	VolumeMounts    []grants.VolumeMount `json:"volume_mounts,omitempty"`
	Endpoints       []grants.Endpoint    `json:"endpoints,omitempty"`
	ExpiresAt       time.Time            `json:"expires_at,omitzero"`
	RenewBefore     time.Time            `json:"renew_before,omitzero"`
}

// A Failure ends an operation for good.
type Failure struct {
	// Message is shown to the platform's user: what went wrong and what to
	// do, no internals, no secrets.
	Message string `json:"message"`
	// InstanceUsable and UpdateRepeatable say more of a failed update or
	// deprovision (ERR-10); nil is not sent and means true.
	InstanceUsable   *bool `json:"instance_usable,omitempty"`
	UpdateRepeatable *bool `json:"update_repeatable,omitempty"`
	// Untouched says of a deprovision that it was refused before anything was removed:
	// the instance stays ready.
	Untouched bool `json:"untouched,omitempty"`
	// State replaces the recorded state; nil leaves it.
	State *State `json:"state,omitempty"`
}

func (f *Failure) Error() string { return f.Message }

// Failf makes a Failure from a format.
func Failf(format string, args ...any) *Failure {
	return &Failure{Message: fmt.Sprintf(format, args...)}
}
