package worker

import (
	"context"
	"errors"

	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/workflow"
)

// lateOperation is what a provider is told of a late look. It has an id of its
// own: to the cloud, the deletion that it follows has been done.
func (w *Worker) lateOperation(c lifecycle.Course, kind provider.Kind) provider.Operation {
	return provider.Operation{ID: c.Operation.ID + "-late", Kind: kind, Started: w.Now()}
}

// lookLateAtInstance removes what came late of a deleted instance. It is one
// call: if that does not see an absence, the reaper has it made again.
func (w *Worker) lookLateAtInstance(ctx context.Context, ref workflow.Ref, i lifecycle.Instance) (workflow.Outcome, error) {
	a := i.Attributes
	in := provider.Instance{
		Platform: i.Key.Platform, ID: i.Key.Instance, Incarnation: i.Incarnation, ServiceID: a.ServiceID, PlanID: a.PlanID,
		Operation: w.lateOperation(i.Course, provider.KindDeprovision), Settings: w.settings(a.ServiceID, a.PlanID),
	}
	holder := w.begins()
	defer w.over(holder)
	i, ok, err := w.leaseInstance(ctx, holder, i, w.Now())
	if err != nil || !ok {
		return settled, err // another writer was faster: the reaper looks again
	}
	status, callErr := w.call(ctx, i.Provider, func(ctx context.Context, p provider.Provider) (provider.Status, error) {
		return p.Deprovision(ctx, in)
	})
	return settled, repeat(ctx, func(ctx context.Context, first bool) (err error) {
		if !first {
			if i, err = w.Records.Instance(ctx, i.Key, w.Now()); err != nil {
				return err
			}
		}
		next, write := w.lookedLate(ctx, ref, i.Course, holder, status, callErr)
		if !write {
			return nil
		}
		i.Course = next
		return w.Records.Commit(ctx, ledger.PutInstance(i))
	})
}

// lookLateAtBinding does the same for a deleted binding.
func (w *Worker) lookLateAtBinding(ctx context.Context, ref workflow.Ref, b lifecycle.Binding) (workflow.Outcome, error) {
	in := provider.Binding{
		Instance: provider.Instance{
			Platform: b.Key.Platform, ID: b.Key.Instance, Incarnation: b.InstanceIncarnation, ServiceID: b.ServiceID, PlanID: b.PlanID,
			Operation: w.lateOperation(b.Course, provider.KindUnbind), Settings: w.settings(b.ServiceID, b.PlanID),
		},
		ID: b.Key.Binding, Incarnation: b.Incarnation,
	}
	now := w.Now()
	holder := w.begins()
	defer w.over(holder)
	b.Course = b.Leased(holder, now, w.until(now), w.witness())
	err := w.Records.Commit(ctx, ledger.PutBinding(b))
	if errors.Is(err, ledger.ErrConflict) {
		return settled, nil
	}
	if err != nil {
		return workflow.Outcome{}, err
	}
	b.Version++
	status, callErr := w.call(ctx, b.Provider, func(ctx context.Context, p provider.Provider) (provider.Status, error) {
		return p.Unbind(ctx, in)
	})
	return settled, repeat(ctx, func(ctx context.Context, first bool) (err error) {
		if !first {
			if b, err = w.Records.Binding(ctx, b.Key, w.Now()); err != nil {
				return err
			}
		}
		next, write := w.lookedLate(ctx, ref, b.Course, holder, status, callErr)
		if !write {
			return nil
		}
		b.Course = next
		return w.Records.Commit(ctx, ledger.PutBinding(b))
	})
}

// lookedLate is the record after a late look, and whether it is to be written.
// Where a new incarnation has begun, only the lease is given up: that one waits
// for it.
func (w *Worker) lookedLate(ctx context.Context, ref workflow.Ref, c lifecycle.Course, holder string, status provider.Status, err error) (lifecycle.Course, bool) {
	holder = onItsWay(holder, err)
	held := c.Holds(holder)
	c = c.Released(holder)
	if !c.LooksLate(ref.Token.Operation, ref.Attempt) {
		return c, held
	}
	if err != nil {
		w.Log.WarnContext(ctx, "looking for what came late after a deletion met a fault; it will be repeated", "execution", ref.Name(),
			"error", err)
	}
	return c.LookedLate(w.Now(), err == nil && status.Done), true
}
