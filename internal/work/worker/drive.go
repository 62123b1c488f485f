package worker

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/lifecycle/workflow"
)

// Patience is the longest pause for which Drive itself waits. A longer pause is left to the
// engine, where waiting costs nothing.
const Patience = 10 * time.Second

// Drive does step after step as long as the next step is near and fits before the deadline of ctx,
// after which nothing can be recorded. It returns the last outcome; unless that is settled, the
// caller waits and calls again. Sleep waits for the duration or until its context is done.
func (w *Worker) Drive(ctx context.Context, ref workflow.Ref, sleep func(context.Context, time.Duration) error) (
	workflow.Outcome, error) {
	for {
		outcome, err := w.Step(ctx, ref)
		if err != nil || outcome.Settled || outcome.Wait > Patience || !w.timeFor(ctx, outcome.Wait) {
			return outcome, err
		}
		if sleep(ctx, outcome.Wait) != nil {
			return outcome, nil // the caller's time is over: the work goes on elsewhere
		}
	}
}

// timeFor reports whether a whole step fits between the pause and the deadline.
func (w *Worker) timeFor(ctx context.Context, pause time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || deadline.Sub(w.Now()) > pause+w.longest+recordTimeout
}
