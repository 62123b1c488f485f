package reaper

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// lives are the two records that may account for a thing: that of its id's current life, and
// that of the former life that made the thing.
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

// explain reports whether a tombstone tells why the orphan exists. A kept life has a tombstone
// too, which does not tell why the kept record is lost.
func (l lives) explain(o lifecycle.Orphan, now time.Time) bool {
	return !now.Before(o.KeptUntil) && (l.current.Explains(o) || l.former.Explains(o))
}

// returned reports whether the id's current life is the thing's own, whose record is back.
func (l lives) returned() bool {
	return l.current.Owns(l.former.Incarnation) && l.current.Exists() && l.current.State != lifecycle.Deleting
}

// thing decides what to do about one thing.
func (p *part) thing(ctx context.Context, provider string, t Thing) error {
	if t.Broker != "" && t.Broker != p.Whose.Broker {
		return nil // another broker's: its records are elsewhere
	}
	now, counted := p.Now(), p.state.Pass.Report.Counted
	counted.Things++
	if t.odd() {
		counted.Odd = some(counted.Odd, limits.Clip(t.Name, limits.Identifier))
		return nil
	}
	c, err := p.Reaper.lives(ctx, t.Key, t.Incarnation, now)
	if err != nil {
		return err
	}
	orphan := lifecycle.Orphan{Key: t.Key, Incarnation: t.Incarnation, Of: t.Of, Provider: provider, Broker: t.Broker,
		Target: t.Target, Origin: t.Origin, State: t.State, Created: t.Created, KeptUntil: t.KeptUntil}
	switch {
	case c.former.InQuarantine(), c.former.IsReleased():
		return p.kept(ctx, orphan, c, t.Name)
	case c.own(t.Incarnation):
		counted.Owned++
		return nil
	case now.Sub(t.Created) < youngFor:
		counted.Young++
		return nil
	}
	return p.orphan(ctx, orphan, c, t)
}

// kept looks at a thing of a former life that is in quarantine, or was released. An orphan
// does not wait for its date once its record is back, or a tombstone explains it.
func (p *part) kept(ctx context.Context, orphan lifecycle.Orphan, c lives, name string) error {
	now, counted := p.Now(), p.state.Pass.Report.Counted
	may := p.known && !p.DryRun
	switch is := c.former; {
	case !is.OfOrphan() && orphan.KeptUntil.IsZero(), // its server was restored to before its deletion
		is.OfOrphan() && is.Kept.Name != name: // the life has two things
		counted.Odd = some(counted.Odd, name)
	case !is.OfOrphan():
		counted.Retained++
	case may && c.current.Explains(orphan):
		counted.Deleted = some(counted.Deleted, name)
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

// orphan decides about a thing without a record. A tombstone that explains it has it deleted.
// Otherwise its record was most likely lost, and it is put into quarantine until its users
// miss it.
func (p *part) orphan(ctx context.Context, orphan lifecycle.Orphan, c lives, t Thing) error {
	now, counted, name := p.Now(), p.state.Pass.Report.Counted, t.Name
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
	return p.act(ctx, orphan, c, seen, t.PlanID)
}

// aDay is how many orphans may be dealt with in a day, if that many things exist.
func aDay(things int) int { return min(maxADay, max(minADay, things/100)) }

// some adds a name to a list of bounded length.
func some(names []string, name string) []string {
	if len(names) >= listed {
		return names
	}
	return append(names, name)
}

// act gives the orphan a record whose operation deletes it, or puts it into quarantine. A kept
// thing gets its kept record again. The count of the day is in the same commit, so that no run
// exceeds it.
func (p *part) act(ctx context.Context, orphan lifecycle.Orphan, c lives, seen ledger.Sighting, planID string) error {
	var former lifecycle.Record
	var err error
	counted, now, name := p.state.Pass.Report.Counted, p.Now(), seen.Name
	switch explained := c.explain(orphan, now); {
	case explained:
		former, err = c.former.BeginOrphanDeletion(p.start(now), orphan)
		counted.Deleted = some(counted.Deleted, name)
	case !orphan.KeptUntil.IsZero():
		former, err = c.former.RebuildKept(orphan, lifecycle.Attributes{PlanID: planID}, now)
		counted.Retained++
	default:
		former, err = c.former.BeginQuarantine(p.start(now), orphan, name)
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
		p.Log.Error("what a plan keeps had lost its record, and has one again", "thing", name, "provider", orphan.Provider,
			"until", former.Kept.Until)
		return nil
	default:
		p.report.Quarantined++
		p.Log.Error("an orphan that nothing explains is put out of use: the record of something that is in use may be lost",
			"thing", name, "provider", orphan.Provider, "deleted_from", former.Kept.Until)
	}
	return p.drive(ctx, former)
}
