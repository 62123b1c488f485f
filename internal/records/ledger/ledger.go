// Package ledger keeps the lifecycle's records in a store. It owns their keys and their
// encoding. If the answer to a commit was lost, or a repetition of the commit met a conflict,
// it finds out whether the commit took effect. The lifecycle decides what the records mean, and
// the store how they are kept.
package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

// Schema is the version of the records' encoding. A record of a later version is refused rather
// than misread. The version rises only when the meaning of a member changes. It does not rise
// for new members of a record or its operation: programs that do not know them keep them (see
// lifecycle.Unknown), so that functions can be replaced in any order. A new member must do no
// harm if an older program has left it unchanged.
const Schema = 1

// ErrConflict says that a record was changed in between, and that nothing was written. The
// caller reads and decides again.
var ErrConflict = store.ErrConflict

// ErrUnreadable says that a record exists but cannot be read.
var ErrUnreadable = store.ErrUnreadable

// A Ledger reads and writes the records. Its memory only saves time, and may be dropped
// at any moment.
type Ledger struct {
	memory memory
	store  store.Store
	newID  func() string
}

// New returns a ledger. NewID returns a different string at each call, to name a commit.
func New(s store.Store, newID func() string) *Ledger {
	return &Ledger{store: s, newID: newID}
}

// Record reads an instance or a binding. If it was never recorded, its state is Absent and its
// version 0. A tombstone whose time is over reads as Absent, at its version.
func (l *Ledger) Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error) {
	r, err := l.record(ctx, key)
	if err != nil {
		return r, err
	}
	if r.Forgotten(now) {
		r = lifecycle.Record{Version: r.Version}
	}
	r.Key = key
	return r, nil
}

func (l *Ledger) record(ctx context.Context, key lifecycle.Key) (lifecycle.Record, error) {
	at := recordKey(key)
	was := l.memory.recall(at)
	stored, err := l.reread(ctx, at, was)
	if err != nil || stored.Version == 0 {
		return lifecycle.Record{}, err
	}
	if was.is(stored) {
		return was.value, nil
	}
	r, err := entryIn[lifecycle.Record](stored)
	if err == nil {
		l.memory.keep(decodedAt(stored, *r))
	}
	return *r, err
}

// mostBindings is the most bindings that one read of a search returns.
const mostBindings = 128

// NextBinding reads the first binding of an instance, among those whose id follows after, that
// is no tombstone; nil if there is none. Passed is the last recorded id before it.
func (l *Ledger) NextBinding(ctx context.Context, instance lifecycle.Key, after string) (
	next *lifecycle.Record, passed string, err error) {
	found, passed, err := l.Bindings(ctx, instance, after, 1)
	if err != nil || len(found) == 0 {
		return nil, passed, err
	}
	return &found[0], passed, nil
}

// Bindings reads the first bindings of an instance that are no tombstones, at most so many,
// among those whose id follows after, in the byte order of their ids. Passed is the last
// recorded id before the first of them.
//
// It reads few more records than it returns plus the tombstones in between: an instance may
// have had thousands of bindings, and each may be large.
//
// A former life has no bindings: the bindings of the id belong to the instance that has the id now.
func (l *Ledger) Bindings(ctx context.Context, instance lifecycle.Key, after string, most int) (
	found []lifecycle.Record, passed string, err error,
) {
	passed = after
	if instance.Life != "" {
		return nil, passed, nil
	}
	if after != "" {
		after = sortBinding + after
	}
	for limit := most; ; limit = min(2*limit, mostBindings) {
		page, err := l.store.List(ctx, recordKey(instance).Partition, sortBinding, after, limit)
		if err != nil {
			return nil, "", fmt.Errorf("looking for the next binding: %w", err)
		}
		for _, r := range page.Records {
			b, err := entryIn[lifecycle.Record](r)
			switch {
			case err != nil:
				return nil, "", err
			case b.Exists():
				if found = append(found, *b); len(found) == most {
					return found, passed, nil
				}
			case len(found) == 0:
				passed = strings.TrimPrefix(r.Sort, sortBinding)
			}
		}
		if after = page.Next; after == "" {
			return found, passed, nil
		}
	}
}

