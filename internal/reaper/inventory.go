package reaper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/limits"
)

// A Thing is something that exists in the cloud, with what its tags say.
type Thing struct {
	Name string
	// Broker is the identity of the broker that made it; empty on what was made
	// before brokers had one.
	Broker      string
	Key         lifecycle.Key
	Incarnation string
	// Target is where it was made.
	Target lifecycle.Target
	// State is what its deletion needs beside the ids; nil for nothing.
	State   []byte
	Created time.Time
	// RetainedUntil is set on what is retained of a deleted instance, of which PlanID
	// was the plan.
	RetainedUntil time.Time
	PlanID        string
}

// odd reports whether a thing is none that this broker could have made: it lacks its
// tags, or no record could hold what it says.
func (t Thing) odd() bool {
	said := []string{t.Name, t.Key.Platform, t.Key.Instance, t.Key.Binding, t.Incarnation}
	return t.Key.Platform == "" || t.Key.Instance == "" || t.Incarnation == "" || len(t.State) > maxState ||
		slices.ContainsFunc(said, func(text string) bool { return len(text) > limits.Identifier })
}

// A Lister lists everything that a provider holds, page by page, and changes
// nothing. Cursor is empty for the first page; next is empty at the end. What
// cannot be reached is an error, beside the page and the next one if there are any.
type Lister interface {
	List(ctx context.Context, cursor string) (page []Thing, next string, err error)
}

// InventoryRecords is what an inventory needs of the ledger, which documents it.
type InventoryRecords interface {
	Inventory(ctx context.Context) (ledger.Inventory, error)
	Identity(ctx context.Context) (ledger.Identity, error)
	Sighting(ctx context.Context, provider, name string, now time.Time) (ledger.Sighting, error)
	Retained(ctx context.Context, key lifecycle.Key, incarnation string) (lifecycle.Retained, error)
	NextTargetUse(ctx context.Context, after lifecycle.TargetUse, elsewhere bool) (*lifecycle.TargetUse, error)
}

// InventoryOptions say how what exists is compared to what is recorded.
type InventoryOptions struct {
	Records InventoryRecords
	Listers map[string]Lister // by the providers' names
	// Targets tell the names of the targets that a provider's lister covers by
	// today's settings; none for a provider that makes all things in one place.
	Targets map[string]func(ctx context.Context) ([]string, error)
	// Whose says whose table this must be: its deployment and its broker.
	Whose ledger.Identity
	// Every is the time between two passes.
	Every time.Duration
	// DryRun has it only report what it would do about orphans.
	DryRun bool
}

// An orphan has been seen twice without an owner, is not young, and is one of few:
// a reaper that finds that much of the world has no owner is more likely to be
// wrong than right.
const (
	youngFor = time.Hour
	apart    = 10 * time.Minute
	// A day's orphans, deleted or put out of use, end at maxADay, or at one in
	// hundred of what exists if that is less, but never below minADay.
	maxADay, minADay = 20, 3
	// tardy is how late an inventory may be before the table counts as one that
	// nobody kept meanwhile.
	tardy = 30 * time.Minute
	// aPage is the time that a page of things may take; less is not begun.
	aPage = 10 * time.Second
	// maxState is how large a state that comes with its format may be.
	maxState = limits.State + binary.MaxVarintLen64
	// listed bounds how many names a report holds.
	listed = 100
	// planAgain is how often a process makes sure that an inventory is planned.
	planAgain = time.Hour
)

// plan makes sure that an inventory will be due: in a new table, or in one that
// was emptied, nothing is.
func (r *Reaper) plan(ctx context.Context, now time.Time) error {
	if r.Inventory == nil || now.Before(r.asked.Add(planAgain)) {
		return nil
	}
	planned, err := r.Inventory.Records.Inventory(ctx)
	if err == nil && planned.Version == 0 {
		err = r.Records.Commit(ctx, ledger.PutInventory(ledger.Inventory{Due: now}))
	}
	if err != nil && !errors.Is(err, ledger.ErrConflict) {
		return fmt.Errorf("planning an inventory: %w", err)
	}
	r.asked = now
	return nil
}

// A part is as much of a pass as one run does.
type part struct {
	*Reaper
	*InventoryOptions
	state  ledger.Inventory
	report *Report
	known  bool // whose table this is
	faults []error
}

// takeInventory goes on with the pass, or begins one, for as long as there is
// time. Whatever it did is in the table before it returns; a part that dies is
// done again from where the last one ended.
func (r *Reaper) takeInventory(ctx context.Context, at ledger.Inventory, report *Report) error {
	err := r.goOn(ctx, at, report)
	if errors.Is(err, ledger.ErrConflict) {
		report.Lost++ // a platform, or another run, was faster: next time
		return nil
	}
	return err
}

