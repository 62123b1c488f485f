// Package provisioner wires the function that carries out the steps of operations. Deployed a
// second time, into a VPC, the function makes the calls of providers there. It is the only
// function that links the code of all providers.
package provisioner

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/adapters"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/remote"
	"github.com/longshore/longshore/internal/records/vault/kms"
	"github.com/longshore/longshore/internal/work/stepfunctions"
	"github.com/longshore/longshore/internal/work/worker"
)

// New returns the handler of functions/provisioner for the role that the function is deployed in.
func New(_ context.Context, p deployed.Parts) (any, error) {
	if p.Getenv(app.EnvRole) == app.RoleCalls {
		return NewCalls(p)
	}
	return NewSteps(p)
}

// Steps carries out the steps that Step Functions or the API asks for, and the inquiries of pages.
type Steps func(ctx context.Context, in stepfunctions.Input) (stepfunctions.Output, error)

// NewSteps returns the handler outside of a VPC.
func NewSteps(p deployed.Parts) (Steps, error) {
	if err := p.Required(app.EnvTable, app.EnvKey); err != nil {
		return nil, err
	}
	wired, err := providers.Wired(p)
	if err != nil {
		return nil, err
	}
	offered, err := p.Offered()
	if err != nil {
		return nil, err
	}
	steps := worker.New(worker.Options{
		Records: p.Records(), Vault: p.Vault(), Plans: offered, Providers: wired,
		Now: app.Now, NewID: app.NewID, Log: p.Log, Metrics: p.Metrics, HardTimeout: app.ProvisionerTimeout,
	})
	return func(ctx context.Context, in stepfunctions.Input) (_ stepfunctions.Output, err error) {
		defer p.Recovered(ctx, &err)
		if in.Inquiry != nil {
			steps.Inquire(ctx, *in.Inquiry)
			return stepfunctions.Output{Settled: true}, nil
		}
		ref, err := in.Ref()
		if err != nil {
			return stepfunctions.Output{}, err
		}
		outcome, err := steps.Drive(kms.Together(ctx), ref, sleepUntil(in.Until))
		if err != nil {
			return stepfunctions.Output{}, err
		}
		return stepfunctions.Answer(in, outcome, app.Now())
	}, nil
}

// sleepUntil returns a wait that does not last past the time at which the caller gives up.
func sleepUntil(until time.Time) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		if !until.IsZero() && app.Now().Add(d).After(until) {
			return context.DeadlineExceeded
		}
		return waiting.For(ctx, d)
	}
}

// NewCalls returns the handler inside a VPC. It has no rights, reads no records, and makes the
// calls of providers that the functions outside ask for.
func NewCalls(p deployed.Parts) (*remote.Handler, error) {
	if err := p.Required(app.EnvInVPC); err != nil {
		return nil, err
	}
	names, err := providers.InVPC(p.Getenv)
	if err != nil {
		return nil, err
	}
	served := map[string]remote.Open{}
	for _, name := range names {
		served[name] = adapters.Inside(name, p)
	}
	return remote.NewHandler(served, p.Log), nil
}
