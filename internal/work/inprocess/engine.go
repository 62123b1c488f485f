// Package inprocess drives operations with goroutines of this process, and with timers between
// their steps. It needs a step to call. It stores nothing: executions that were running when
// the process died are resumed from the records.
package inprocess

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
)

// Options configure an Engine.
type Options struct {
	// After calls f in a goroutine of its own after d, unless stop is called earlier and
	// returns true. Default: a timer.
	After func(d time.Duration, f func()) (stop func() bool)
	// Inquire asks a provider for facts and records them; nil if no caller asks.
	Inquire func(ctx context.Context, q workflow.Inquiry)
	// Log gets a line for each execution that ends with an error.
	Log *slog.Logger
}

// An Engine is a workflow.Engine. Close stops it.
type Engine struct {
	Options
	step  workflow.Step
	turns chan struct{} // one slot for each inquiry that may run

	ctx    context.Context // the context of all executions
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running map[string]*execution // by name
}

// An execution has not ended yet. Between two steps it is a timer and not a goroutine, since
// operations may wait for hours and a goroutine would keep its stack all that time.
type execution struct {
	workflow.Ref
	ended chan struct{}
	stop  func() bool // cancels the pause; nil before the first pause
}

// ErrClosed says that the engine is stopping; the operation goes on at the next start.
var ErrClosed = errors.New("workflow engine is closed")

// New returns an engine that calls step.
func New(step workflow.Step, o Options) *Engine {
	if o.After == nil {
		o.After = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Engine{
		Options: o, step: step, turns: make(chan struct{}, mostInquiries), ctx: ctx, cancel: cancel,
		running: map[string]*execution{},
	}
}

// Start implements workflow.Engine.
func (e *Engine) Start(_ context.Context, ref workflow.Ref) error {
	_, err := e.start(ref)
	return err
}

// Finish implements workflow.Engine.
func (e *Engine) Finish(ctx context.Context, ref workflow.Ref) error {
	x, err := e.start(ref)
	if err != nil {
		return err
	}
	select {
	case <-x.ended:
	case <-ctx.Done():
	}
	return nil
}

// mostInquiries is how many inquiries run at once. It is small, to leave the providers'
// connections to operations.
const mostInquiries = 2

// Inquire asks for facts in the background.
func (e *Engine) Inquire(_ context.Context, q workflow.Inquiry) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	e.wg.Go(func() {
		select {
		case e.turns <- struct{}{}:
			defer func() { <-e.turns }()
		case <-e.ctx.Done():
			return
		}
		defer func() {
			if p := recover(); p != nil {
				_ = logs.Panicked(e.ctx, e.Log, p) // the panic is in the log
			}
		}()
		e.Options.Inquire(e.ctx, q)
	})
	return nil
}

// Close stops all executions after their current call and waits for them.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.cancel()
	for _, x := range e.running {
		if x.stop != nil && x.stop() {
			e.end(x)
		}
	}
	e.mu.Unlock()
	e.wg.Wait()
}

func (e *Engine) start(ref workflow.Ref) (*execution, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	if x, ok := e.running[ref.Name()]; ok {
		return x, nil
	}
	x := &execution{Ref: ref, ended: make(chan struct{})}
	e.running[ref.Name()] = x
	e.wg.Add(1)
	go e.drive(x)
	return x, nil
}

// drive runs the state machine: step, choice, pause.
func (e *Engine) drive(x *execution) {
	outcome, err := e.safely(x.Ref)
	if err != nil && e.ctx.Err() == nil {
		e.Log.Error("execution ended; the reaper will start the operation again", "execution", x.Name(), "error", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil || outcome.Settled || e.closed {
		e.end(x)
		return
	}
	x.stop = e.After(outcome.Wait, func() { e.drive(x) })
}

// end ends an execution. It is called once for each execution, with the lock held.
func (e *Engine) end(x *execution) {
	delete(e.running, x.Name())
	close(x.ended)
	e.wg.Done()
}

// safely turns a panic of a step into an error, which ends the execution but not the process.
func (e *Engine) safely(ref workflow.Ref) (outcome workflow.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = logs.Panicked(e.ctx, e.Log, p, "execution", ref.Name())
		}
	}()
	if err := e.ctx.Err(); err != nil { // the engine was closed just as the pause ended
		return outcome, err
	}
	return e.step(e.ctx, ref)
}
