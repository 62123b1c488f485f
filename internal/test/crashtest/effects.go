package crashtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/memory"
)

var (
	errLost    = errors.New("the connection was closed before the answer came")
	errRefused = errors.New("throttled")
)

// died is how a process ends.
type died struct{}

// A task is a process: one request, one step or one sweep.
type task struct {
	name   string
	ended  chan any // nil, died, or what it panicked with; paused if it only stands still
	resume chan bool
	until  time.Time // when it is ended from outside
	// request is one of the platform's.
	request bool
}

type paused struct{}

// A landing is a call to the cloud that is on its way.
type landing struct {
	at   time.Time
	name string
	do   func() error
}

// effect is called around everything that outlives a process.
func (w *world) effect(name string, do func() error) error {
	if w.current == nil {
		return do() // nobody's process: the world itself
	}
	return w.strike(name, false, do)
}

func (w *world) cloudEffect(name string, do func() error) error {
	if w.current == nil {
		return do()
	}
	return w.strike("cloud "+name, true, do)
}

func (w *world) strike(name string, cloud bool, do func() error) error {
	w.effects++
	kind := w.faults[w.effects]
	if (kind == late || kind == veryLate || kind == unsure) && (!cloud || w.alone) {
		kind = none // nothing is on its way to a file
	}
	if kind == suspended && (w.times == anyhow || w.raw) && w.current.request {
		kind = none // nothing tells that it was held up
	}
	mark := ""
	if kind != none {
		w.struck++
		mark = " ** " + kind.String()
	}
	w.tell("  [%d] %s: %s%s", w.effects, w.current.name, name, mark)
	switch kind {
	case dieBefore:
		panic(died{})
	case dieAfter:
		_ = do()
		panic(died{})
	case lost:
		return errors.Join(errLost, do()) // what the call itself said is not hidden
	case refused:
		return errRefused
	case late, veryLate, unsure:
		w.lateRelease = w.lateRelease || kind == veryLate && name == "cloud release"
		w.late = append(w.late, landing{w.clock.Add(w.after(kind)), name, do})
		if kind == unsure {
			w.clock = w.clock.Add(20 * time.Second) // as long as a call may take
			return context.DeadlineExceeded
		}
		panic(died{})
	case suspended:
		t := w.current
		t.ended <- paused{}
		if !<-t.resume {
			panic(died{})
		}
		return do()
	default:
		return do()
	}
}

// crashing is a store whose commits are effects.
type crashing struct {
	*memory.Store
	w *world
}

func (c crashing) Commit(ctx context.Context, changes ...store.Change) error {
	ofALife := func(c store.Change) bool { return strings.HasPrefix(c.Record.Sort, "FORMER#") }
	if at := slices.IndexFunc(changes, ofALife); at >= 0 && len(changes) > 1 && c.w.lacks(Transaction) {
		return errors.Join(c.Commit(ctx, changes[at]), c.Commit(ctx, slices.Delete(slices.Clone(changes), at, at+1)...))
	}
	return c.w.effect("commit", func() error { return c.Store.Commit(ctx, changes...) })
}

// crashingVault is a vault whose every use is an effect.
type crashingVault struct {
	vault.Vault
	w *world
}

func (c crashingVault) Seal(ctx context.Context, l vault.Label, plain []byte) (sealed []byte, err error) {
	if plain == nil {
		return nil, nil
	}
	err = c.w.effect("seal", func() error { sealed, err = c.Vault.Seal(ctx, l, plain); return err })
	return sealed, err
}

func (c crashingVault) Open(ctx context.Context, l vault.Label, sealed []byte) (plain []byte, err error) {
	if sealed == nil {
		return nil, nil
	}
	err = c.w.effect("open", func() error { plain, err = c.Vault.Open(ctx, l, sealed); return err })
	return plain, err
}

// engine remembers what is to be driven.
type engine struct{ w *world }

func (e engine) Start(_ context.Context, ref workflow.Ref) error {
	return e.w.effect("start "+ref.Name(), func() error {
		for _, v := range e.w.visits {
			if v.ref == ref {
				return nil
			}
		}
		at := e.w.clock
		if e.w.lively {
			at = at.Add(time.Duration(e.w.rng.Int64N(int64(3 * time.Second)))) // executions take a while to begin
		}
		e.w.visits = append(e.w.visits, visit{ref, at})
		return nil
	})
}

// Finish is how a request waits. In the one process there is, its execution
// runs beside it; else the provisioner is called, as a process of its own, and
// what is not done in time goes on as an execution.
func (e engine) Finish(_ context.Context, ref workflow.Ref) error {
	w := e.w
	for end := w.clock.Add(synchronousWait); w.clock.Before(end); {
		var outcome workflow.Outcome
		var err error
		if w.alone {
			outcome, err = w.stepped(ref)
		} else if outcome, err = e.invoke(ref, end); errors.Is(err, errEnded) {
			return nil // the reaper drives it again
		}
		switch {
		case err != nil:
			return errors.Join(err, e.Start(context.Background(), ref))
		case outcome.Settled:
			return nil
		}
		w.clock = w.clock.Add(max(outcome.Wait, time.Millisecond))
		w.land()
	}
	return e.Start(context.Background(), ref)
}

var errEnded = errors.New("the provisioner ended")

// invoke calls the provisioner. Whoever does waits for as long as it may while
// the provisioner stands still.
func (e engine) invoke(ref workflow.Ref, end time.Time) (outcome workflow.Outcome, _ error) {
	w := e.w
	return outcome, w.effect("invoke "+ref.Name(), func() (err error) {
		caller, stood := w.current, len(w.still)
		ended := w.run("provisioner of "+ref.Name(), hardTimeout, func() { outcome, err = w.stepped(ref) })
		w.current = caller
		switch {
		case len(w.still) > stood:
			w.clock = end
			w.land()
		case !ended:
			err = errEnded
		}
		return err
	})
}
