package reaper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// odd reports whether this broker cannot have made the thing: its label is incomplete, or too
// large for a record.
func odd(t lifecycle.Thing) bool {
	said := []string{t.Name, t.Key.Platform, t.Key.Instance, t.Key.Binding, t.Incarnation, t.Of}
	return t.Broker == "" || t.Key.Platform == "" || t.Key.Instance == "" || t.Incarnation == "" || len(t.State) > maxState ||
		slices.ContainsFunc(said, func(text string) bool { return len(text) > limits.Identifier })
}

// A Lister tells what a provider holds. It changes nothing.
type Lister struct {
	// List lists the things, page by page. The cursor is empty for the first page, and next is
	// empty at the end. An unreachable target is an error, which may come beside a page and a
	// next cursor.
	List func(ctx context.Context, cursor string) (page []lifecycle.Thing, next string, err error)
	// Targets returns the names of the targets that List covers according to today's settings;
	// nil for a provider with a single target.
	Targets func(ctx context.Context) ([]string, error)
}

// InventoryRecords are the methods of the ledger that an inventory needs; the ledger documents them.
type InventoryRecords interface {
	Inventory(ctx context.Context) (ledger.Inventory, error)
	Identity(ctx context.Context) (ledger.Identity, error)
	Sighting(ctx context.Context, provider, name string, now time.Time) (ledger.Sighting, error)
	NextTargetUse(ctx context.Context, after lifecycle.TargetUse, elsewhere bool) (*lifecycle.TargetUse, error)
	Commit(ctx context.Context, changes ...ledger.Change) error
}

// InventoryOptions configure the inventory.
type InventoryOptions struct {
	Records InventoryRecords
	// Listers are keyed by the name of the provider.
	Listers map[string]Lister
	// The table must belong to this deployment and this broker.
	Whose ledger.Identity
	// DryRun makes the inventory only report what it would do about orphans.
	DryRun bool
}

// The reaper acts on an orphan only if it was seen twice without an owner, is not young, and
// is one of few: a reaper that finds many orphans is more likely wrong than right.
const (
	// every is the time between two passes.
	every    = time.Hour
	youngFor = time.Hour
	apart    = 10 * time.Minute
	// At most maxADay orphans are deleted or put out of use in a day, or one in a hundred of
	// all things if that is less, but never fewer than minADay.
	maxADay, minADay = 20, 3
	// tardy is how late an inventory may be. If it is later, the table counts as unattended since the last one.
	tardy = 30 * time.Minute
	// aPage is the time that a page of things may take; no page is begun with less time left.
	aPage = 10 * time.Second
	// maxState is the largest size of a state with its format, in bytes.
	maxState = limits.State + binary.MaxVarintLen64
	// listed is the greatest number of names in a list of a report.
	listed = 100
	// planAgain is how often a process checks that an inventory is planned.
	planAgain = time.Hour
)

// plan makes sure that an inventory is planned: a new or emptied table has no plan.
func (r *Reaper) plan(ctx context.Context, now time.Time) error {
	if r.Inventory == nil || now.Before(r.asked.Add(planAgain)) {
		return nil
	}
	planned, err := r.Inventory.Records.Inventory(ctx)
	if err == nil && planned.Version == 0 {
		err = r.Records.Commit(ctx, ledger.Put(ledger.Inventory{Due: now}))
	}
	if err != nil && !errors.Is(err, ledger.ErrConflict) {
		return fmt.Errorf("planning an inventory: %w", err)
	}
	r.asked = now
	return nil
}

// A part is one run's part of a pass.
type part struct {
	*Reaper
	*InventoryOptions
	state  ledger.Inventory
	report *Report
	known  bool // the table says which broker it belongs to
	faults []error
}

// takeInventory continues the pass, or begins one, for as long as there is time. It saves its
// progress before it returns. A part that dies is repeated from where the last part ended.
func (r *Reaper) takeInventory(ctx context.Context, at ledger.Inventory, report *Report) error {
	p := &part{Reaper: r, InventoryOptions: r.Inventory, state: at, report: report}
	err := p.goOn(ctx)
	if errors.Is(err, ledger.ErrConflict) {
		report.Lost++ // a platform, or another run, was faster: try again next time
		return nil
	}
	return errors.Join(append(p.faults, err)...)
}

func (p *part) goOn(ctx context.Context) error {
	if p.state.Halt != nil {
		p.report.Halted = true
		return nil
	}
	now := p.Now()
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
	case identity.Broker != p.Whose.Broker:
		return p.halt(ctx, fmt.Sprintf("the table is of the broker with the identity %q, and this one is %q: give the broker "+
			"the identity that the table has",
			identity.Broker, p.Whose.Broker))
	}
	for name := range sorted.Map(p.Listers) {
		if name < p.state.Pass.Provider {
			continue
		}
		if name > p.state.Pass.Provider {
			p.state.Pass.Provider, p.state.Pass.Cursor = name, ""
		}
		whole, err := p.provider(ctx, name)
		if err != nil || p.state.Halt != nil {
			return err
		}
		if !whole {
			p.state.Due = p.Now() // go on in the next run
			return p.save(ctx)
		}
	}
	if err := p.targets(ctx); err != nil {
		return err
	}
	return p.finish(ctx)
}

