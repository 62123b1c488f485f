// Package provider is the contract of providers: provision, update, deprovision, bind and unbind as
// idempotent steps, and the inventory of all existing things. It knows neither HTTP nor the store.
// The adapters are in internal/provider, and each passes the suite test/providertest.
package provider

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/secret"
)

// A Provider makes things. Every method is one step: it starts the work or checks on it, and
// never waits for it. A step may be called any number of times for one operation, even if an
// earlier call has done its work and the answer was lost. One caller runs it at a time; if that
// caller dies midway, another may follow while the dead caller's last call is still under way.
//
// A step answers with a Status, with a *Failure (the operation has failed for good), or with any
// other error, which counts as passing: the step is repeated until the operation's deadline.
//
// A thing is ours if its tags match: broker, platform, ids and incarnation. Its name derives
// from all of them (Name), so two lives of one id share nothing. A thing with the name but
// other tags belongs to somebody else: the step leaves it as it is, and fails.
//
// Before a step trusts an absence, it proves that it talks to the target whose identity is
// recorded, unless the provider is an Identifier; if it cannot, it returns a passing error.
type Provider interface {
	// Provision makes the instance. "Exists and is ours" is success.
	Provision(ctx context.Context, in Instance) (Status, error)

	// Update changes an instance to the state that in describes. A failed update leaves the instance as it was.
	Update(ctx context.Context, in Instance) (Status, error)

	// Deprovision removes the instance and all its things, after its bindings were unbound.
	// Done means observed to be absent; an instance that was never there is success. In has no
	// parameters, since a deletion must work even if they cannot be decrypted: a provider that
	// needs some of them keeps them with its things. An instance that the plan retains is
	// removed later: see Adopter.
	Deprovision(ctx context.Context, in Instance) (Status, error)

	// Bind makes the binding's own principal. Done carries the Grant, the same one in each call for the same
	// operation.
	Bind(ctx context.Context, b Binding) (Status, error)

	// Unbind removes the principal and all things of the binding. Done means observed to be absent. As in
	// Deprovision, neither b nor its instance has parameters, and b has no secret.
	Unbind(ctx context.Context, b Binding) (Status, error)
}

// An Identifier is a Provider whose caller proves the target before each step. A provider with
// connections is not one: it proves a target on the very connection that it then uses.
type Identifier interface {
	// Identify asks the target of the instance for its identity. If in.Target has no name,
	// Identify chooses a target. It changes nothing.
	Identify(ctx context.Context, in Instance) (Target, error)
}

// A Refuser is a Provider whose plans may refuse a deletion, such as that of a bucket that is not empty.
type Refuser interface {
	// Refuses asks whether Deprovision would be refused, and changes nothing. It is called before the
	// first binding is removed. A *Failure that is Untouched means refusal; any other error is passing.
	Refuses(ctx context.Context, in Instance) error
}

// An Inventory lists all things that a provider holds, including those that no record knows.
type Inventory interface {
	// List reads one page of the existing things, in no promised order. Cursor is empty for the
	// first page, then the returned next; next is empty at the end. List skips other brokers'
	// things, and changes nothing. A target that cannot be reached is an error, never an empty
	// page: the error comes with the things that were listed, and a next that goes on with the next
	// target. An error without next, or with the same next, ends the provider's part of the sweep.
	List(ctx context.Context, cursor string) (page []Holding, next string, err error)
}

// A Quarantiner can put a thing out of use without deleting it: it locks logins, makes keys
// inactive, and tags the thing. An Inventory may implement it. Both methods may be repeated. A
// thing that is gone, or of another incarnation, is left as it is, and that is success.
type Quarantiner interface {
	Quarantine(ctx context.Context, h Holding) error
	// Release puts the thing back into use as it was before.
	Release(ctx context.Context, h Holding) error
}

// An Adopter is a Quarantiner whose instances can be retained, which is a quarantine with a
// date, and later undeleted.
type Adopter interface {
	Quarantiner
	// Adopt gives the instance's thing that h names to the owner in h.Tags, if it belongs to
	// the former owner: it rewrites the label, on condition that the label is still the one
	// that it has seen, and changes nothing else. If the thing belongs to the owner already,
	// that is success; a *Failure says that the thing is gone, or belongs to somebody else. The
	// thing stays in quarantine.
	Adopt(ctx context.Context, h Holding, former Tags) error
}

// A Holding is one thing in the inventory.
type Holding struct {
	secret.Holder
	Name string `json:"name"`
	Tags Tags   `json:"tags"`
	// Created is when the thing was made, in UTC.
	Created time.Time `json:"created"`
	// PlanID is the thing's plan, if the thing itself tells.
	PlanID string `json:"plan_id,omitempty"`
	// Target and State are as in an Instance or Binding, if the thing's deletion needs them.
	Target Target `json:"target,omitzero"`
	State  State  `json:"state,omitzero"`
	// Epoch is the target's epoch as List saw it; for Quarantine and Release it is the recorded epoch, as in an Instance.
	Epoch target.Epoch `json:"epoch,omitzero"`
	// RetainedUntil is how long a retained thing is kept; zero if the thing is not retained.
	// The tags of a retained thing are those of the deleted instance.
	RetainedUntil time.Time `json:"retained_until,omitzero"`
}

