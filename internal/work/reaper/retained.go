package reaper

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// retained deals with a retained thing that is due: it begins the removal when its time
// is over, and starts a lost removal again.
func (r *Reaper) retained(ctx context.Context, listed lifecycle.Retained, now time.Time, report *Report) error {
	kept, err := r.Records.Retained(ctx, listed.Key, listed.Incarnation)
	if err != nil || kept.Version == 0 || kept.Due.After(now) {
		return err
	}
	if kept.Phase == lifecycle.Restoring {
		return r.restoring(ctx, kept, now)
	}
	count := &report.Removed
	if kept.Phase == lifecycle.Removing {
		if count = &report.Redriven; kept.Faults > 0 {
			count = &report.Outlived
			r.Log.ErrorContext(ctx, "a retained thing is past its time, and could not be removed yet", "thing", kept.Name, "provider", kept.Provider,
				"until", kept.Until, "faults", kept.Faults, "error", kept.Fault)
		}
		kept = kept.Redriven(now)
	} else {
		kept = kept.BeginRemoval(r.NewID(), now)
	}
	if err := r.commit(ctx, count, ledger.Put(kept)); err != nil {
		return err
	}
	ref := workflow.Ref{Token: kept.Token(), Attempt: kept.Attempt}
	ctx = logs.Begin(ctx)
	logs.AddSubject(ctx, kept.Key.Platform, kept.Key.Instance, "")
	logs.AddOperation(ctx, ref.Token)
	r.Log.InfoContext(ctx, "removing a retained thing whose time is over", "thing", kept.Name, "provider", kept.Provider, "until", kept.Until)
	if err := r.Start(ctx, ref); err != nil {
		return fmt.Errorf("starting %q: %w", ref.Name(), err)
	}
	return nil
}

// restoring looks whether an instance is still being made from the retained thing. That
// ends with the operation on the instance, unless its record is lost.
func (r *Reaper) restoring(ctx context.Context, kept lifecycle.Retained, now time.Time) error {
	i, err := r.Records.Record(ctx, kept.Into, now)
	if err != nil {
		return err
	}
	if of := i.Undeletes; i.Exists() && of != nil && of.Incarnation == kept.Incarnation && of.Instance == kept.Key.Instance {
		return r.Records.Commit(ctx, ledger.Put(kept.Awaited(now)))
	}
	return r.Records.Commit(ctx, ledger.Put(kept.GivenBack(now)), ledger.Check(i))
}

// unrecorded gives a retained thing its record again, once it was seen twice without
// one. It is no orphan, and is removed when its time is over.
func (p *part) unrecorded(ctx context.Context, o lifecycle.Orphan, t Thing) error {
	now, counted := p.Now(), p.state.Pass.Report.Counted
	seen, err := p.InventoryOptions.Records.Sighting(ctx, o.Provider, t.Name, now)
	switch {
	case err != nil:
		return fmt.Errorf("reading when %q was seen first: %w", t.Name, err)
	case seen.First.IsZero():
		seen.First = now
		counted.Sighted++
		return p.Reaper.Records.Commit(ctx, ledger.Put(seen))
	case now.Sub(seen.First) < apart || !p.known || p.DryRun:
		counted.Sighted++
		return nil
	}
	found := lifecycle.RetainedFound(o, t.Name, t.PlanID, t.RetainedUntil, now)
	if err := p.Reaper.Records.Commit(ctx, ledger.Put(found), ledger.Delete(seen)); err != nil {
		return fmt.Errorf("recording that %q is retained: %w", t.Name, err)
	}
	counted.Retained++
	p.Log.Error("a retained thing had lost its record, and has one again", "thing", t.Name, "provider", o.Provider, "until", found.Until)
	return nil
}
