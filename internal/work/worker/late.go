package worker

import (
	"context"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// lookLate deletes once more, in one call, in case an earlier call took effect late. If the
// call does not prove the absence, the reaper starts another late look.
func (s *step) lookLate(ctx context.Context) (workflow.Outcome, error) {
	// The operation has another id than the deletion, which the cloud counts as done, but the
	// same start: a provider that must wait some time after the start has already waited.
	was := s.record.Operation
	op := &lifecycle.Operation{ID: was.ID + "-late", Kind: lifecycle.Deprovision, Started: was.Started}
	if s.record.IsBinding() {
		op.Kind = lifecycle.Unbind
	}
	if until := s.record.Busy(s.record.Operation.ID, s.at, s.witness()); !until.IsZero() {
		return settled, nil // another step may be calling the cloud: the reaper looks again
	}
	ask, err := s.question(ctx, s.reading, op)
	if err != nil {
		return workflow.Outcome{}, err
	}
	holder := s.begins()
	defer s.over(holder)
	if ok, err := s.lease(ctx, holder); err != nil || !ok {
		return settled, err // another writer was faster: the reaper looks again
	}
	status, callErr := s.call(ctx, s.record.Provider, ask)
	return settled, repeat(ctx, func(ctx context.Context, first bool) (err error) {
		if !first {
			if s.reading, err = s.read(ctx, s.ref.Token.Key); err != nil {
				return err
			}
		}
		lease := answeredBy(holder, callErr)
		next, absent := lease.of(s.record), callErr == nil && status.Done
		switch {
		case s.record.LooksLate(s.ref.Token.Operation, s.ref.Attempt):
			next = next.LookedLate(s.Now(), absent)
			if callErr != nil && !s.logTrouble(ctx, next.Provider, callErr) {
				s.Log.WarnContext(ctx, "looking for what came late after a deletion met a fault; it will be repeated",
					"execution", s.ref.Name(), "error", callErr)
			}
		case !lease.frees(s.record): // otherwise a new incarnation has begun, and waits for the lease
			return nil
		}
		return s.Records.Commit(ctx, ledger.Put(next))
	})
}
