package reaper

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// lives are the two records that may account for a thing: the record of the id's current life,
// and the record of the former life that made the thing.
type lives struct{ current, former lifecycle.Record }

func (r *Reaper) lives(ctx context.Context, key lifecycle.Key, incarnation string, now time.Time) (l lives, err error) {
	if l.current, err = r.Records.Record(ctx, key, now); err == nil {
		l.former, err = r.Records.Record(ctx, key.Former(incarnation), now)
	}
	return l, err
}

// explain reports whether a tombstone tells why the orphan exists. A kept life has a tombstone
// too, but that does not tell why the record of the kept life is lost.
func (l lives) explain(o lifecycle.Thing, now time.Time) bool {
	return !now.Before(o.KeptUntil) && (l.current.Explains(o) || l.former.Explains(o))
}

// returned reports whether the current life of the id is the thing's own life, so that its record is back.
func (l lives) returned() bool {
	return l.current.Owns(l.former.Incarnation) && l.current.Exists() && l.current.State != lifecycle.Deleting
}

// thing decides what happens to one thing.
func (p *part) thing(ctx context.Context, t lifecycle.Thing) error {
	if t.Broker != "" && t.Broker != p.Whose.Broker {
		return nil // another broker made the thing, and has its record
	}
	now, counted := p.Now(), p.state.Pass.Report.Counted
	counted.Things++
	if odd(t) {
		counted.Odd = some(counted.Odd, limits.Clip(t.Name, limits.Identifier))
		return nil
	}
	c, err := p.Reaper.lives(ctx, t.Key, t.Incarnation, now)
	if err != nil {
		return err
	}
	switch {
	case c.former.InQuarantine(), c.former.IsReleased():
		return p.kept(ctx, t, c)
	case c.current.Owns(t.Incarnation), c.former.Owns(t.Incarnation):
		counted.Owned++
		return nil
	case now.Sub(t.Created) < youngFor:
		counted.Young++
		return nil
	}
	return p.orphan(ctx, t, c)
}

// kept handles a thing of a former life that is in quarantine or was released. Once its record
// is back or a tombstone explains it, an orphan does not wait for its date.
func (p *part) kept(ctx context.Context, t lifecycle.Thing, c lives) error {
	now, counted := p.Now(), p.state.Pass.Report.Counted
	may := p.known && !p.DryRun
	switch is := c.former; {
	case !is.OfOrphan() && t.KeptUntil.IsZero(), // its server was restored to a time before the deletion
		is.OfOrphan() && is.Kept.Name != t.Name: // the life has two things
		counted.Odd = some(counted.Odd, t.Name)
	case !is.OfOrphan():
		counted.Retained++
	case may && c.current.Explains(t):
		counted.Deleted = some(counted.Deleted, t.Name)
		return p.endQuarantine(ctx, c, now, p.report)
	case is.IsReleased():
		counted.Released++
	case may && c.returned() && is.State != lifecycle.Releasing:
		counted.InQuarantine++
		return p.release(ctx, c, now, p.report)
	default:
		counted.InQuarantine++
	}
	return nil
}

// orphan decides what happens to a thing without a record. If a tombstone explains it, it is deleted.
// Otherwise its record was most likely lost, and it goes into quarantine so that its users notice.
func (p *part) orphan(ctx context.Context, orphan lifecycle.Thing, c lives) error {
	now, counted, name := p.Now(), p.state.Pass.Report.Counted, orphan.Name
	explained := c.explain(orphan, now)
	seen, err := p.InventoryOptions.Records.Sighting(ctx, orphan.Provider, name, now)
	switch {
	case err != nil:
		return fmt.Errorf("reading when %q was seen first: %w", name, err)
	case seen.First.IsZero():
		seen.First = now
		counted.Sighted++
		return p.Reaper.Records.Commit(ctx, ledger.Put(seen))
	case now.Sub(seen.First) < apart || !p.known:
		counted.Sighted++
		return nil
	case p.DryRun && explained:
		counted.Deleted = some(counted.Deleted, name)
		return nil
	case p.DryRun:
		counted.Quarantined = some(counted.Quarantined, name)
		return nil
	case p.state.Unseen.Holds(orphan.Created):
		return p.halt(ctx, fmt.Sprintf("no inventory was taken from %s to %s, and a thing of that time has no record: the table "+
			"may be as it was at an earlier time",
			p.state.Unseen.From.UTC().Format(time.RFC3339), p.state.Unseen.To.UTC().Format(time.RFC3339)))
	case p.state.Orphans >= aDay(p.state.Things):
		return p.halt(ctx, fmt.Sprintf("more than %d things without a record in a day", aDay(p.state.Things)))
	}
	return p.act(ctx, orphan, c, explained, seen)
}

// aDay returns how many orphans may be handled in a day, given the number of things that exist.
func aDay(things int) int { return min(maxADay, max(minADay, things/100)) }

// some adds a name to a list, up to the list's greatest length.
func some(names []string, name string) []string {
	if len(names) >= listed {
		return names
	}
	return append(names, name)
}

// act gives the orphan a record whose operation deletes it, if a tombstone explains it, or puts it into quarantine. A
// kept thing gets its kept record back. The same commit raises the day's count, so that no run exceeds the limit.
func (p *part) act(ctx context.Context, orphan lifecycle.Thing, c lives, explained bool, seen ledger.Sighting) error {
	var former lifecycle.Record
	var err error
	counted, now, name := p.state.Pass.Report.Counted, p.Now(), orphan.Name
	switch {
	case explained:
		former, err = c.former.BeginOrphanDeletion(p.start(now), orphan)
		counted.Deleted = some(counted.Deleted, name)
	case !orphan.KeptUntil.IsZero():
		former, err = c.former.RebuildKept(orphan, lifecycle.Attributes{PlanID: orphan.PlanID}, now)
		counted.Retained++
	default:
		former, err = c.former.BeginQuarantine(p.start(now), orphan)
		counted.Quarantined = some(counted.Quarantined, name)
	}
	if err != nil {
		return err
	}
	p.state.Orphans++
	if err := p.Reaper.Records.Commit(ctx, ledger.Put(former), ledger.Check(c.current), ledger.Delete(seen),
		ledger.Put(p.state)); err != nil {
		return fmt.Errorf("dealing with orphan %q: %w", name, err)
	}
	p.state.Version++
	switch former.State {
	case lifecycle.Deleting:
		p.report.Orphans++
		p.Log.Warn("an orphan that a tombstone explains is being deleted", "thing", name, "provider", orphan.Provider)
	case lifecycle.Quarantined:
		p.Log.Error("a retained thing had lost its record, and has one again", "thing", name, "provider", orphan.Provider,
			"until", former.Kept.Until)
		return nil
	default:
		p.report.Quarantined++
		p.Log.Error("an orphan that nothing explains is put into quarantine: its record may be lost, and somebody may use it",
			"thing", name, "provider", orphan.Provider, "deleted_from", former.Kept.Until)
	}
	return p.drive(ctx, former)
}
