package worker

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// late is the task of a late look: it deletes once more, in one call, in case an earlier call took
// effect late. If the call does not prove the absence, the reaper starts another late look.
type late struct{ *step }

// question implements task. The operation has another id than the deletion, which the cloud counts
// as done, but the same start: a provider that must wait some time after the start has already waited.
func (t late) question(ctx context.Context) (question, error) {
	was := t.record.Operation
	op := &lifecycle.Operation{ID: was.ID + "-late", Kind: lifecycle.Deprovision, Started: was.Started}
	if t.record.IsBinding() {
		op.Kind = lifecycle.Unbind
	}
	return t.step.question(ctx, t.reading, op)
}

// answered implements task.
func (t late) answered(ctx context.Context, a answer, now time.Time) (lifecycle.Record, []ledger.Change, error) {
	if a.err != nil && !t.logTrouble(ctx, t.record.Provider, a.err) {
		t.Log.WarnContext(ctx, "a late look after a deletion met a fault; it will be repeated",
			"execution", t.ref.Name(), "error", a.err)
	}
	return t.record.LookedLate(now, a.err == nil && a.status.Done), nil, nil
}
