// Package reaper sweeps the due records. It restarts overdue operations, for a last look if
// they are past their deadline. It begins the deletion of failed leftovers, and of kept lives
// whose date has come. It drops expired records.
//
// On a slower schedule it compares the providers' inventories with the records. It deletes an
// orphan that a tombstone explains, and puts any other orphan into quarantine.
//
// The reaper never changes the cloud itself: only steps of the worker do.
package reaper

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// Records are the methods of the ledger that the reaper needs; the ledger documents them.
type Records interface {
	Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error)
	Due(ctx context.Context, before time.Time, cursor string) (found []ledger.Due, next string, err error)
	SweepLease(ctx context.Context) (ledger.SweepLease, error)
	Commit(ctx context.Context, changes ...ledger.Change) error
}

// Options configure a Reaper.
type Options struct {
	Records Records
	// Start starts an execution of an operation; see workflow.Engine.
	Start func(ctx context.Context, ref workflow.Ref) error
	Now   func() time.Time
	NewID func() string // a new operation id
	// OperationTimeout is the deadline of deletions that the reaper begins.
	OperationTimeout time.Duration
	// Lease keeps runs from overlapping: no other run changes anything for that long. It must
	// be longer than a run can last; zero if no other reaper runs.
	Lease time.Duration
	Log   *slog.Logger
	// Inventory configures the inventory; nil for none.
	Inventory *InventoryOptions
}

// A Reaper sweeps. Its only state is asked, which may be lost.
type Reaper struct {
	Options
	// asked is when this process last made sure that an inventory is planned.
	asked time.Time
}

// New returns a reaper. Only one goroutine at a time may call Sweep.
func New(o Options) *Reaper { return &Reaper{Options: o} }

// A Report counts what one sweep did.
type Report struct {
	ledger.Swept
	Orphans     int // orphans whose deletion was begun
	Quarantined int // orphans that were put out of use
	// Halted says that orphans are left alone until an operator resumes the reaper.
	Halted bool
	// Unreached says that some of a provider's things could not be listed.
	Unreached bool
	// Busy says that another run was at work, so this run did nothing.
	Busy bool
}

// restarted returns the counter for a restart. An operation past its deadline is counted apart:
// it fails if its next look finds it unfinished.
func (r *Report) restarted(c lifecycle.Record, now time.Time) *int {
	switch {
	case c.State == lifecycle.Quarantined:
		return &r.Removed
	case !c.InProgress():
		return &r.Reclaimed
	case c.Operation.Overdue(now):
		return &r.Overdue
	}
	return &r.Redriven
}

// Count writes the metrics of the sweep. It writes nothing for a sweep that found nothing:
// CloudWatch bills a metric for each hour in which it is written.
func (r Report) Count(m *metrics.Metrics) {
	if r.Busy {
		return
	}
	if due := r.Redriven + r.Overdue; due > 0 {
		m.Write(metrics.Labels{}, nil, metrics.Value{Name: metrics.PastDue, N: float64(due)})
	}
	if r.Halted {
		m.Write(metrics.Labels{}, nil, metrics.Value{Name: metrics.Halted, N: 1})
	}
	if r.Unreached {
		m.Write(metrics.Labels{}, nil, metrics.Value{Name: metrics.Trouble, N: 1})
	}
	for what, n := range map[string]int{
		"redriven": r.Redriven, "overdue": r.Overdue, "reclaimed": r.Reclaimed, "looks": r.Looks,
		"orphans": r.Orphans + r.Ended, "quarantined": r.Quarantined, "released": r.Released, "removed": r.Removed,
		"dropped": r.Dropped, "faults": r.Faults,
	} {
		if n > 0 {
			m.Write(metrics.Labels{{Name: metrics.DimensionWhat, Value: what}}, nil,
				metrics.Value{Name: metrics.Reaped, N: float64(n)})
		}
	}
}

// Empty reports whether the sweep found nothing to do.
func (r Report) Empty() bool { return r == Report{} }

// Log logs what the sweep did, if it did anything, and the faults that it met.
func (r Report) Log(log *slog.Logger, err error) {
	if err != nil {
		log.Error("sweep met faults", "error", err)
	}
	r.Halted, r.Unreached = false, false // the halt was logged when it happened, and unreached targets are among the faults
	if !r.Empty() {
		log.Info("swept", "redriven", r.Redriven, "overdue", r.Overdue, "reclaimed", r.Reclaimed, "looks", r.Looks,
			"orphans", r.Orphans+r.Ended, "quarantined", r.Quarantined, "released", r.Released, "removed", r.Removed,
			"dropped", r.Dropped, "lost", r.Lost, "faults", r.Faults, "busy", r.Busy)
	}
}

// Sweep handles every due record. A record that fails does not stop the rest; the error joins
// all failures. A sweep that finds nothing to do writes nothing.
func (r *Reaper) Sweep(ctx context.Context) (report Report, _ error) {
	var errs []error
	now := r.Now()
	errs = append(errs, r.plan(ctx, now))
	var lease *ledger.SweepLease
	var inventory *ledger.Inventory
	for d, err := range r.due(ctx, now) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if lease == nil {
			if lease, err = r.takeTurn(ctx, now); err != nil {
				errs = append(errs, err)
				break
			}
			if report.Busy = lease == nil; report.Busy {
				break
			}
		}
		if d.Inventory != nil {
			inventory = d.Inventory // taken when the rest is done
			continue
		}
		err = r.deal(ctx, d, &report)
		switch {
		case errors.Is(err, ledger.ErrConflict):
			report.Lost++
		case err != nil:
			report.Faults++
			errs = append(errs, err)
		}
	}
	if swept := report.Swept; swept != (ledger.Swept{Dropped: swept.Dropped}) {
		// A sweep that only dropped records gets no report: it may have dropped old reports. One that was
		// cut off gets its report all the same.
		errs = append(errs, r.Records.Commit(context.WithoutCancel(ctx),
			ledger.PutReport(ledger.Report{Started: now, Ended: r.Now(), Swept: &swept}, r.NewID())))
	}
	if inventory != nil && r.Inventory != nil && ctx.Err() == nil {
		errs = append(errs, r.takeInventory(ctx, *inventory, &report))
	}
	if lease != nil {
		errs = append(errs, r.endTurn(ctx, *lease))
	}
	return report, errors.Join(append(errs, ctx.Err())...)
}

