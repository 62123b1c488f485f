package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/records/store"
)

// An Inventory is the progress of the reaper's comparison of existing things with the records,
// and how much it may still do about the differences.
type Inventory struct {
	Version int64 `json:"-"`
	// Due is when the next part is to be done.
	Due time.Time `json:"due,omitzero"`
	// Pass is the running pass; nil between two passes.
	Pass *Pass `json:"pass,omitempty"`
	// Things is how many things existed in the last whole pass.
	Things int `json:"things,omitempty"`
	// Orphans counts the orphans that were deleted or put into quarantine since Since, which
	// moves on by a day at a time.
	Orphans int       `json:"adopted,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Unseen is the time in which no inventory was taken although one was due; nil if there is
	// none, or if every thing that was made in that time has a record.
	Unseen *Span `json:"unseen,omitempty"`
	// Halt is why orphans are left alone until an operator resumes the reaper; nil if they are not left alone.
	Halt *Halt `json:"halt,omitempty"`
}

// A Span is a period of time.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Holds reports whether the time is within the span; false if the span is nil.
func (s *Span) Holds(t time.Time) bool { return s != nil && !t.Before(s.From) && !t.After(s.To) }

// A Pass is one look at all things that exist.
type Pass struct {
	// Provider and Cursor are where the pass goes on.
	Provider string `json:"provider,omitempty"`
	Cursor   string `json:"cursor,omitempty"`
	Report   Report `json:"report"`
}

// A Halt is why the reaper leaves orphans alone.
type Halt struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// A Report says what a run of the reaper found and did.
type Report struct {
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	// Swept is set for a run that looked at due records.
	Swept *Swept `json:"swept,omitempty"`
	// Counted is set for a run that compared the existing things with the records.
	Counted *Counted `json:"counted,omitempty"`
}

// Swept counts what a sweep did with the due records.
type Swept struct {
	Redriven  int `json:"redriven,omitempty"`  // operations that were started again
	Overdue   int `json:"overdue,omitempty"`   // operations that were started again past their deadline, for a last look
	Reclaimed int `json:"reclaimed,omitempty"` // failed leftovers whose deletion was begun
	Looks     int `json:"looks,omitempty"`     // tombstones that were looked at once more
	Dropped   int `json:"dropped,omitempty"`   // expired records
	Released  int `json:"released,omitempty"`  // quarantines that were ended because the thing has its record again
	Ended     int `json:"ended,omitempty"`     // quarantines that ended with the deletion of the thing
	Removed   int `json:"removed,omitempty"`   // kept lives whose date has come, and whose deletion was begun
	Lost      int `json:"lost,omitempty"`      // records that another writer changed first; they are tried again next time
	Faults    int `json:"faults,omitempty"`    // records that met an error
}

// Counted says what an inventory found.
type Counted struct {
	DryRun  bool `json:"dry_run,omitempty"`
	Things  int  `json:"things"`
	Owned   int  `json:"owned"`             // things that a record accounts for
	Young   int  `json:"young,omitempty"`   // things that are too young to judge
	Sighted int  `json:"sighted,omitempty"` // things that were seen without an owner for the first time, or too soon after it
	// Deleted names the orphans whose deletion was begun, or in a dry run would have been,
	// since a tombstone explains them.
	Deleted []string `json:"adopted,omitempty"`
	// Quarantined names the orphans that nothing explains, and that were put out of use, or in
	// a dry run would have been.
	Quarantined []string `json:"quarantined,omitempty"`
	// InQuarantine counts the things that were in quarantine before, and Released the things
	// that an operator has released.
	InQuarantine int `json:"in_quarantine,omitempty"`
	// Retained counts the things that are kept after their instances were deleted.
	Retained int `json:"retained,omitempty"`
	Released int `json:"released,omitempty"`
	// Unreached names, by provider, the targets that could not be listed, and why. The report
	// says nothing about their things.
	Unreached []string `json:"unreached,omitempty"`
	// Odd names things that belong to another incarnation than their record, or lack their
	// tags: only a person can tell what they are.
	Odd []string `json:"odd,omitempty"`
	// Halted is why the run stopped.
	Halted string `json:"halted,omitempty"`
}

// An Identity says which broker the table belongs to. A reader that acts on what is missing
// from a table first makes sure that it is the right table, and complete.
type Identity struct {
	Version    int64  `json:"-"`
	Deployment string `json:"deployment"`
	// Broker is the broker's own identity.
	Broker string    `json:"broker"`
	Since  time.Time `json:"since"`
}

// A Sighting is when a thing was first seen without an owner.
type Sighting struct {
	Version  int64     `json:"-"`
	Provider string    `json:"provider"`
	Name     string    `json:"name"`
	First    time.Time `json:"first"`
}

// How long the reaper's records are kept.
const (
	sightingKept = 48 * time.Hour
	reportKept   = 30 * 24 * time.Hour
)

// Inventory reads the progress of the reaper; version 0 if it has never begun.
func (l *Ledger) Inventory(ctx context.Context) (Inventory, error) {
	return read(ctx, l, Inventory{})
}

// Identity reads which broker the table belongs to; version 0 if the table does not say.
func (l *Ledger) Identity(ctx context.Context) (Identity, error) {
	return read(ctx, l, Identity{})
}

// IsIdentity reports whether a stored record says which broker the table belongs to.
func IsIdentity(r store.Record) bool { return r.Key == reaperKey(sortIdentity) }

// Sighting reads when a thing was first seen without an owner. The version is 0 if it never
// was; First is zero if that was so long ago that it does not count.
func (l *Ledger) Sighting(ctx context.Context, provider, name string, now time.Time) (Sighting, error) {
	s, err := read(ctx, l, Sighting{Provider: provider, Name: name})
	if !now.Before(s.First.Add(sightingKept)) {
		s.First = time.Time{}
	}
	return s, err
}

// PutReport stores a report; id distinguishes two reports of the same moment.
func PutReport(r Report, id string) Change {
	expires := r.Ended.Add(reportKept)
	return Change{store.Put(store.Record{Key: reportKey(r, id), Due: expires, Expires: expires}), &r}
}

// Reports reads the reports of runs that began since then, the oldest first; for the zero time, all that
// are kept. It leaves out reports that cannot be read, and names them in the error beside the others.
func (l *Ledger) Reports(ctx context.Context, since time.Time) (all []Report, _ error) {
	var unread []error
	begin := reportKey(Report{Started: since}, "").Sort
	for stored, err := range l.all(ctx, ReaperPartition, sortReport, begin) {
		var report Report
		if err == nil {
			err = decode(stored, &report)
		}
		if err != nil {
			unread = append(unread, err)
			continue
		}
		all = append(all, report)
	}
	return all, errors.Join(unread...)
}

// A SweepLease says which run of the reaper may make changes, and until when. The lease of a
// run that died runs out by itself.
type SweepLease struct {
	Holder string    `json:"holder"`
	Until  time.Time `json:"until,omitzero"`
	// Version is the version of the record, 0 if there has never been one.
	Version int64 `json:"-"`
}

// Held reports whether a lease is still running.
func (l SweepLease) Held(now time.Time) bool { return now.Before(l.Until) }

// SweepLease reads the lease of the current or last run.
func (l *Ledger) SweepLease(ctx context.Context) (SweepLease, error) {
	return read(ctx, l, SweepLease{})
}
