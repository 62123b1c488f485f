package worker

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// An aside is a record of the reaper that has steps and a lease of its own, beside the
// operations on instances and bindings.
type aside[T any] interface {
	Current(operation string, attempt int) bool
	Held() time.Time
	Leased(until time.Time) T
	Given() T
}

// asideSteps are what the steps of one kind of aside do.
type asideSteps[T aside[T]] struct {
	read func(ctx context.Context) (_ T, recorded bool, _ error)
	put  func(T) ledger.Change
	call func(ctx context.Context, t T) (provider.Status, error)
	// came gives what is written once the call was answered.
	came func(ctx context.Context, t T, s provider.Status, err error) (ledger.Change, workflow.Outcome)
}

// stepAside does one step. Like a step of an operation it takes a lease first: a late
// call must not undo what another step has done since.
func stepAside[T aside[T]](ctx context.Context, w *Worker, ref workflow.Ref, s asideSteps[T]) (workflow.Outcome, error) {
	now := w.Now()
	t, recorded, err := s.read(ctx)
	switch {
	case err != nil:
		return workflow.Outcome{}, err
	case !recorded || !t.Current(ref.Token.Operation, ref.Attempt):
		return settled, nil
	case t.Held().After(now):
		return workflow.Outcome{Wait: min(t.Held().Sub(now), maxLeasePause)}, nil
	}
	t = t.Leased(w.until(now))
	mine := t.Held() // another step holds another time
	switch err := w.Records.Commit(ctx, s.put(t)); {
	case errors.Is(err, ledger.ErrConflict):
		return workflow.Outcome{Wait: raceWait}, nil
	case err != nil:
		return workflow.Outcome{}, err
	}
	status, callErr := s.call(ctx, t)
	outcome := settled
	err = repeat(ctx, func(ctx context.Context, _ bool) error {
		t, recorded, err := s.read(ctx)
		if err != nil || !recorded {
			return err
		}
		if t.Held().Equal(mine) && !answeredBy(ref.Name(), callErr).timedOut {
			t = t.Given()
		}
		change := s.put(t)
		if t.Current(ref.Token.Operation, ref.Attempt) { // else an operator has turned it round meanwhile
			change, outcome = s.came(ctx, t, status, callErr)
		}
		return w.Records.Commit(ctx, change)
	})
	return outcome, err
}

// listedHolding is what a provider is told of a thing that it has listed.
func listedHolding(name string, key lifecycle.Key, incarnation, of string, made lifecycle.Made, state provider.State,
	created time.Time) provider.Holding {
	return provider.Holding{
		Name: name, Created: created, Target: provider.Target(made.Target), State: state,
		Tags: provider.Tags{
			Broker: made.Broker, Platform: key.Platform, Instance: key.Instance, Binding: key.Binding, Incarnation: incarnation,
			Of: of, Origin: provider.Origin(made.Origin),
		},
	}
}