// A Target is a place where things are made: an account, or a database server.
type Target = operation.Target

// State is a provider's own data about an instance or a binding, at most limits.State bytes. It
// is stored sealed, committed before the next step runs, and kept until the record is dropped.
// The zero State is no state.
type State struct {
	secret.Holder
	// Format is the provider's own version of Data.
	Format int          `json:"format,omitempty"`
	Data   secret.Bytes `json:"data,omitempty"`
}

// Encode returns the form that ParseState reads; nil for the zero State.
func (s State) Encode() []byte {
	if s.Format == 0 && len(s.Data) == 0 {
		return nil
	}
	return append(binary.AppendUvarint(nil, uint64(s.Format)), s.Data...)
}

// ParseState reads the form that Encode returns.
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

// StateOf returns a State of a format, with the JSON of data.
func StateOf(format int, data any) *State {
	raw, _ := json.Marshal(data) // texts, numbers and times can always be encoded
	return &State{Format: format, Data: raw}
}

// Read decodes the data that StateOf has encoded; for the zero State, it decodes nothing. The
// state of a later program is a passing error: a deployment is under way. So is one that cannot be
// decoded: no failure in the decoder's error ends the operation.
func (s State) Read(format int, into any) error {
	switch s.Format {
	case 0:
		return nil
	case format:
		if err := json.Unmarshal(s.Data, into); err != nil {
			return fmt.Errorf("reading a provider's state: %v", err)
		}
		return nil
	}
	return fmt.Errorf("a provider's state has format %d, and this program knows %d", s.Format, format)
}

// A Place is where an instance was ordered, for tags that people read. Each member may be empty, and may
// hold any characters.
type Place struct {
	Organization string `json:"organization,omitempty"` // its id
	Space        string `json:"space,omitempty"`        // its id, or the namespace
	InstanceName string `json:"instance_name,omitempty"`
}

// A Source is the instance from which another one is to be restored. The commit of each step
// checks that the source is unchanged and ready.
type Source struct {
	secret.Holder
	Platform    string          `json:"platform"`
	ID          string          `json:"id"`
	Incarnation string          `json:"incarnation"`
	Origin      Origin          `json:"origin,omitzero"` // as in an Instance
	Snapshot    json.RawMessage `json:"snapshot,omitempty"`
	Target      Target          `json:"target,omitzero"`
	State       State           `json:"state,omitzero"`
}

// Tags returns the tags of the source's things.
func (s Source) Tags(broker string) Tags {
	return Tags{Broker: broker, Platform: s.Platform, Instance: s.ID, Incarnation: s.Incarnation, Origin: s.Origin}
}

// An Operation is the operation that a step belongs to.
type Operation struct {
	// ID is the same in every step of one operation, and differs between operations: use it as
	// the idempotency token of calls to the cloud.
	ID   string         `json:"id"`
	Kind operation.Kind `json:"kind"`
	// Started is when the platform asked for the operation, in UTC.
	Started time.Time `json:"started"`
	// Deadline is when the operation fails unless it is done; zero if that is not known.
	Deadline time.Time `json:"deadline,omitzero"`
	// Synchronous says that the platform waits for the answer, for a few seconds at most.
	Synchronous bool `json:"synchronous,omitempty"`
}

// An Instance is all that a provider is told about a service instance. Package remote sends its
// JSON, which holds secrets and is never stored or logged.
type Instance struct {
	secret.Holder
	// Broker is the broker's own random identity, which distinguishes two brokers in one account.
	Broker   string `json:"broker,omitempty"`
	Platform string `json:"platform"` // the platform's immutable id
	ID       string `json:"id"`       // the platform's id of the instance, any characters
	// Incarnation is the id of the operation that created this instance. An id may be used
	// again after a deletion; the incarnation then differs.
	Incarnation string `json:"incarnation"`
	// Origin is set for an undeleted instance, whose things were made for another instance. Its
	// provision finds them, and makes nothing anew.
	Origin    Origin    `json:"origin,omitzero"`
	ServiceID string    `json:"service_id"`
	PlanID    string    `json:"plan_id"`
	Operation Operation `json:"operation"`
	// Parameters are the user's parameters, a JSON object; numbers keep their digits. Nil if
	// there are none, and in a deletion.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// Settings are the settings of the plan; nil if the plan has left the catalog. Numbers may
	// have any type that a decoder of YAML or JSON returns, json.Number included.
	Settings map[string]any `json:"settings"`
	// Snapshot is the snapshot of the plan, as Check returned it when the instance was made or
	// last moved to another plan or maintenance version. In an update it is the new snapshot,
	// and Former the one before. It never holds addresses or secrets.
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
	Former   json.RawMessage `json:"former,omitempty"`
	// Maintenance is the version of the plan's maintenance_info that the instance has, or is to get.
	Maintenance string `json:"maintenance,omitempty"`
	Place       Place  `json:"place,omitzero"`
	Target      Target `json:"target,omitzero"`
	// Epoch is the latest recorded epoch of the target: a step that finds the target at an
	// earlier epoch, or on another line, changes nothing (Epoch.Check). Zero if none is
	// recorded, or the provider has no epochs.
	Epoch target.Epoch `json:"epoch,omitzero"`
	// State is the instance's state. A step of a binding cannot change it.
	State State `json:"state,omitzero"`
	// Unfinished says in a deprovision that the instance was never ready, so that nobody has used it.
	Unfinished bool `json:"unfinished,omitempty"`
	// Source is set for a provision that restores another instance.
	Source *Source `json:"source,omitempty"`
}