// missed notes that no inventory was taken for a while. Either no reaper ran, or the table was
// restored to an earlier time and has lost the records of newer things.
func (p *part) missed(now time.Time) {
	if p.state.Due.IsZero() || now.Sub(p.state.Due) <= tardy {
		return
	}
	from := p.state.Due.Add(-every)
	if p.state.Unseen != nil && p.state.Unseen.From.Before(from) {
		from = p.state.Unseen.From
	}
	p.state.Unseen = &ledger.Span{From: from, To: now}
}

// provider looks at a provider's things, and reports whether it reached the end. A target that
// cannot be listed makes the pass incomplete; the things of the other targets are still looked at.
func (p *part) provider(ctx context.Context, name string) (whole bool, _ error) {
	for p.timeLeft(ctx) {
		cursor := p.state.Pass.Cursor
		page, next, unreached := p.Listers[name].List(ctx, cursor)
		if unreached != nil {
			p.unreached(name, unreached)
		}
		for _, t := range page {
			t.Provider = name
			if err := p.thing(ctx, t); err != nil || p.state.Halt != nil {
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

// unreached notes a target that could not be listed.
func (p *part) unreached(name string, why error) {
	p.report.Unreached = true
	counted := p.state.Pass.Report.Counted
	said := limits.Clip(fmt.Sprintf("%s: %v", name, why), limits.Description)
	if slices.Contains(counted.Unreached, said) { // the target is on several pages
		return
	}
	counted.Unreached = some(counted.Unreached, said)
	p.faults = append(p.faults, fmt.Errorf("listing what provider %q holds: %w", name, why))
}

func (p *part) timeLeft(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || deadline.Sub(p.Now()) > aPage)
}

// save records the progress of the pass.
func (p *part) save(ctx context.Context) error {
	if err := p.Reaper.Records.Commit(context.WithoutCancel(ctx), ledger.Put(p.state)); err != nil {
		return fmt.Errorf("keeping how far the inventory is: %w", err)
	}
	return nil
}

// halt ends the pass. From then on the reaper leaves orphans alone until an operator resumes it.
func (p *part) halt(ctx context.Context, reason string) error {
	p.state.Halt = &ledger.Halt{At: p.Now(), Reason: reason}
	p.state.Pass.Report.Counted.Halted = reason
	p.report.Halted = true
	p.Log.Error("the reaper leaves orphans alone until an operator resumes it", "reason", reason)
	return p.end(ctx)
}

// finish ends a pass that reached the end of the inventory.
func (p *part) finish(ctx context.Context) error {
	counted := p.state.Pass.Report.Counted
	if len(counted.Unreached) > 0 { // an incomplete list does not prove that a thing is absent
		p.state.Due = p.Now().Add(apart)
		return p.end(ctx)
	}
	p.state.Things = counted.Things
	// A new table gets its identity as soon as it knows all things that exist. A table that has
	// no identity and does not know things that exist has been emptied, or is the wrong one.
	switch {
	case p.known, counted.Young > 0:
	case counted.Sighted == 0:
		whose := p.Whose
		whose.Since = p.Now()
		if err := p.Reaper.Records.Commit(ctx, ledger.Put(whose)); err != nil {
			return fmt.Errorf("saying whose table this is: %w", err)
		}
	default:
		return p.halt(ctx, fmt.Sprintf("the table does not say whose it is, and knows nothing of %d things that exist: it was "+
			"emptied, or is not the right one", counted.Sighted))
	}
	if counted.Young+counted.Sighted+counted.InQuarantine+len(counted.Deleted)+len(counted.Quarantined) == 0 {
		p.state.Unseen = nil
	}
	p.state.Due = p.Now().Add(every)
	return p.end(ctx)
}

// end ends the pass and records its report.
func (p *part) end(ctx context.Context) error {
	report := p.state.Pass.Report
	report.Ended = p.Now()
	p.state.Pass = nil
	if err := p.Reaper.Records.Commit(context.WithoutCancel(ctx), ledger.Put(p.state),
		ledger.PutReport(report, p.NewID())); err != nil {
		return fmt.Errorf("keeping what the inventory found: %w", err)
	}
	c := report.Counted
	p.Log.Info("compared the existing things with the records", "things", c.Things, "owned", c.Owned, "young", c.Young,
		"sighted", c.Sighted, "deleted", len(c.Deleted), "quarantined", len(c.Quarantined), "in_quarantine", c.InQuarantine,
		"odd", len(c.Odd), "unreached", len(c.Unreached), "dry_run", c.DryRun, "halted", c.Halted)
	return nil
}
