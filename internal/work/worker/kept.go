package worker

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// holdingOf describes the instance's thing to the provider.
func holdingOf(in provider.Instance, created time.Time) provider.Holding {
	return provider.Holding{
		Tags: provider.TagsOf(in), Created: created, PlanID: in.PlanID, Target: in.Target, State: in.State, Epoch: in.Epoch,
	}
}

// adopter returns the provider's Adopter. A provider without one is a fault and does not end the operation: to go on
// would delete the data, or make the instance anew and empty.
func adopter(p wired.Provider) (provider.Adopter, error) {
	if p.Adopter != nil {
		return p.Adopter, nil
	}
	return nil, errors.New("its provider cannot keep what is deleted, nor give it back: the program may be of another version")
}

// ofHolding builds the call of an Adopter for the step's instance.
func (s *step) ofHolding(
	ctx context.Context, do func(context.Context, provider.Adopter, provider.Holding) error,
) (question, error) {
	in, err := s.instanceFor(ctx, s.record, &lifecycle.Operation{Kind: lifecycle.Deprovision})
	return question{in, func(ctx context.Context, p wired.Provider, in provider.Instance) (provider.Status, error) {
		can, err := adopter(p)
		if err == nil {
			err = do(ctx, can, holdingOf(in, s.record.Created))
		}
		return provider.Status{Done: true}, err
	}, false}, err
}

// keeping is the task of deleting an instance whose plan keeps the data: it puts the instance
// into quarantine instead of removing it.
type keeping struct {
	*step
	until time.Time
}

func (t keeping) question(ctx context.Context) (question, error) {
	return t.ofHolding(ctx, func(ctx context.Context, p provider.Adopter, h provider.Holding) error {
		h.RetainedUntil = t.until
		return p.Quarantine(ctx, h)
	})
}

// answered implements task. While a call of an overtaken operation may still take effect, the
// thing is put into quarantine twice, just as an absence must be seen twice.
func (t keeping) answered(ctx context.Context, a answer, now time.Time) (lifecycle.Record, []ledger.Change, error) {
	v := a.judge(t.record.Operation, now)
	if !v.Done {
		return t.judged(ctx, t.record, v, now)
	}
	seen, proven := t.record.AbsenceSeen(t.record.Operation.ID, now, t.witness())
	if !proven {
		return seen.Looked(now, lifecycle.Look{After: lifecycle.SecondLook}), nil, nil
	}
	next, kept, err := seen.Keep(now, t.until)
	if err != nil {
		return next, nil, err
	}
	beside, err := ledger.PutFormer(ctx, t.Records, kept, now)
	t.Log.InfoContext(ctx, "the plan retains what a platform has deleted", "provider", next.Provider, "until", t.until)
	return next, []ledger.Change{beside}, err
}

// adoption is the first task of an instance that takes over a kept life, and of the instance's
// deletion if it was never ready. It makes the instance the thing's owner, so that calls of
// other lives no longer affect the thing.
type adoption struct{ *step }

func (t adoption) question(ctx context.Context) (question, error) {
	from := t.record.Undeletes
	return t.ofHolding(ctx, func(ctx context.Context, p provider.Adopter, h provider.Holding) error {
		former := h.Tags
		former.Instance, former.Incarnation = from.Instance, from.Incarnation
		return p.Adopt(ctx, h, former)
	})
}

// answered implements task. If the thing is missing or has another owner, a provision fails,
// but a deletion goes on: it affects only things that the instance owns.
func (t adoption) answered(ctx context.Context, a answer, now time.Time) (lifecycle.Record, []ledger.Change, error) {
	v := a.judge(t.record.Operation, now)
	if v.Done || errors.As(a.err, new(*provider.Failure)) && t.record.Operation.Kind.Deletes() {
		return t.record.Adopted().Looked(now, lifecycle.Look{}), nil, nil
	}
	return t.judged(ctx, t.record, v, now)
}
