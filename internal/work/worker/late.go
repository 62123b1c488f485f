package worker

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// lookLate removes what came late of what was deleted. It is one call: if that
// does not see an absence, the reaper has it made again.
func (w *Worker) lookLate(ctx context.Context, ref workflow.Ref, s subject) (workflow.Outcome, error) {
	r := s.record
	// The operation has an id of its own: to the cloud, the deletion that it
	// follows has been done.
	late := &lifecycle.Operation{ID: r.Operation.ID + "-late", Kind: lifecycle.Deprovision, Started: w.Now()}
	if r.IsBinding() {
		late.Kind = lifecycle.Unbind
	}
	if until := r.Busy(r.Operation.ID, w.Now(), w.witness()); !until.IsZero() {
		return settled, nil // another step may be calling: the reaper looks again
	}
	ask, err := w.question(ctx, s, late)
	if err != nil {
		return workflow.Outcome{}, err
	}
	holder := w.begins()
	defer w.over(holder)
	s.at = w.Now()
	s, ok, err := w.lease(ctx, holder, s)
	if err != nil || !ok {
		return settled, err // another writer was faster: the reaper looks again
	}
	status, callErr := w.call(ctx, r.Provider, ask)
	r = s.record
	return settled, repeat(ctx, func(ctx context.Context, first bool) (err error) {
		if !first {
			if r, err = w.Records.Record(ctx, r.Key, w.Now()); err != nil {
				return err
			}
		}
		next, write := w.lookedLate(ctx, ref, r, holder, status, callErr)
		if !write {
			return nil
		}
		var kept ledger.Change
		if callErr == nil && status.Done { // what came late may be retained as what was there in time
			if kept, err = w.retains(ctx, r, status.Retained, w.Now()); err != nil {
				return err
			}
		}
		return w.Records.Commit(ctx, ledger.Put(next), kept)
	})
}

// lookedLate is the record after a late look, and whether it is to be written.
// Where a new incarnation has begun, only the lease is given up: that one waits
// for it.
func (w *Worker) lookedLate(ctx context.Context, ref workflow.Ref, r lifecycle.Record, holder string, status provider.Status,
	err error) (lifecycle.Record, bool) {
	lease := answeredBy(holder, err)
	frees := lease.frees(r)
	r = lease.of(r)
	if !r.LooksLate(ref.Token.Operation, ref.Attempt) {
		return r, frees
	}
	if err != nil && !w.logTrouble(ctx, r.Provider, err) {
		w.Log.WarnContext(ctx, "looking for what came late after a deletion met a fault; it will be repeated", "execution", ref.Name(),
			"error", err)
	}
	return r.LookedLate(w.Now(), err == nil && status.Done), true
}