// takeTurn takes the lease; it returns nil if another run has it.
func (r *Reaper) takeTurn(ctx context.Context, now time.Time) (*ledger.SweepLease, error) {
	if r.Lease == 0 {
		return &ledger.SweepLease{}, nil
	}
	lease, err := r.Records.SweepLease(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading who sweeps: %w", err)
	}
	if lease.Held(now) {
		return nil, nil
	}
	lease.Holder, lease.Until = r.NewID(), now.Add(r.Lease)
	err = r.Records.Commit(ctx, ledger.Put(lease))
	if errors.Is(err, ledger.ErrConflict) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("taking the turn to sweep: %w", err)
	}
	lease.Version++
	return &lease, nil
}

// endTurn gives the lease back. If that fails, the lease runs out by itself.
func (r *Reaper) endTurn(ctx context.Context, lease ledger.SweepLease) error {
	if r.Lease == 0 {
		return nil
	}
	lease.Until = time.Time{}
	if err := r.Records.Commit(context.WithoutCancel(ctx), ledger.Put(lease)); err != nil && !errors.Is(err, ledger.ErrConflict) {
		return fmt.Errorf("ending the turn to sweep: %w", err)
	}
	return nil
}

// Unsettled lists the executions of all operations in progress, due or not: a restarted
// process resumes them.
func (r *Reaper) Unsettled(ctx context.Context) ([]workflow.Ref, error) {
	var refs []workflow.Ref
	var errs []error
	for d, err := range r.due(ctx, r.Now().AddDate(100, 0, 0)) {
		errs = append(errs, err)
		if c := d.Record; err == nil && c != nil && c.InProgress() {
			refs = append(refs, workflow.Of(*c))
		}
	}
	return refs, errors.Join(errs...)
}

// due reads all entries that are due at before.
func (r *Reaper) due(ctx context.Context, before time.Time) iter.Seq2[ledger.Due, error] {
	return paging.All(ctx, func(ctx context.Context, cursor string) ([]ledger.Due, string, error) {
		return r.Records.Due(ctx, before, cursor)
	})
}

func (r *Reaper) deal(ctx context.Context, d ledger.Due, report *Report) error {
	now := r.Now()
	if d.TargetUse != nil {
		return r.use(ctx, *d.TargetUse, now)
	}
	if c := d.Record; c == nil || c.Forgotten(now) {
		if d.Expires.IsZero() || now.Before(d.Expires) {
			return nil
		}
		return r.commit(ctx, &report.Dropped, d.Drop)
	}
	// The index may lag: the record decides.
	c, err := r.Records.Record(ctx, d.Record.Key, now)
	if err != nil {
		return err
	}
	return r.record(ctx, c, now, report)
}

// commit commits the changes and, if that succeeds, raises the count.
func (r *Reaper) commit(ctx context.Context, count *int, changes ...ledger.Change) error {
	err := r.Records.Commit(ctx, changes...)
	if err == nil {
		*count++
	}
	return err
}

func (r *Reaper) start(now time.Time) lifecycle.Start {
	return lifecycle.Start{ID: r.NewID(), Now: now, Timeout: r.OperationTimeout, Own: true}
}

func (r *Reaper) record(ctx context.Context, c lifecycle.Record, now time.Time, report *Report) error {
	switch {
	case c.Due.IsZero() || c.Due.After(now):
		return nil
	case c.OrphanStands() && !c.InProgress():
		return r.orphan(ctx, c, now, report)
	case c.LateLookDue(now):
		c = c.LateLookBegun(now)
		if err := r.commit(ctx, &report.Looks, ledger.Put(c)); err != nil {
			return err
		}
		return r.drive(ctx, c)
	}
	count := report.restarted(c, now)
	c, err := c.Restarted(r.start(now))
	switch {
	case errors.As(err, new(*lifecycle.IllegalTransition)):
		return nil // the record needs no restart
	case err != nil:
		return err
	}
	if err := r.commit(ctx, count, ledger.Put(c)); err != nil {
		return err
	}
	return r.drive(ctx, c)
}

func (r *Reaper) drive(ctx context.Context, c lifecycle.Record) error {
	ref := workflow.Of(c)
	ctx = logs.Begin(ctx)
	logs.AddRequest(ctx, c.Operation.Asker.Request)
	logs.AddSubject(ctx, c.Key.Platform, c.Key.Instance, c.Key.Binding)
	logs.AddOperation(ctx, ref.Token)
	r.Log.InfoContext(ctx, "driving an operation", "execution", ref.Name(), "kind", string(c.Operation.Kind))
	if err := r.Start(ctx, ref); err != nil {
		return fmt.Errorf("starting %q: %w", ref.Name(), err)
	}
	return nil
}
