package hosted

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// A Host is a server as an engine sees and changes it. V is what the engine sees there of an
// instance and a binding. Each method may be repeated at any time, also while the call of a dead
// caller is still under way.
type Host[V any] interface {
	Server

	// Look reads what exists under the names that derive from the tags, whoever owns it. It changes
	// nothing. The tags of a binding carry the origin of its instance.
	Look(ctx context.Context, t provider.Tags) (V, error)

	// Do makes one change, or a part of it that the same act completes when it is repeated. If the
	// labels of the things have changed since they were seen, it returns ErrChanged and changes
	// nothing.
	Do(ctx context.Context, t provider.Tags, seen V, act any) error

	// List reads a page of the broker's things in the order of their names, from the first name
	// after the given one. It looks at limit names at most. Last is the name after which the next
	// page begins; empty at the end.
	List(ctx context.Context, broker, after string, limit int) (page []Listed, last string, err error)
}

// A Listed is an entry of the inventory.
type Listed struct {
	Name  string
	Label Label
}

// A Decide returns the act that follows from what was seen; nil when nothing is left to do.
type Decide[V any] func(seen V) (act any, err error)

// A Later ends a step whose work goes on in the next one. It does not embed the status, which would
// be redacted in place of the error's text.
type Later struct{ Status provider.Status }

func (l *Later) Error() string { return l.Status.Description }

// Wait returns a Later with a message for the user.
func Wait(why string, after time.Duration) *Later {
	return &Later{provider.Status{Percent: 50, Description: why, After: after}}
}

// A Seen is what an engine has seen of an instance and a binding. The tags say which of the two a
// method is about.
type Seen interface {
	// Label returns the label of the thing, and reports whether anything stands at the thing's
	// names: what stands there without a label is somebody else's.
	Label(t provider.Tags) (l Label, stands bool)
	// Relabel returns the act that gives the thing another label, and that shuts or opens it if one
	// change has to do both; nil for a thing that is being removed.
	Relabel(t provider.Tags, to Label) any
	// Enforce returns the next act until the server admits exactly the users that the label admits;
	// nil once it does.
	Enforce(t provider.Tags, is Label) any
}

// An Engine is one kind of server: everything in which PostgreSQL, MariaDB and Valkey differ. C is
// the connection to one server.
type Engine[C Host[V], V Seen] struct {
	// Open prepares a connection; it reaches no server yet.
	Open func(access Access, pool int) (C, error)
	// Close closes the connections.
	Close func(c C)
	// Class returns what an error of the server calls for; Other where that does not depend on the
	// engine.
	Class func(err error) Class
	// Told returns an error without its secrets; nil where errors contain none.
	Told func(err error) error
	// Detail adds to what an operator is told about a target; nil for nothing.
	Detail func(target string, class Class) string

	// Each verb checks the request with the server, changes nothing, and returns a Decide; Bind
	// also returns the grant for the time when the bind is done. The Decide is called only while
	// nothing of another owner is in the way; for an update and a bind, only if the instance is in
	// use.
	Provision, Update, Deprovision func(ctx context.Context, at *Site[C, V], in provider.Instance) (Decide[V], error)

	Bind   func(ctx context.Context, at *Site[C, V], b provider.Binding) (Decide[V], *provider.Grant, error)
	Unbind func(ctx context.Context, at *Site[C, V], b provider.Binding) (Decide[V], error)
	// Remark returns what the user is told beside the grant of a binding that was seen; nil for nothing.
	Remark func(ctx context.Context, c C, t provider.Tags, seen V) string
	// Restore is a step of a provision from another instance; nil where the engine cannot restore.
	Restore func(ctx context.Context, at *Site[C, V], in provider.Instance) error

	// Facts asks the server for the facts that people are shown of an instance that was seen; the
	// address is known already.
	Facts func(ctx context.Context, c C, t provider.Tags, seen V) (provider.Facts, error)

	// Adopt returns the next act until the owner has the instance's thing; nil where Relabel does
	// all of it.
	Adopt func(seen V, owner, former provider.Tags) (act any, err error)

	// Expel ends the sessions of a binding that block its unbind, and reports whether another try is
	// worth it; nil where sessions cannot block one.
	Expel func(ctx context.Context, b provider.Binding, cause error) bool
	// Surveyed logs what the operator should know of a server that is surveyed; nil for nothing.
	Surveyed func(ctx context.Context, at *Site[C, V])
	// Keep makes a server write its changes to disk; nil where the server does so by itself.
	Keep func(ctx context.Context, c C) error
}

// Results of Do beside the server's own errors.
var (
	// ErrChanged asks for another look: the things have changed, or another caller works on them.
	ErrChanged = errors.New("it changed during the step")
	// ErrQuarantine keeps a step away from a thing in quarantine.
	ErrQuarantine = errors.New("it is in quarantine: release it, or have it deleted")
	// ErrGoesOn ends the step: the next step goes on with the act.
	ErrGoesOn error = Wait("Working", goOnPause)
)

// A Site is the server that a step of a provider works on. At proves its identity and epoch.
type Site[C Host[V], V Seen] struct {
	*Provider[C, V]
	Server C
	Name   string // of the target
	Access Access

	said Said
}

// Leave ends the step's use of the server.
func (s *Site[C, V]) Leave() {
	if s.Pool == 0 {
		s.Engine.Close(s.Server)
	}
}

// Explain adds to an error what an operator does about it.
func (s *Site[C, V]) Explain(err error) error { return s.Provider.Explain(s.Name, err) }

const (
	// maxActs is the most changes that one step makes.
	maxActs = 16
	// Pauses between steps.
	goOnPause = 500 * time.Millisecond
	busyPause = time.Second
	lockPause = 5 * time.Second
)

// Run looks and acts until nothing is left to do, and returns what it saw last. If another caller
// has changed the things, it looks again; if somebody else holds a lock, it ends the step.
func (s *Site[C, V]) Run(ctx context.Context, t provider.Tags, next Decide[V]) (seen V, err error) {
	var last any
	changed := false
	for range maxActs {
		if seen, err = s.Server.Look(ctx, t); err != nil {
			return seen, s.Explain(err)
		}
		// The tags of a listed binding lack the origin of its instance. The label has it.
		if l, _ := seen.Label(t); t.Binding != "" && l.Instance != "" && l.Origin != t.Origin {
			t.Origin = l.Origin
			continue
		}
		act, err := next(seen)
		if act == nil && err == nil && s.Keep != nil {
			err = s.Explain(s.Keep(ctx, s.Server))
		}
		if act == nil || err != nil {
			return seen, err
		}
		this := []any{act, seen}
		if !changed && reflect.DeepEqual(last, this) {
			return seen, Wait("Waiting for other sessions to end", busyPause)
		}
		last = this
		err = s.Server.Do(ctx, t, seen, act)
		class := s.class(err)
		switch changed = class == Busy; {
		case err == nil || changed:
		case class == Locked:
			s.Log.WarnContext(ctx, "a lock on the server delays a step; if it stays, look for a prepared "+
				"transaction, and roll it back",
				slog.String("target", s.Name), slog.Any("error", err))
			return seen, Wait("Waiting for somebody's lock", lockPause)
		default:
			return seen, s.Explain(err)
		}
	}
	return seen, Wait("Working", busyPause)
}