func (r *Reaper) goOn(ctx context.Context, at ledger.Inventory, report *Report) error {
	p := &part{Reaper: r, InventoryOptions: r.Inventory, state: at, report: report}
	if p.state.Halt != nil {
		report.Halted = true
		return nil
	}
	now := r.Now()
	p.missed(now)
	if p.state.Pass == nil {
		p.state.Pass = &ledger.Pass{Report: ledger.Report{Started: now, Counted: &ledger.Counted{DryRun: p.DryRun}}}
	}
	if now.Sub(p.state.Since) >= 24*time.Hour {
		p.state.Since, p.state.Orphans = now, 0
	}
	identity, err := p.InventoryOptions.Records.Identity(ctx)
	if err != nil {
		return fmt.Errorf("reading whose table this is: %w", err)
	}
	p.known = identity.Version > 0
	switch {
	case !p.known:
	case identity.Deployment != p.Whose.Deployment:
		return p.halt(ctx, fmt.Sprintf("the table is of deployment %q, and this is %q", identity.Deployment, p.Whose.Deployment))
	case identity.Broker == "": // a table of a program that knew of none
		if err := p.identify(ctx, identity); err != nil {
			return err
		}
	case identity.Broker != p.Whose.Broker:
		return p.halt(ctx, fmt.Sprintf("the table is of the broker with the identity %q, and this one is %q: give the broker the identity "+
			"that the table has",
			identity.Broker, p.Whose.Broker))
	}
	names := slices.Sorted(maps.Keys(p.Listers))
	for _, name := range names {
		if name < p.state.Pass.Provider {
			continue
		}
		if name > p.state.Pass.Provider {
			p.state.Pass.Provider, p.state.Pass.Cursor = name, ""
		}
		whole, err := p.provider(ctx, name)
		if err != nil || p.state.Halt != nil {
			return errors.Join(append(p.faults, err)...)
		}
		if !whole {
			p.state.Due = r.Now() // go on in the next run
			return errors.Join(append(p.faults, p.save(ctx))...)
		}
	}
	if err := p.targets(ctx); err != nil {
		return errors.Join(append(p.faults, err)...)
	}
	err = p.finish(ctx)
	return errors.Join(append(p.faults, err)...)
}

// missed notes that no inventory was taken for a while: nothing swept then, or
// the table is what it was at an earlier time, and what was made since has lost
// its record.
func (p *part) missed(now time.Time) {
	if p.state.Due.IsZero() || now.Sub(p.state.Due) <= tardy {
		return
	}
	from := p.state.Due.Add(-p.Every)
	if p.state.Unseen != nil && p.state.Unseen.From.Before(from) {
		from = p.state.Unseen.From
	}
	p.state.Unseen = &ledger.Span{From: from, To: now}
}

// provider looks at what a provider holds, and reports whether it came to the end.
// What cannot be listed leaves the pass incomplete, and the rest is looked at.
func (p *part) provider(ctx context.Context, name string) (whole bool, _ error) {
	for p.timeLeft(ctx) {
		cursor := p.state.Pass.Cursor
		page, next, unreached := p.Listers[name].List(ctx, cursor)
		if unreached != nil {
			p.unreached(name, unreached)
		}
		for _, t := range page {
			if err := p.thing(ctx, name, t); err != nil || p.state.Halt != nil {
				return false, err
			}
		}
		if next == "" || unreached != nil && next == cursor {
			return true, nil
		}
		p.state.Pass.Cursor = next
	}
	return false, nil
}

// unreached notes what could not be listed.
func (p *part) unreached(name string, why error) {
	p.report.Unreached = true
	counted := p.state.Pass.Report.Counted
	said := limits.Clip(fmt.Sprintf("%s: %v", name, why), limits.Description)
	if slices.Contains(counted.Unreached, said) { // a target on several pages
		return
	}
	counted.Unreached = some(counted.Unreached, said)
	p.faults = append(p.faults, fmt.Errorf("listing what provider %q holds: %w", name, why))
}

func (p *part) timeLeft(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || deadline.Sub(p.Now()) > aPage)
}

// thing judges one thing.
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
	c, err := p.Reaper.Records.Record(ctx, t.Key, now)
	if err != nil {
		return err
	}
	if c.Owns(t.Incarnation) {
		counted.Owned++
		return nil
	}
	kept, err := p.InventoryOptions.Records.Retained(ctx, t.Key.InstanceKey(), t.Incarnation)
	switch {
	case err != nil:
		return fmt.Errorf("reading whether %q is retained: %w", t.Name, err)
	case kept.Version > 0 && kept.Name == t.Name:
		counted.Retained++
		return nil
	case c.State == lifecycle.Ready && t.RetainedUntil.IsZero() || kept.Version > 0:
		// Of another life; or its server was restored, and it stands as before its deletion.
		counted.Odd = some(counted.Odd, t.Name)
		return nil
	case now.Sub(t.Created) < youngFor:
		counted.Young++
		return nil
	}
	orphan := lifecycle.Orphan{Key: t.Key, Incarnation: t.Incarnation, Provider: provider, Broker: t.Broker, Target: t.Target, State: t.State,
		Created: t.Created}
	if !t.RetainedUntil.IsZero() {
		return p.unrecorded(ctx, orphan, t)
	}
	return p.orphan(ctx, orphan, c, t.Name)
}

