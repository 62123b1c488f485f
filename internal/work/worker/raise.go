package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/records/ledger"
)

// raisedFor is how long a raise of a target covers later steps.
const raisedFor = 10 * time.Second

// A raising makes the raises of one target, one at a time. All callers that ask during a raise share the next raise.
type raising struct {
	turn  chan struct{} // full while a caller raises
	begun atomic.Int64  // how many raises have begun; all before the last have ended
	// at and err are the result of the last raise that has ended, for the caller whose turn it is.
	at   target.Epoch
	err  error
	last atomic.Pointer[raised]
}

// A raised is a raise that succeeded: when it began, and its epoch.
type raised struct {
	since time.Time
	at    target.Epoch
}

// covers reports whether the raise began moments ago; nil is no raise.
func (r *raised) covers(now time.Time) bool {
	return r != nil && !now.Before(r.since) && now.Sub(r.since) < raisedFor
}

// raise makes sure that this process has raised the target moments ago or, with anew, that it does
// so after this call. It returns the target's epoch, which is zero for a target without epochs.
//
// Before it changes anything in a target, a step needs a recent raise. Hazard: another broker may
// run on a copy of the records. A raise succeeds only if no broker has raised the target from other
// records since the last raise here.
//
// After a change, a step needs a raise anew. If the server is later restored to a time before that
// raise, its epoch is behind the record, so the loss of the change is detected.
func (w *Worker) raise(ctx context.Context, name string, t provider.Target, anew bool) (target.Epoch, error) {
	if w.Providers[name].Reconciler == nil || t.Identity == "" {
		return target.Epoch{}, nil
	}
	of, _ := w.raises.LoadOrStore([2]string{name, t.Identity}, &raising{turn: make(chan struct{}, 1)})
	r := of.(*raising)
	if last := r.last.Load(); !anew && last.covers(w.Now()) {
		return last.at, nil
	}
	need := r.begun.Load() + 1
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return target.Epoch{}, ctx.Err()
	}
	defer func() { <-r.turn }()
	switch last := r.last.Load(); {
	case !anew && last.covers(w.Now()):
		return last.at, nil
	case r.begun.Load() >= need && !timedOut(r.err): // if its caller ran out of time, this caller may have time left
		return r.at, r.err
	}
	r.begun.Add(1)
	since := w.Now()
	if r.at, r.err = w.raiseOnce(ctx, name, t); r.err == nil {
		r.last.Store(&raised{since, r.at})
	}
	return r.at, r.err
}

// raiseOnce makes one raise: it reserves a mark in the record, sets the mark on the target, and
// records the new epoch. A caller that finds a reserved mark completes that raise before its
// own: a copy of the records may hold the same reservation.
func (w *Worker) raiseOnce(ctx context.Context, name string, t provider.Target) (target.Epoch, error) {
	reconciler := w.Providers[name].Reconciler
	inherited := ""
	for n := 0; ; n++ {
		known, err := w.knownOf(ctx, reconciler, name, t)
		if err != nil {
			return target.Epoch{}, err
		}
		if n == 0 {
			inherited = known.Reserved
		}
		if known.Reserved == "" {
			known.Reserved = w.NewID()
			switch err := w.Records.Commit(ctx, ledger.Put(known)); {
			case errors.Is(err, ledger.ErrConflict):
				continue // another process has reserved a mark
			case err != nil:
				return target.Epoch{}, fmt.Errorf("reserving the next change of target %q: %w", t.Name, err)
			}
			known.Version++
		}
		to := target.Epoch{Line: known.Line, Count: known.Count + 1, Mark: known.Reserved}
		said, err := reconciler.Advance(ctx, t, known.Epoch, to)
		if err != nil {
			return target.Epoch{}, err
		}
		if said != to {
			if err := w.disagrees(ctx, name, t, known, said); err != nil {
				return target.Epoch{}, err
			}
			continue
		}
		known.Known = target.Known{Epoch: to}
		switch kept, err := w.keepsEpoch(ctx, known); {
		case err != nil:
			return target.Epoch{}, fmt.Errorf("recording how far target %q is: %w", t.Name, err)
		case kept && to.Mark != inherited:
			return to, nil
		}
	}
}

// keepsEpoch records the target's epoch, unless another process of this broker has done so.
func (w *Worker) keepsEpoch(ctx context.Context, known ledger.TargetEpoch) (kept bool, _ error) {
	err := w.Records.Commit(ctx, ledger.Put(known))
	if !errors.Is(err, ledger.ErrConflict) {
		return err == nil, err
	}
	now, err := w.Records.Epoch(ctx, known.Provider, known.Identity)
	return err == nil && now.Line == known.Line && now.Count >= known.Count, err
}

// knownOf reads the recorded epoch of a target. If there is no record, it asks the target for
// its epoch, and returns that without a mark: this broker has not raised the target.
func (w *Worker) knownOf(ctx context.Context, r wired.Reconciler, name string, t provider.Target) (ledger.TargetEpoch, error) {
	known, err := w.Records.Epoch(ctx, name, t.Identity)
	if err != nil {
		return known, fmt.Errorf("reading what target %q has said of itself: %w", t.Name, err)
	}
	if known.Version > 0 {
		return known, nil
	}
	said, err := r.Advance(ctx, t, target.Epoch{}, target.Epoch{})
	known.Line, known.Count = said.Line, said.Count
	return known, err
}

// disagrees returns why the target has neither the recorded epoch nor the next one; nil if
// another process of this broker has written the record meanwhile.
func (w *Worker) disagrees(ctx context.Context, name string, t provider.Target, known ledger.TargetEpoch,
	said target.Epoch) error {
	now, err := w.Records.Epoch(ctx, name, t.Identity)
	if err != nil || now.Version != known.Version {
		return err
	}
	if err := said.Check(t.Name, known.Epoch); err != nil {
		return err
	}
	return target.Copied(t.Name)
}
