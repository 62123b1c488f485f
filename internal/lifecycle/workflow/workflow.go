// Package workflow is the contract of the engines that drive operations: work/inprocess and
// work/stepfunctions. An engine decides when the next step is called; the worker decides
// what a step does.
package workflow

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// A Ref names one execution: an operation, and the attempt at it. It holds ids only.
type Ref struct {
	Token   lifecycle.Token
	Attempt int
}

// Of names the execution that continues the record's work: that of its operation, or of a tombstone's late look.
func Of(r lifecycle.Record) Ref {
	return Ref{Token: r.Token(), Attempt: cmp.Or(r.LateAttempt, r.Operation.Attempt)}
}

// Name returns the execution's name: the random part of the token and the attempt.
func (r Ref) Name() string { return fmt.Sprintf("%s-%d", r.Token.Operation, r.Attempt) }

// An Outcome is what a step tells its engine.
type Outcome struct {
	// Settled says that there is nothing more to do for this execution.
	Settled bool
	// Wait is how long to wait before the next step.
	Wait time.Duration
}

// A Step does one step of an execution. It may be called twice, late, or for an
// execution that is over. An error ends the execution: the reaper starts the operation
// again.
type Step func(ctx context.Context, ref Ref) (Outcome, error)

// An Inquiry asks a provider for the facts of an instance. Its maker has claimed it by a write,
// after which the facts' record has this version: a second inquiry, or a late one, has nothing
// to write. It holds ids only.
type Inquiry struct {
	Key         lifecycle.Key `json:"key"`
	Incarnation string        `json:"incarnation"`
	Asked       time.Time     `json:"asked"`
	Version     int64         `json:"version"`
}

// HandOver is how long Finish may take once its context is done. Hazard: a request has
// little time left by then, and without an answer a platform deletes what goes on. An
// operation that cannot be handed over in that time is started by the reaper.
const HandOver = time.Second

// An Engine drives executions. Both methods may be called by many goroutines.
type Engine interface {
	// Start drives the operation in the background until a step says that it is settled,
	// or fails. Starting the same Ref twice is the same as starting it once. After an
	// error it may not have been started; the reaper then starts it when it is due.
	Start(ctx context.Context, ref Ref) error

	// Finish drives the operation and waits until it is settled or ctx is done. If ctx is
	// done first, the operation goes on in the background, and Finish returns no error.
	// The caller reads the record to learn how the operation stands.
	Finish(ctx context.Context, ref Ref) error
}