// orphan judges a thing that no record knows of. One that a tombstone explains is
// deleted; of any other one, the record was most likely lost, and it is put out of
// use until somebody misses it.
func (p *part) orphan(ctx context.Context, orphan lifecycle.Orphan, c lifecycle.Record, name string) error {
	now, counted := p.Now(), p.state.Pass.Report.Counted
	q, err := p.Reaper.Records.Quarantine(ctx, orphan.Provider, name)
	if err != nil {
		return fmt.Errorf("reading the quarantine of %q: %w", name, err)
	}
	explained := c.Explains(orphan)
	if q.Version > 0 && q.Incarnation == orphan.Incarnation && !explained {
		if q.Phase == lifecycle.Released {
			counted.Released++
		} else {
			counted.InQuarantine++
		}
		return nil
	}
	seen, err := p.InventoryOptions.Records.Sighting(ctx, orphan.Provider, name, now)
	switch {
	case err != nil:
		return fmt.Errorf("reading when %q was seen first: %w", name, err)
	case seen.First.IsZero():
		seen.First = now
		counted.Sighted++
		return p.Reaper.Records.Commit(ctx, ledger.PutSighting(seen))
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
		return p.halt(ctx, fmt.Sprintf("no inventory was taken from %s to %s, and a thing of that time has no record: the table may be as it "+
			"was at an earlier time",
			p.state.Unseen.From.UTC().Format(time.RFC3339), p.state.Unseen.To.UTC().Format(time.RFC3339)))
	case p.state.Orphans >= aDay(p.state.Things):
		return p.halt(ctx, fmt.Sprintf("more than %d things without a record in a day", aDay(p.state.Things)))
	case explained:
		return p.remove(ctx, orphan, c, q, seen)
	default:
		return p.enclose(ctx, orphan, c, q, seen)
	}
}

// aDay is how many orphans may be dealt with in a day, of so many things that exist.
func aDay(things int) int { return min(maxADay, max(minADay, things/100)) }

// some adds a name to a list that stays short.
func some(names []string, name string) []string {
	if len(names) >= listed {
		return names
	}
	return append(names, name)
}

// remove gives the orphan a record whose operation deletes it. How many orphans
// were dealt with is in the same commit: no run can deal with more than it may.
func (p *part) remove(ctx context.Context, orphan lifecycle.Orphan, c lifecycle.Record, q lifecycle.Quarantine,
	seen ledger.Sighting) error {
	c, past, err := c.BeginOrphanDeletion(p.start(p.Now()), orphan)
	if err != nil {
		return err
	}
	p.state.Orphans++
	p.state.Pass.Report.Counted.Deleted = some(p.state.Pass.Report.Counted.Deleted, seen.Name)
	err = p.Reaper.Records.Commit(ctx, ledger.Put(c), ledger.PutPast(past), ledger.DeleteSighting(seen), ledger.DeleteQuarantine(q),
		ledger.PutInventory(p.state))
	if err != nil {
		return fmt.Errorf("beginning the deletion of orphan %q: %w", seen.Name, err)
	}
	p.state.Version++
	p.report.Orphans++
	p.Log.Warn("an orphan that a tombstone explains is being deleted", "thing", seen.Name, "provider", orphan.Provider)
	return p.drive(ctx, c)
}

// enclose puts the orphan into quarantine, in the place of what had its name.
func (p *part) enclose(ctx context.Context, orphan lifecycle.Orphan, c lifecycle.Record, was lifecycle.Quarantine,
	seen ledger.Sighting) error {
	q := lifecycle.BeginQuarantine(orphan, seen.Name, p.NewID(), p.Now())
	q.Version = was.Version
	p.state.Orphans++
	p.state.Pass.Report.Counted.Quarantined = some(p.state.Pass.Report.Counted.Quarantined, seen.Name)
	if err := p.Reaper.Records.Commit(ctx, ledger.PutQuarantine(q), ledger.Check(c), ledger.DeleteSighting(seen),
		ledger.PutInventory(p.state)); err != nil {
		return fmt.Errorf("putting orphan %q into quarantine: %w", seen.Name, err)
	}
	p.state.Version++
	p.report.Quarantined++
	p.Log.Error("an orphan that nothing explains is put out of use: the record of something that is in use may be lost",
		"thing", seen.Name, "provider", orphan.Provider, "deleted_from", q.Ends)
	return p.driveQuarantine(ctx, q)
}

