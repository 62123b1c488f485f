package demo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

var (
	// ErrNotFound: there is no thing of that name.
	ErrNotFound = errors.New("thing not found")
	// ErrExists: there is a thing of that name already. Nothing was changed.
	ErrExists = errors.New("thing exists already")
	// ErrChanged: the thing is not what it was when it was read, or gone.
	// Read again and decide again.
	ErrChanged = errors.New("thing changed in between")
)

// Things is where the demo keeps what it makes. Every method may be called by
// many goroutines and processes at once. An error other than those above
// leaves it unknown whether the call did its work.
//
// Replace and Delete are conditional: they act only if the thing is still what
// it was when its Revision was read. A store that cannot decide this in the
// call itself (AWS SSM has no conditional overwrite) compares just before it
// writes and, where the answer to the write tells more, just after; a thing
// that it made by replacing what was gone it takes back. A change that slips
// through such a gap does harm only when two different operations act on one
// thing at once, which the lease of a step prevents: two writes of one
// operation say the same.
type Things interface {
	// Create keeps a new thing under its name, or returns ErrExists. Of two
	// calls at once, one creates. The name is of a-z, 0-9 and hyphens.
	Create(ctx context.Context, t Thing) error

	// Get reads a thing with its Revision, or ErrNotFound. A thing that cannot
	// be understood is an error that names it, never ErrNotFound.
	Get(ctx context.Context, name string) (Thing, error)

	// Replace puts t where the thing of its name and Revision is, or returns
	// ErrChanged. The tags are those that the thing has already.
	Replace(ctx context.Context, t Thing) error

	// Delete removes the thing of t's name and Revision, or returns
	// ErrChanged. What is gone already is no error.
	Delete(ctx context.Context, t Thing) error

	// List reads a page of all things, in any order. Cursor is empty for the
	// first page, then the returned next; next is empty at the end. What
	// exists from before the first page until after the last is on one of
	// them.
	List(ctx context.Context, cursor string) (page []Thing, next string, err error)
}

// A Thing is what the demo makes, one for each instance and one for each
// binding. It holds no password in clear, and of the parameters nothing at all:
// of a digest, whoever reads the place guesses what is short, such as a PIN.
type Thing struct {
	Name    string        `json:"name"`
	Tags    provider.Tags `json:"tags"`
	Created time.Time     `json:"created"`
	// Ready is when the creation ends or has ended; zero if it fails.
	Ready time.Time `json:"ready,omitzero"`
	// Plan says what an instance is.
	Plan string `json:"plan"`
	// Source is the name of the instance that an instance was restored from.
	Source string `json:"source,omitempty"`
	// Removal is what the parameters ask of its deletion, which is given none.
	Removal Removal `json:"removal,omitzero"`
	// Verifier recognises the password of a binding.
	Verifier *Verifier `json:"verifier,omitempty"`
	// Keys recognise the passwords that the demo has chosen itself.
	Keys []Key `json:"keys,omitempty"`
	// Quarantined says that no password opens it.
	Quarantined bool `json:"quarantined,omitempty"`
	// RetainedUntil says that it was retained when it was deleted, and how long.
	RetainedUntil time.Time `json:"retained_until,omitzero"`
	// Expires ends the password by itself; zero never.
	Expires time.Time `json:"expires,omitzero"`
	// Change is the operation that is running; nil at rest.
	Change *Change `json:"change,omitempty"`
	// Past are the last operations that have ended, so that a late repetition
	// of one gets the answer that it had.
	Past []Past `json:"past,omitempty"`
	// DeletionFailed says that a deletion has been failed as it was asked
	// for, which happens once: nothing is ever undeletable.
	DeletionFailed bool `json:"deletion_failed,omitempty"`
	// Revision says what was read; it belongs to the Things. What was deleted
	// and made again has another one, unless it is equal in every field.
	Revision string `json:"-"`
}

// A Change is a running operation. Its end is fixed when it begins, so that
// neither a restart nor a repeated step makes it longer.
type Change struct {
	Operation string        `json:"operation"`
	Kind      provider.Kind `json:"kind"`
	Began     time.Time     `json:"began"`
	Ends      time.Time     `json:"ends"`
	Fails     bool          `json:"fails,omitempty"`
	// Plan and Removal are what an update will make of the instance.
	Plan    string  `json:"plan,omitempty"`
	Removal Removal `json:"removal,omitzero"`
}

// A Removal says how the deletion of a thing is to go.
type Removal struct {
	// Delay is how long it takes, in nanoseconds; nil leaves that to the plan.
	Delay *time.Duration `json:"delay,omitempty"`
	// Fails is the kind of deletion that fails, the first time; empty for none.
	Fails provider.Kind `json:"fails,omitempty"`
}

// A Past is an operation that has ended.
type Past struct {
	Operation string        `json:"operation"`
	Kind      provider.Kind `json:"kind"`
	Failed    bool          `json:"failed,omitempty"`
}

// pastKept bounds Past: a thing must fit the 4 KB of an SSM parameter.
const pastKept = 8

// begun is t with c as its running change, which has ended at once if it takes
// no time. What ran before and has not ended is overtaken and has no effect.
func (t Thing) begun(now time.Time, c Change) Thing {
	t = t.settled(now)
	t.Change = &c
	return t.settled(now)
}

// settled is t after the change whose time has come. A deletion is not settled
// by time: it ends when the thing is gone.
func (t Thing) settled(now time.Time) Thing {
	c := t.Change
	if c == nil || now.Before(c.Ends) || (removes(c.Kind) && !c.Fails) {
		return t
	}
	if c.Kind == provider.KindUpdate && !c.Fails {
		t.Plan, t.Removal = c.Plan, c.Removal
	}
	t.Change = nil
	t.Past = append(slices.Clone(t.Past), Past{Operation: c.Operation, Kind: c.Kind, Failed: c.Fails})
	if len(t.Past) > pastKept {
		t.Past = t.Past[len(t.Past)-pastKept:]
	}
	return t
}

// past finds an operation that has ended.
func (t Thing) past(operation string) (Past, bool) {
	i := slices.IndexFunc(t.Past, func(p Past) bool { return p.Operation == operation })
	if i < 0 {
		return Past{}, false
	}
	return t.Past[i], true
}

// ready reports whether the thing was made well.
func (t Thing) ready(now time.Time) bool { return !t.Ready.IsZero() && !now.Before(t.Ready) }

// deleting reports whether a deletion has begun and not failed.
func (t Thing) deleting() bool { return t.Change != nil && removes(t.Change.Kind) }

func removes(k provider.Kind) bool {
	return k == provider.KindDeprovision || k == provider.KindUnbind
}
