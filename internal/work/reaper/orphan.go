package reaper

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// orphan handles an orphan whose quarantine has ended, or that was released. It deletes the
// orphan if no user has missed it, and forgets the orphan if its own record is back.
func (r *Reaper) orphan(ctx context.Context, former lifecycle.Record, now time.Time, report *Report) error {
	l, err := r.lives(ctx, former.Key.Current(), former.Incarnation, now)
	if err != nil {
		return err
	}
	switch released := l.former.IsReleased(); {
	case released && l.returned():
		return r.Records.Commit(ctx, ledger.Delete(l.former), ledger.Check(l.current))
	case released:
		return r.Records.Commit(ctx, ledger.Put(l.former.LeftAlone(now)))
	case l.returned():
		return r.release(ctx, l, now, report)
	case l.current.Owns(former.Incarnation): // the thing is being deleted
		return r.Records.Commit(ctx, ledger.Put(l.former.Postponed(now)))
	}
	may, err := r.mayDelete(ctx)
	switch {
	case err != nil:
		return err
	case !may:
		return r.Records.Commit(ctx, ledger.Put(l.former.Postponed(now)))
	}
	return r.endQuarantine(ctx, l, now, report)
}

// mayDelete reports whether the table is the right one and the reaper may do more than report.
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

// release begins to put a thing back into use, since its own record is back.
func (r *Reaper) release(ctx context.Context, l lives, now time.Time, report *Report) error {
	former, err := l.former.BeginRelease(r.start(now))
	if err != nil {
		return err
	}
	if err := r.commit(ctx, &report.Released, ledger.Put(former), ledger.Check(l.current)); err != nil {
		return fmt.Errorf("releasing %q: %w", former.Kept.Name, err)
	}
	return r.drive(ctx, former)
}

// endQuarantine begins the deletion of a thing in quarantine.
func (r *Reaper) endQuarantine(ctx context.Context, l lives, now time.Time, report *Report) error {
	former, err := l.former.BeginDelete(r.start(now))
	if err != nil {
		return err
	}
	if err := r.commit(ctx, &report.Ended, ledger.Put(former), ledger.Check(l.current)); err != nil {
		return fmt.Errorf("beginning the deletion of orphan %q: %w", former.Kept.Name, err)
	}
	r.Log.WarnContext(ctx, "an orphan is being deleted at the end of its quarantine", "thing", former.Kept.Name,
		"provider", former.Provider)
	return r.drive(ctx, former)
}
