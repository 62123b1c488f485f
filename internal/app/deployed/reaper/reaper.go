// Package reaper wires the function of the scheduled sweep. It links no driver of a database
// server: it lists the things on shared servers through the function inside the VPC.
package reaper

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/work/reaper"
)

// sweepLimit ends a sweep while there is time left to record its results. sweepLease runs out
// only when its holder is certainly dead.
const (
	sweepLimit = app.ReaperTimeout - 10*time.Second
	sweepLease = app.ReaperTimeout + 30*time.Second
)

// New returns the handler of functions/reaper.
func New(_ context.Context, p deployed.Parts) (func(ctx context.Context) (reaper.Report, error), error) {
	if err := p.Required(app.EnvTable, app.EnvStateMachine, app.EnvStack, app.EnvBroker); err != nil {
		return nil, err
	}
	dryRun, err := app.Flag(p.Getenv, app.EnvReaperDryRun)
	if err != nil {
		return nil, err
	}
	p.Offered, p.Lists = nil, true // the reaper looks up no plan
	wired, err := providers.Wired(p)
	if err != nil {
		return nil, err
	}
	records, whose := p.Records(), ledger.Identity{Deployment: p.Getenv(app.EnvStack), Broker: p.Getenv(app.EnvBroker)}
	sweeper := reaper.New(reaper.Options{
		Records: records, Start: p.Engine().Start, Now: app.Now, NewID: app.NewID,
		OperationTimeout: app.OperationTimeout, Lease: sweepLease, Log: p.Log,
		Inventory: providers.Inventory(records, whose, dryRun, wired),
	})
	return func(ctx context.Context) (_ reaper.Report, err error) {
		defer p.Recovered(ctx, &err)
		ctx, cancel := context.WithTimeout(ctx, sweepLimit)
		defer cancel()
		report, err := sweeper.Sweep(ctx)
		report.Log(p.Log, err)
		report.Count(p.Metrics)
		return report, err
	}, nil
}
