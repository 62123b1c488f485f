// Package reaper wires the function of the scheduled sweep. It links no driver of a database server: it lists what is on
// shared servers through the function inside the VPC.
package reaper

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

// sweepLimit ends a sweep with time left to record what it did. sweepLease runs out
// only when its holder is certainly dead.
const (
	sweepLimit = app.ReaperTimeout - 10*time.Second
	sweepLease = app.ReaperTimeout + 30*time.Second
)

// New makes the handler of functions/reaper.
func New(_ context.Context, p deployed.Parts) (func(ctx context.Context) (reaper.Report, error), error) {
	set, err := p.Required(app.EnvTable, app.EnvStateMachine, app.EnvStack, app.EnvBroker)
	if err != nil {
		return nil, err
	}
	dryRun, err := app.Flag(p.Getenv, app.EnvReaperDryRun)
	if err != nil {
		return nil, err
	}
	p.Offered, p.Lists = nil, true // it looks no plan up
	wired, err := providers.Wired(p)
	if err != nil {
		return nil, err
	}
	records, whose := p.Records(set[app.EnvTable]), ledger.Identity{Deployment: set[app.EnvStack], Broker: set[app.EnvBroker]}
	engine := stepfunctions.New(p.Starter, p.Invoker, stepfunctions.Options{StateMachine: set[app.EnvStateMachine], Log: p.Log})
	sweeper := reaper.New(reaper.Options{
		Records: records, Start: engine.Start, Now: app.Now, NewID: app.NewID,
		OperationTimeout: app.OperationTimeout, Lease: sweepLease, Log: p.Log,
		Inventory: providers.Inventory(records, whose, dryRun, wired),
	})
	return func(ctx context.Context) (_ reaper.Report, err error) {
		defer p.Recovered(ctx, &err)
		ctx, cancel := context.WithTimeout(ctx, sweepLimit)
		defer cancel()
		report, err := sweeper.Sweep(ctx)
		report.Log(p.Log, err)
		countSweep(p.Metrics, report)
		return report, err
	}, nil
}

// countSweep writes the metrics of a sweep. A sweep that found nothing writes none:
// CloudWatch bills a metric for each hour in which it is written.
func countSweep(m *metrics.Metrics, r reaper.Report) {
	if r.Busy {
		return
	}
	if due := r.Redriven + r.Overdue; due > 0 {
		m.Write(nil, nil, metrics.Value{Name: metrics.PastDue, N: float64(due)})
	}
	if r.Halted {
		m.Write(nil, nil, metrics.Value{Name: metrics.Halted, N: 1})
	}
	if r.Unreached {
		m.Write(nil, nil, metrics.Value{Name: metrics.Trouble, N: 1})
	}
	for what, n := range map[string]int{
		"redriven": r.Redriven, "overdue": r.Overdue, "reclaimed": r.Reclaimed, "looks": r.Looks,
		"orphans": r.Orphans + r.Ended, "quarantined": r.Quarantined, "released": r.Released, "dropped": r.Dropped,
		"faults": r.Faults,
	} {
		if n > 0 {
			m.Write(map[string]string{metrics.DimensionWhat: what}, nil, metrics.Value{Name: metrics.Reaped, N: float64(n)})
		}
	}
}
