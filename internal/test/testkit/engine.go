package testkit

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/lifecycle/workflow"
)

// Idle is an engine that never takes a step.
type Idle struct{}

// Start implements workflow.Engine.
func (Idle) Start(context.Context, workflow.Ref) error { return nil }

// Finish implements workflow.Engine.
func (Idle) Finish(context.Context, workflow.Ref) error { return nil }

// A Driver is an engine that drives each operation to its end at once: what a step waits for, it moves the clock on.
type Driver struct {
	Kit   *Kit // whose worker takes the steps
	Clock *time.Time
	Idle  bool // what is started takes no step
}

// Start implements workflow.Engine. It does not end with the request: engines drive on when a request has ended.
func (d *Driver) Start(ctx context.Context, ref workflow.Ref) error {
	if d.Idle {
		return nil
	}
	return d.Finish(context.WithoutCancel(ctx), ref)
}

// Finish implements workflow.Engine.
func (d *Driver) Finish(ctx context.Context, ref workflow.Ref) error {
	w := d.Kit.Worker()
	for range 100 {
		outcome, err := w.Step(ctx, ref)
		if err != nil || outcome.Settled {
			return err
		}
		*d.Clock = d.Clock.Add(max(outcome.Wait, time.Millisecond))
	}
	return errors.New("it never ends")
}
