package testkit

import (
	"context"

	"github.com/longshore/longshore/internal/lifecycle/workflow"
)

// Idle is an engine that never takes a step.
type Idle struct{}

// Start implements workflow.Engine.
func (Idle) Start(context.Context, workflow.Ref) error { return nil }

// Finish implements workflow.Engine.
func (Idle) Finish(context.Context, workflow.Ref) error { return nil }
