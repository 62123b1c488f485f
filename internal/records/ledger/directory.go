package ledger

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

// A Listing is an item of the directory, which has one item for each instance that exists,
// former lives included. The commit that changes the record also writes or removes the item.
type Listing struct {
	Version int64         `json:"-"`
	Key     lifecycle.Key `json:"key"`
	Created time.Time     `json:"created"`
}

// listingOf returns the item of a record; nil for a binding, and for an instance that does not exist.
func listingOf(r lifecycle.Record) *Listing {
	if r.IsBinding() || !r.Exists() {
		return nil
	}
	return &Listing{Key: r.Key, Created: r.Created}
}

// beside adds what follows from the changes of records (see Commit).
func (l *Ledger) beside(ctx context.Context, changes []Change) ([]Change, error) {
	for n := 0; n < len(changes); n++ { // what follows may have its own consequences
		c := changes[n]
		r, is := c.body.(*lifecycle.Record)
		if !is {
			continue
		}
		before, err := l.before(ctx, r.Key, c.stored.Record.Version)
		if err != nil {
			return nil, err
		}
		if r.State == lifecycle.Creating && r.Incarnation != before.Incarnation {
			former, err := PutFormer(ctx, l, before.SetAside(r.Operation.Next), r.Operation.Next)
			if err != nil {
				return nil, err
			}
			changes = append(changes, former)
		}
		from, to := listingOf(before), listingOf(*r)
		if c.stored.Action == store.ActionDelete {
			to = nil
		} else {
			changes = append(changes, put(r.Past(before)), put(r.Ended(before)))
		}
		if from != nil && to != nil && directoryKey(*from) == directoryKey(*to) {
			continue
		}
		if from != nil {
			// Read the item first, since a lost item must not keep its instance from being deleted.
			there, err := read(ctx, l, *from)
			if err != nil {
				return nil, err
			}
			changes = append(changes, Delete(there))
		}
		if to != nil {
			there, err := read(ctx, l, *to)
			if err != nil {
				return nil, err
			}
			changes = append(changes, Put(there))
		}
	}
	return changes, nil
}

// before returns the record that a change is to replace, at this version; the zero record if
// there is none, or if it has changed since.
func (l *Ledger) before(ctx context.Context, key lifecycle.Key, version int64) (r lifecycle.Record, err error) {
	if version == 0 {
		return r, nil
	}
	if known := l.memory.recall(recordKey(key)); known != nil && known.version == version {
		r = known.value
	} else if r, err = l.record(ctx, key); err != nil || r.Version != version {
		return lifecycle.Record{}, err
	}
	r.Key = key
	return r, nil
}

// Instances reads one page of the directory: the keys of the instances that exist, former lives included,
// with the latest creation first. A platform narrows the list; a page may then be empty before the end.
// Cursor is empty for the first page, then the next of the page before; next is empty at the end.
func (l *Ledger) Instances(ctx context.Context, platform, cursor string, limit int) (
	page []lifecycle.Key, next string, err error,
) {
	most := limit
	if platform != "" {
		most = 0 // most items may belong to other platforms
	}
	found, err := l.store.List(ctx, directoryPartition, sortListing, cursor, most)
	unread := []error{err}
	for n, r := range found.Records {
		item, err := entryIn[Listing](r)
		switch {
		case err != nil:
			unread = append(unread, err)
		case platform == "" || item.Key.Platform == platform:
			page = append(page, item.Key)
		}
		if len(page) == limit && limit > 0 && n+1 < len(found.Records) {
			found.Next = r.Sort
			break
		}
	}
	return page, found.Next, errors.Join(unread...)
}

// readAtOnce is how many records Existing reads at a time.
const readAtOnce = 20

// Existing reads a page of Instances, and the records of those whose keys are wanted. The directory may still list what was
// deleted, which is left out. The error says what could not be read.
func (l *Ledger) Existing(ctx context.Context, platform, cursor string, limit int, now time.Time,
	wanted func(lifecycle.Key) bool) (found []lifecycle.Record, next string, _ error) {
	keys, next, err := l.Instances(ctx, platform, cursor, limit)
	keys = slices.DeleteFunc(keys, func(k lifecycle.Key) bool { return !wanted(k) })
	found, unread := make([]lifecycle.Record, len(keys)), make([]error, len(keys), len(keys)+1)
	var reading sync.WaitGroup
	turns := make(chan struct{}, readAtOnce)
	for n, key := range keys {
		turns <- struct{}{}
		reading.Go(func() {
			found[n], unread[n] = l.Record(ctx, key, now)
			<-turns
		})
	}
	reading.Wait()
	found = slices.DeleteFunc(found, func(r lifecycle.Record) bool { return !r.Exists() })
	return found, next, errors.Join(append(unread, err)...)
}

// Relist makes the directory agree with the records again, after some of either were lost.
// Records are those that may lack an item. It leaves what cannot be read as it is, and leaves
// conflicts to the next run.
func (l *Ledger) Relist(ctx context.Context, records []lifecycle.Record) error {
	for _, was := range records {
		r, item, err := l.listing(ctx, was.Key)
		if err == nil && item != nil && item.Version == 0 {
			err = l.Commit(ctx, Put(*item), Check(r))
		}
		if err = left(err); err != nil {
			return err
		}
	}
	for stored, err := range l.all(ctx, directoryPartition, sortListing, "") {
		there := new(Listing)
		if err == nil {
			there, err = entryIn[Listing](stored)
		}
		if err == nil {
			r, item, unread := l.listing(ctx, there.Key)
			if err = unread; err == nil && (item == nil || directoryKey(*item) != stored.Key) {
				err = l.Commit(ctx, Delete(*there), Check(r))
			}
		}
		if err = left(err); err != nil {
			return err
		}
	}
	return nil
}

// left drops an error at which Relist does not stop.
func left(err error) error {
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrUnreadable) {
		return nil
	}
	return err
}

// listing reads a record and the item that it should have, at the version of the stored item.
func (l *Ledger) listing(ctx context.Context, key lifecycle.Key) (lifecycle.Record, *Listing, error) {
	r, err := l.record(ctx, key)
	r.Key = key
	item := listingOf(r)
	if err == nil && item != nil {
		*item, err = read(ctx, l, *item)
	}
	return r, item, err
}