// Pointer reads which instance a binding id belongs to; version 0 for none.
func (l *Ledger) Pointer(ctx context.Context, platform, binding string) (lifecycle.Pointer, error) {
	return read(ctx, l, lifecycle.Pointer{Key: lifecycle.Key{Platform: platform, Binding: binding}})
}

// PastOperation reads a finished operation that another one replaced in its record; version 0
// if there is none, or if its time is over.
func (l *Ledger) PastOperation(ctx context.Context, id string, now time.Time) (lifecycle.PastOperation, error) {
	p, err := read(ctx, l, lifecycle.PastOperation{Operation: lifecycle.Operation{ID: id}})
	if err != nil || !now.Before(p.Expires) {
		return lifecycle.PastOperation{}, err
	}
	return p, nil
}

// History reads one page of an instance's history, the latest entry first. Cursor is empty for
// the first page, then the next of the page before; next is empty at the end. The page may
// still hold entries that have expired.
func (l *Ledger) History(ctx context.Context, instance lifecycle.Key, cursor string, limit int) (
	page []lifecycle.Entry, next string, _ error,
) {
	found, err := l.store.List(ctx, recordKey(instance.InstanceKey()).Partition, sortLog, cursor, limit)
	unread := []error{err}
	for _, r := range found.Records {
		unread = append(unread, add(&page, r))
	}
	return page, found.Next, errors.Join(unread...)
}

// all yields all the records of a partition whose sort key starts with prefix and follows after.
func (l *Ledger) all(ctx context.Context, partition, prefix, after string) iter.Seq2[store.Record, error] {
	return paging.All(ctx, func(ctx context.Context, cursor string) ([]store.Record, string, error) {
		page, err := l.store.List(ctx, partition, prefix, cmp.Or(cursor, after), 0)
		return page.Records, page.Next, err
	})
}

// A Due is a record that the reaper is to look at: one of the three pointers is set, or none
// for a record that only expires.
type Due struct {
	Record    *lifecycle.Record
	Inventory *Inventory
	TargetUse *lifecycle.TargetUse
	// Expires is when the record may be dropped; zero for never. Drop removes an expired record at
	// the version that was listed.
	Expires time.Time
	Drop    Change
}

// Due reads one page of the records that are due at before. It leaves out records that cannot be
// read, and names them in the error beside the others, so that one record never hides the rest. For
// a kind of record that only a newer program knows, it returns only when the record expires.
func (l *Ledger) Due(ctx context.Context, before time.Time, cursor string) (found []Due, next string, err error) {
	var damaged []error
	page, err := l.store.Due(ctx, before, cursor)
	if err != nil {
		damaged = append(damaged, fmt.Errorf("listing what is due: %w", err))
	}
	for _, r := range page.Records {
		d := Due{Expires: r.Expires, Drop: Change{stored: store.Delete(r.Key, r.Version)}}
		var err error
		switch {
		case isRecord(r):
			d.Record, err = entryIn[lifecycle.Record](r)
		case r.Key == reaperKey(sortInventory):
			d.Inventory, err = entryIn[Inventory](r)
		case r.Partition == ReaperPartition && strings.HasPrefix(r.Sort, sortTarget):
			d.TargetUse, err = entryIn[lifecycle.TargetUse](r)
		}
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		found = append(found, d)
	}
	return found, page.Next, errors.Join(damaged...)
}

// reread reads the stored record; version 0 if there is none. If the record is still the one in
// was, its body may be missing; was is nil if no version is known.
func (l *Ledger) reread(ctx context.Context, key store.Key, was *decoded) (r store.Record, err error) {
	// No record has such a key: a platform can make up a token with ids of any length.
	if store.CheckKey(key) != nil {
		return store.Record{}, nil
	}
	if s, ok := l.store.(store.Rereader); ok && was != nil {
		r, err = s.Reread(ctx, key, was.version, was.writer)
	} else {
		r, err = l.store.Get(ctx, key)
	}
	if errors.Is(err, store.ErrNotFound) {
		return store.Record{}, nil
	}
	return r, err
}