// save keeps how far the pass is.
func (p *part) save(ctx context.Context) error {
	if err := p.Reaper.Records.Commit(context.WithoutCancel(ctx), ledger.PutInventory(p.state)); err != nil {
		return fmt.Errorf("keeping how far the inventory is: %w", err)
	}
	return nil
}

// halt ends the pass, and leaves orphans alone until an operator says otherwise.
func (p *part) halt(ctx context.Context, reason string) error {
	p.state.Halt = &ledger.Halt{At: p.Now(), Reason: reason}
	p.state.Pass.Report.Counted.Halted = reason
	p.report.Halted = true
	p.Log.Error("the reaper leaves orphans alone until it is told to resume", "reason", reason)
	return p.end(ctx)
}

// finish ends a whole pass.
func (p *part) finish(ctx context.Context) error {
	counted := p.state.Pass.Report.Counted
	if len(counted.Unreached) > 0 { // it says nothing of what is not there
		p.state.Due = p.Now().Add(apart)
		return p.end(ctx)
	}
	p.state.Things = counted.Things
	// A table is known by its identity. A new one gets it as soon as all that
	// exists is in it; one that lacks it beside things that it knows nothing of
	// has been emptied, or is the wrong one.
	switch {
	case p.known, counted.Young > 0:
	case counted.Sighted == 0:
		if err := p.identify(ctx, ledger.Identity{}); err != nil {
			return err
		}
	default:
		return p.halt(ctx, fmt.Sprintf("the table does not say whose it is, and knows nothing of %d things that exist: it was emptied, or is "+
			"not the right one", counted.Sighted))
	}
	if counted.Young+counted.Sighted+counted.InQuarantine+len(counted.Deleted)+len(counted.Quarantined) == 0 {
		p.state.Unseen = nil
	}
	p.state.Due = p.Now().Add(p.Every)
	return p.end(ctx)
}

// identify has the table say whose it is.
func (p *part) identify(ctx context.Context, was ledger.Identity) error {
	if was.Since.IsZero() {
		was.Since = p.Now()
	}
	was.Deployment, was.Broker = p.Whose.Deployment, p.Whose.Broker
	if err := p.Reaper.Records.Commit(ctx, ledger.PutIdentity(was)); err != nil {
		return fmt.Errorf("saying whose table this is: %w", err)
	}
	return nil
}

// end keeps the pass's report.
func (p *part) end(ctx context.Context) error {
	report := p.state.Pass.Report
	report.Ended = p.Now()
	p.state.Pass = nil
	if err := p.Reaper.Records.Commit(context.WithoutCancel(ctx), ledger.PutInventory(p.state),
		ledger.PutReport(report, p.NewID())); err != nil {
		return fmt.Errorf("keeping what the inventory found: %w", err)
	}
	c := report.Counted
	p.Log.Info("compared what exists to what is recorded", "things", c.Things, "owned", c.Owned, "young", c.Young, "sighted", c.Sighted,
		"deleted", len(c.Deleted), "quarantined", len(c.Quarantined), "in_quarantine", c.InQuarantine, "odd", len(c.Odd), "unreached",
		len(c.Unreached), "dry_run", c.DryRun, "halted", c.Halted)
	return nil
}

// Resume has the reaper go on after it halted: an operator has looked at what
// it found. The day's count begins anew, and a table that did not say whose it
// is now says so. What a run writes meanwhile is read again.
func Resume(ctx context.Context, records Resumed, whose ledger.Identity, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, resumeTimeout)
	defer cancel()
	return ledger.Again(ctx, func(ctx context.Context) error { return resume(ctx, records, whose, now) })
}

// resumeTimeout bounds how long Resume meets what runs write.
const resumeTimeout = 10 * time.Second

func resume(ctx context.Context, records Resumed, whose ledger.Identity, now time.Time) error {
	state, err := records.Inventory(ctx)
	if err != nil {
		return err
	}
	identity, err := records.Identity(ctx)
	if err != nil {
		return err
	}
	state.Halt, state.Unseen, state.Pass, state.Orphans, state.Since, state.Due = nil, nil, nil, 0, now, now
	changes := []ledger.Change{ledger.PutInventory(state)}
	if identity.Deployment != whose.Deployment || identity.Broker != whose.Broker {
		identity.Deployment, identity.Broker, identity.Since = whose.Deployment, whose.Broker, now
		changes = append(changes, ledger.PutIdentity(identity))
	}
	return records.Commit(ctx, changes...)
}

// Resumed is what Resume needs of the ledger, which documents it.
type Resumed interface {
	Inventory(ctx context.Context) (ledger.Inventory, error)
	Identity(ctx context.Context) (ledger.Identity, error)
	Commit(ctx context.Context, changes ...ledger.Change) error
}
