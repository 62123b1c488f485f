package hosted

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// A Host is a server as an engine sees and changes it. V is what is seen there of an
// instance and a binding. Each method may be repeated at any time, also while an earlier
// call whose caller has died is still under way.
type Host[V any] interface {
	Server

	// Look tells what stands at the names that derive from the tags, whoever owns it. It
	// changes nothing. The tags of a binding carry the origin of its instance.
	Look(ctx context.Context, t provider.Tags) (V, error)

	// Do makes one change, or the part that the same act, repeated, makes whole. It does
	// so only if what says whose the things are is as it was seen, and answers ErrChanged
	// if it is not.
	Do(ctx context.Context, t provider.Tags, seen V, act any) error

	// List reads what is the broker's, in the order of the names, after one: a page that
	// looks at no more than limit of them. Last is the name that a further page begins
	// after; empty for none.
	List(ctx context.Context, broker, after string, limit int) (page []Listed, last string, err error)
}

// A Listed is a thing of the inventory.
type Listed struct {
	Name  string
	Label Label
}

// A Next is what follows from what was seen: an act, or to wait with a word to the user.
// The zero Next says that all is done.
type Next struct {
	Act  any
	Wait *provider.Status
}

// A Decide says what comes next.
type Decide[V any] func(seen V) (Next, error)

// An Engine is what one kind of servers has of its own. C is the way to one.
type Engine[C Host[V], V any] struct {
	// Open prepares the way to a server; it reaches nothing yet.
	Open func(access Access, pool int) (C, error)
	// Close ends its connections.
	Close func(c C)
	// Class says what an error of the server's own asks for; Other where it is like that
	// of any engine.
	Class func(err error) Class
	// Told is an error without what must not be repeated of it; nil for all of it.
	Told func(err error) error
	// Detail adds to what an operator is told of a target; nil for nothing.
	Detail func(target string, class Class) string

	// Each verb checks with the server what is asked for, touches nothing, and gives what
	// comes next; Bind also what it is done with. That is asked only of what is the owner's,
	// or of nothing; all but a provision of an instance that is in use.
	Provision, Update, Deprovision func(ctx context.Context, at *Site[C, V], in provider.Instance) (Decide[V], error)
	Bind                           func(ctx context.Context, at *Site[C, V], b provider.Binding) (Decide[V], Granted[V], error)
	Unbind                         func(ctx context.Context, at *Site[C, V], b provider.Binding) (Decide[V], error)
	// Restore is a step of a provision from another instance; nil where there is none.
	Restore func(ctx context.Context, at *Site[C, V], in provider.Instance) (*provider.Status, error)

	// Label is that of the thing with the tags, and Stands reports whether anything is at
	// its names: without a label, it is nobody's that is known.
	Label  func(seen V, t provider.Tags) (Label, bool)
	Stands func(seen V, t provider.Tags) bool
	// Relabel is the act that gives it another label, and shuts or opens what it has to
	// with it; nil for what is about to go.
	Relabel func(seen V, t provider.Tags, to Label) any
	// Enforce is the next act until nobody gets in whom the label keeps out, and who it does not gets in; nil when that is so.
	Enforce func(seen V, t provider.Tags, is Label) any
	// Adopt says what comes next until the instance's thing is of the owner; nil where
	// Relabel does it all.
	Adopt func(seen V, owner, former provider.Tags) (Next, error)

	// Expel ends the sessions of a binding that keep its own unbind from being made, and
	// reports whether that is worth another try; nil where they cannot.
	Expel func(ctx context.Context, b provider.Binding, cause error) bool
	// Keep has a server keep what was changed; nil where it does.
	Keep func(ctx context.Context, c C) error
}

// A Granted is what a bind is done with.
type Granted[V any] func(ctx context.Context, seen V) provider.Status

// What Do may answer, beside the server's own errors.
var (
	// ErrChanged: what was seen is no more so, or somebody else works at the same: look again.
	ErrChanged = errors.New("it changed while it was worked on")
	// ErrQuarantine keeps a step from what is in quarantine.
	ErrQuarantine = errors.New("it is in quarantine: release it, or have it deleted")
	// ErrGoesOn: the act has come forward, and there is more to do.
	ErrGoesOn = errors.New("there is more to do")
)

// A Site is a server that a step is at. Its identity and epoch are proven where At gives it.
type Site[C Host[V], V any] struct {
	Server C
	Name   string // of the target
	Access Access
	// Leave ends the step's way to it.
	Leave func()

	said     Said
	provider *Provider[C, V]
}

// Explain says of an error what an operator does about it.
func (s *Site[C, V]) Explain(err error) error { return s.provider.Explain(s.Name, err) }

const (
	// maxActs is how many changes one step makes at most.
	maxActs = 16
	// Pauses between steps.
	goOnPause = 500 * time.Millisecond
	busyPause = time.Second
	lockPause = 5 * time.Second
)

// Waiting is a status that is not done.
func Waiting(why string, after time.Duration) *provider.Status {
	return &provider.Status{Percent: 50, Description: why, After: after}
}

// Run looks and acts until there is nothing to do. Whoever else works at the same thing
// is met with another look; a lock that somebody else holds, with a pause. It ends with
// what was seen last.
func (s *Site[C, V]) Run(ctx context.Context, t provider.Tags, next Decide[V]) (seen V, wait *provider.Status, err error) {
	var last any
	changed := false
	for range maxActs {
		if seen, err = s.Server.Look(ctx, t); err != nil {
			return seen, nil, s.Explain(err)
		}
		// What an inventory lists of a binding says nothing of the origin, and its label does.
		if l, ok := s.provider.Label(seen, t); ok && t.Binding != "" && l.Origin != t.Origin {
			t.Origin = l.Origin
			continue
		}
		n, err := next(seen)
		if err != nil || n.Wait != nil {
			return seen, n.Wait, err
		}
		if n.Act == nil {
			if s.provider.Keep != nil {
				err = s.Explain(s.provider.Keep(ctx, s.Server))
			}
			return seen, nil, err
		}
		this := []any{n.Act, seen}
		if !changed && reflect.DeepEqual(last, this) {
			return seen, Waiting("Waiting for others to let go of it", busyPause), nil
		}
		last = this
		err = s.Server.Do(ctx, t, seen, n.Act)
		class := s.provider.class(err)
		switch changed = class == Busy; {
		case err == nil || changed:
		case errors.Is(err, ErrGoesOn):
			return seen, Waiting("Working", goOnPause), nil
		case class == Locked:
			s.provider.Log.WarnContext(ctx, "a lock on the server holds a step up; if it stays, look for a prepared "+
				"transaction, and roll it back",
				slog.String("target", s.Name), slog.Any("error", err))
			return seen, Waiting("Waiting for somebody's lock", lockPause), nil
		default:
			return seen, nil, s.Explain(err)
		}
	}
	return seen, Waiting("Working", busyPause), nil
}
