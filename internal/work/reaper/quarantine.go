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

// quarantine deals with a quarantine that is due. It starts a lost step again, releases
// a thing that has its record back, and deletes a thing that nobody has missed.
func (r *Reaper) quarantine(ctx context.Context, listed lifecycle.Quarantine, now time.Time, report *Report) error {
	q, err := r.Records.Quarantine(ctx, listed.Provider, listed.Name)
	if err != nil || q.Version == 0 || q.Due.IsZero() || q.Due.After(now) {
		return err
	}
	c, err := r.Records.Record(ctx, q.Key, now)
	if err != nil {
		return err
	}
	itself := c.Exists() && c.Incarnation == q.Incarnation
	switch inUse := itself && c.State != lifecycle.Deleting; {
	case inUse && q.Phase != lifecycle.Releasing:
		return r.release(ctx, q, c, now, report)
	case q.Moving():
		q = q.Redriven(now)
		if err := r.commit(ctx, &report.Redriven, ledger.Put(q)); err != nil {
			return err
		}
		return r.driveQuarantine(ctx, q)
	case c.Exists() && !itself && !now.Before(q.Ends):
		// Another incarnation has the id: a person has to decide about what is left
		// of this one.
		return r.Records.Commit(ctx, ledger.Delete(q), ledger.Check(c))
	case c.Exists(), now.Before(q.Ends) && !c.Explains(q.Orphan):
		return r.Records.Commit(ctx, ledger.Put(q.Kept(now)))
	}
	may, err := r.mayDelete(ctx)
	switch {
	case err != nil:
		return err
	case !may:
		return r.Records.Commit(ctx, ledger.Put(q.Kept(now)))
	}
	return r.endQuarantine(ctx, q, c, now, report)
}

// mayDelete reports whether the table is the right one, and the reaper is to do more
// than report.
func (r *Reaper) mayDelete(ctx context.Context) (bool, error) {
	if r.Inventory == nil || r.Inventory.DryRun {
		return false, nil
	}
	state, err := r.Inventory.Records.Inventory(ctx)
	if err != nil || state.Halt != nil {
		return false, err
	}
	whose, err := r.Inventory.Records.Identity(ctx)
	return err == nil && whose.Deployment == r.Inventory.Whose.Deployment && whose.Broker == r.Inventory.Whose.Broker, err
}

// release puts the thing into use again.
func (r *Reaper) release(ctx context.Context, q lifecycle.Quarantine, c lifecycle.Record, now time.Time, report *Report) error {
	q, _ = q.Release(now)
	if err := r.commit(ctx, &report.Released, ledger.Put(q), ledger.Check(c)); err != nil {
		return fmt.Errorf("releasing %q: %w", q.Name, err)
	}
	return r.driveQuarantine(ctx, q)
}

// endQuarantine begins the deletion of what is in quarantine.
func (r *Reaper) endQuarantine(ctx context.Context, q lifecycle.Quarantine, c lifecycle.Record, now time.Time, report *Report) error {
	c, past, err := c.BeginOrphanDeletion(r.start(now), q.Orphan)
	if err != nil {
		return err
	}
	if err := r.commit(ctx, &report.Ended, ledger.Put(c), ledger.PutPast(past), ledger.Delete(q)); err != nil {
		return fmt.Errorf("beginning the deletion of orphan %q: %w", q.Name, err)
	}
	r.Log.WarnContext(ctx, "an orphan is being deleted at the end of its quarantine", "thing", q.Name, "provider", q.Provider)
	return r.drive(ctx, c)
}

// driveQuarantine starts the execution that changes whether a thing is in use.
func (r *Reaper) driveQuarantine(ctx context.Context, q lifecycle.Quarantine) error {
	ref := workflow.Ref{Token: q.Token(), Attempt: q.Attempt}
	ctx = logs.Begin(ctx)
	logs.AddSubject(ctx, q.Key.Platform, q.Key.Instance, q.Key.Binding)
	logs.AddOperation(ctx, ref.Token)
	if err := r.Start(ctx, ref); err != nil {
		return fmt.Errorf("starting %q: %w", ref.Name(), err)
	}
	return nil
}
