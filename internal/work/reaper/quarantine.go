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
	c, err := r.lives(ctx, q.Key, q.Incarnation, now)
	if err != nil {
		return err
	}
	itself := c.own(q.Incarnation)
	switch inUse := c.current.Owns(q.Incarnation) && c.current.Exists() && c.current.State != lifecycle.Deleting; {
	case inUse && q.Phase != lifecycle.Releasing:
		return r.release(ctx, q, c.current, now, report)
	case q.Moving():
		q = q.Redriven(now)
		if err := r.commit(ctx, &report.Redriven, ledger.Put(q)); err != nil {
			return err
		}
		return r.driveQuarantine(ctx, q)
	case itself, now.Before(q.Ends) && !c.explain(q.Orphan, now):
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
func (r *Reaper) endQuarantine(ctx context.Context, q lifecycle.Quarantine, c lives, now time.Time, report *Report) error {
	former, err := c.former.BeginOrphanDeletion(r.start(now), q.Orphan)
	if err != nil {
		return err
	}
	if err := r.commit(ctx, &report.Ended, ledger.Put(former), ledger.Check(c.current), ledger.Delete(q)); err != nil {
		return fmt.Errorf("beginning the deletion of orphan %q: %w", q.Name, err)
	}
	r.Log.WarnContext(ctx, "an orphan is being deleted at the end of its quarantine", "thing", q.Name, "provider", q.Provider)
	return r.drive(ctx, former)
}

// lives are the two records that may account for what exists: that of what has the id
// now, and that of the former life which made the thing.
type lives struct{ current, former lifecycle.Record }

func (r *Reaper) lives(ctx context.Context, key lifecycle.Key, incarnation string, now time.Time) (l lives, err error) {
	if l.current, err = r.Records.Record(ctx, key, now); err == nil {
		l.former, err = r.Records.Record(ctx, key.Former(incarnation), now)
	}
	return l, err
}

func (l lives) own(incarnation string) bool {
	return l.current.Owns(incarnation) || l.former.Owns(incarnation)
}

// explain reports whether a tombstone tells why the orphan exists. A deletion that kept it
// has a tombstone, too, and does not tell why the record of what is kept is lost.
func (l lives) explain(o lifecycle.Orphan, now time.Time) bool {
	return !now.Before(o.KeptUntil) && (l.current.Explains(o) || l.former.Explains(o))
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
