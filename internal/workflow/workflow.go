// Package workflow is the contract for driving operations: who calls the next
// step, and when. What a step does is the worker's. The engines stand beside
// it: workflow/inprocess runs them in this process.
package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// A Ref names one execution: an operation, and which attempt at it. It holds
// ids only.
type Ref struct {
	Token   lifecycle.Token
	Attempt int
}

// Name is the execution's name: the random part of the token and the attempt.
func (r Ref) Name() string { return fmt.Sprintf("%s-%d", r.Token.Operation, r.Attempt) }

// An Outcome is what a step tells its engine.
type Outcome struct {
	// Settled: there is nothing more to do for this execution.
	Settled bool
	// Wait is how long to wait before the next step.
	Wait time.Duration
}

// A Step does one step of an execution. It may be called twice, late, or for
// an execution that is over. An error ends the execution: the reaper drives
// the operation again.
type Step func(ctx context.Context, ref Ref) (Outcome, error)

// An Engine drives executions. Both methods may be called by many goroutines.
type Engine interface {
	// Start drives the operation in the background until a step says that it
	// is settled, or fails. Starting the same Ref twice is starting it once.
	// An error means that it may not have been started; the operation's due
	// time then brings it to the reaper.
	Start(ctx context.Context, ref Ref) error

	// Finish drives the operation and waits until it is settled or ctx is
	// done. When ctx is done first it goes on in the background, and that is
	// no error. The caller reads the record to learn what became of it.
	Finish(ctx context.Context, ref Ref) error
}