// A Binding is all that a provider is told about a service binding.
type Binding struct {
	secret.Holder
	Instance    Instance        `json:"instance"` // its Operation is the binding's operation
	ID          string          `json:"id"`
	Incarnation string          `json:"incarnation"`          // the operation that created the binding
	AppGUID     string          `json:"app_guid,omitempty"`   // empty for a service key
	Route       string          `json:"route,omitempty"`      // the route to forward, if one is bound
	Parameters  json.RawMessage `json:"parameters,omitempty"` // as in an Instance
	// Secret is 32 random bytes, chosen and stored before the first step, and the same in each step: derive
	// passwords from it, so that a repeated Bind gives the same credentials. Nil in an unbind.
	Secret secret.Bytes `json:"secret"`
	// State is the binding's own state.
	//
	// A secret that the cloud chooses and shows once takes two steps. The first step makes the
	// secret and returns it as State, not done. The next step finds the secret in State, verifies
	// that it works and is the only one, and is done, with the Grant and a State without the
	// secret. A secret that is not in State was never recorded: the step revokes it. OneKey in
	// test/providertest/example does so.
	State State `json:"state,omitzero"`
}

// A Status is the progress of a step.
type Status struct {
	secret.Holder
	Done bool `json:"done,omitempty"`
	// Percent is from 0 to 100, a hint for people.
	Percent int `json:"percent,omitempty"`
	// Description is shown to the platform's user; it holds no secrets.
	Description string `json:"description,omitempty"`
	// After is the time until the next step; zero leaves it to the caller.
	After time.Duration `json:"after,omitempty"`
	// Grant is set by a Bind that is done.
	Grant *Grant `json:"grant,omitempty"`
	// State replaces the recorded state; nil leaves it.
	State *State `json:"state,omitempty"`
	// Target replaces the recorded target, once a first step has learnt the target's identity; nil leaves it.
	Target *Target `json:"target,omitempty"`
}

// A Grant is what a binding gives an application. It holds secrets: it is stored sealed and never logged.
type Grant struct {
	secret.Holder
	Credentials     map[string]any `json:"credentials,omitempty"`
	SyslogDrainURL  string         `json:"syslog_drain_url,omitempty"`
	RouteServiceURL string         `json:"route_service_url,omitempty"`
	VolumeMounts    []VolumeMount  `json:"volume_mounts,omitempty"`
	Endpoints       []Endpoint     `json:"endpoints,omitempty"`
	ExpiresAt       time.Time      `json:"expires_at,omitzero"`
	RenewBefore     time.Time      `json:"renew_before,omitzero"`
}

// A VolumeMount has the form of version 2.10 and later (BIND-34).
type VolumeMount struct {
	Driver       string       `json:"driver"`
	ContainerDir string       `json:"container_dir"`
	Mode         string       `json:"mode"`        // r or rw
	DeviceType   string       `json:"device_type"` // shared
	Device       VolumeDevice `json:"device"`
}

// A VolumeDevice names the device that is mounted.
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
	// Message tells the platform's user what went wrong and what to do, without internals and secrets.
	Message string `json:"message"`
	// InstanceUsable and UpdateRepeatable say more about a failed update or deprovision
	// (ERR-10); nil is not sent, and means true.
	InstanceUsable   *bool `json:"instance_usable,omitempty"`
	UpdateRepeatable *bool `json:"update_repeatable,omitempty"`
	// Untouched says that a deprovision was refused before anything was removed: the instance stays ready.
	Untouched bool `json:"untouched,omitempty"`
	// State replaces the recorded state; nil leaves it.
	State *State `json:"state,omitempty"`
}

func (f *Failure) Error() string { return f.Message }

// Failf returns a Failure with a formatted message.
func Failf(format string, args ...any) *Failure {
	return &Failure{Message: fmt.Sprintf(format, args...)}
}
