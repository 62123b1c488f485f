// Package inprocess drives operations by goroutines of this process. It needs a step to
// call. It keeps nothing: what was running when the process died is resumed from the
// records.
package inprocess

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
)

// Options configure an Engine; every member has a default.
type Options struct {
	// Sleep waits for d or until ctx is done. Default: a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Log gets a line for each execution that ends with an error.
	Log *slog.Logger
}

// An Engine is a workflow.Engine. Close it to stop.
type Engine struct {
	step  workflow.Step
	sleep func(ctx context.Context, d time.Duration) error
	log   *slog.Logger

	ctx    context.Context // of all executions
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running map[string]chan struct{} // by execution name; closed when it ends
}

// ErrClosed says that the engine is stopping; the operation goes on at the next start.
var ErrClosed = errors.New("workflow engine is closed")

// New makes an engine that calls step.
func New(step workflow.Step, o Options) *Engine {
	if o.Sleep == nil {
		o.Sleep = waiting.For
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Engine{step: step, sleep: o.Sleep, log: o.Log, ctx: ctx, cancel: cancel, running: map[string]chan struct{}{}}
}

// Start implements workflow.Engine.
func (e *Engine) Start(_ context.Context, ref workflow.Ref) error {
	_, err := e.start(ref)
	return err
}

// Finish implements workflow.Engine.
func (e *Engine) Finish(ctx context.Context, ref workflow.Ref) error {
	done, err := e.start(ref)
	if err != nil {
		return err
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	return nil
}

// Resume starts the executions that were running when the last process ended.
func (e *Engine) Resume(refs []workflow.Ref) error {
	for _, ref := range refs {
		if _, err := e.start(ref); err != nil {
			return fmt.Errorf("resuming %q: %w", ref.Name(), err)
		}
	}
	return nil
}

// Close stops all executions after their current call and waits for them.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel()
	e.wg.Wait()
}

func (e *Engine) start(ref workflow.Ref) (<-chan struct{}, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	if done, ok := e.running[ref.Name()]; ok {
		return done, nil
	}
	done := make(chan struct{})
	e.running[ref.Name()] = done
	e.wg.Go(func() {
		defer func() {
			e.mu.Lock()
			delete(e.running, ref.Name())
			e.mu.Unlock()
			close(done)
		}()
		e.drive(ref)
	})
	return done, nil
}

// drive is the whole state machine: step, choice, wait.
func (e *Engine) drive(ref workflow.Ref) {
	for {
		outcome, err := e.safely(ref)
		if err != nil {
			if e.ctx.Err() == nil {
				e.log.Error("execution ended; the reaper will start the operation again", "execution", ref.Name(), "error", err)
			}
			return
		}
		if outcome.Settled || e.sleep(e.ctx, outcome.Wait) != nil {
			return
		}
	}
}

// safely turns a panic of a step into an error, which ends the execution and not the
// process.
func (e *Engine) safely(ref workflow.Ref) (outcome workflow.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = logs.Panicked(e.ctx, e.log, p, "execution", ref.Name())
		}
	}()
	return e.step(e.ctx, ref)
}
