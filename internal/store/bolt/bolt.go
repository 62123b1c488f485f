// Package bolt owns keeping the records of package store in one local file,
// by way of bbolt: the file's making, opening, locking and checking, and how
// keys and records are written in it.
//
// It needs a folder that it may write to, on a file system with locks and
// hard links, and it needs the file for itself: one process at a time. Every
// commit is on the disk before it is answered. It leaves to its callers what
// the records mean and when they expire (it never drops one by itself), and
// to the operator the backups: a file that is damaged is refused as a whole,
// since a store that has lost a record would answer that it never existed.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/store"
)

var (
	// ErrLocked: another process holds the file, or another Store of this one.
	ErrLocked = errors.New("store file in use: stop the process that holds it, or give this one a file of its own")
	// ErrDamaged: the file, or a record in it, is not as it was written.
	ErrDamaged = errors.New("store file damaged: keep it as it is and restore a backup in its place")
	// ErrMissing: there is no file and MustExist said that there is one.
	ErrMissing = errors.New("store file missing: put it back, or, if there never was one, start without requiring it")
	// ErrNewer: the file was written in a format that this program does not know.
	ErrNewer = errors.New("store file written by a newer version: run that version or a later one")
)

const (
	// lockWait is how long Open waits for another process to let go.
	lockWait = time.Second
	// A page of a listing ends at either of these.
	pageRecords = 100
	pageBytes   = 1 << 20
)

// A Store keeps records in one file. It is safe for many goroutines.
type Store struct {
	path     string
	identity string
	db       *bbolt.DB
	file     *os.File      // the one that db holds
	queue    queue         // the sets of changes that wait to be written
	writing  chan struct{} // held by the one commit that writes a group of them
	latest   atomic.Int64  // the last transaction that is known to be in the file
	broken   atomic.Bool   // bbolt panicked: nothing more is asked of it
	closing  sync.Once

	clock      func() time.Time // nil if commits do not note their times
	lastCommit time.Time
}

var _ store.Store = (*Store)(nil)

// An Option changes how Open opens.
type Option func(*options)

type options struct {
	mustExist bool
	clock     func() time.Time
}

// MustExist makes Open fail with ErrMissing where there is no file, so that
// one that was lost is never replaced by a fresh and empty one.
func MustExist() Option { return func(o *options) { o.mustExist = true } }

// Clock has each commit note its time, so that LastCommit tells it after a
// restart, whatever has become of the machine's clock by then.
func Clock(now func() time.Time) Option { return func(o *options) { o.clock = now } }

// Open opens the store in the file at path; where there is none it makes one,
// whole or not at all. It reads the whole file to prove it undamaged, and
// waits up to a second for another process to let go of it. Its errors are
// ErrLocked, ErrDamaged, ErrMissing, ErrNewer, or the operating system's.
func Open(path string, opts ...Option) (*Store, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	s, err := open(path, o)
	if err != nil {
		return nil, fmt.Errorf("opening store %q: %w", path, err)
	}
	return s, nil
}

// Identity is a random name given to the file when it was made. It stays the
// same for as long as the file holds the same records.
func (s *Store) Identity() string { return s.identity }

// LastCommit is the highest time at which anything was committed before the file
// was opened, as a Clock had it; zero if none did.
func (s *Store) LastCommit() time.Time { return s.lastCommit }

// Close waits for the calls under way and lets go of the file. Closing again
// does nothing.
func (s *Store) Close() error {
	var err error
	s.closing.Do(func() {
		if s.broken.Load() {
			// bbolt may have died holding its own locks, and its Close would
			// wait for them for ever. Closing the file gives up the lock on it.
			err = s.file.Close()
			return
		}
		_, err = recovered(s.db.Close)
	})
	if err != nil {
		return fmt.Errorf("closing store %q: %w", s.path, err)
	}
	return nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Record, error) {
	var r store.Record
	err := store.CheckKey(key)
	if err == nil {
		err = s.view(ctx, func(b buckets) error {
			var found bool
			r, found, err = b.read(joinKey(key))
			if err == nil && !found {
				return store.ErrNotFound
			}
			return err
		})
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("reading record %q of %q: %w", key.Sort, key.Partition, err)
	}
	return r, nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, partition, prefix, after string, limit int) (store.Page, error) {
	var page store.Page
	err := store.CheckList(partition, prefix, after, limit)
	if err == nil {
		err = s.view(ctx, func(b buckets) error {
			var last []byte
			if after != "" {
				last = joinKey(store.Key{Partition: partition, Sort: after})
			}
			p := pager{limit: limit, next: sortOf}
			err := b.list(&p, joinKey(store.Key{Partition: partition, Sort: prefix}), last)
			page = p.page
			return err
		})
	}
	if err != nil {
		return store.Page{}, fmt.Errorf("listing records %q of %q: %w", prefix, partition, err)
	}
	return page, nil
}

// Scan implements store.Scanner.
func (s *Store) Scan(ctx context.Context, cursor string) (store.Page, error) {
	var page store.Page
	err := s.view(ctx, func(b buckets) error {
		after, err := parseCursor(scanCursor, cursor)
		if err != nil {
			return err
		}
		p := pager{next: newCursor(scanCursor)}
		err = b.list(&p, nil, after)
		page = p.page
		return err
	})
	if err != nil {
		return store.Page{}, fmt.Errorf("listing all records: %w", err)
	}
	return page, nil
}

// Due implements store.Store. Records are listed in the order of their due
// times, and a commit shows in the listing at once.
func (s *Store) Due(ctx context.Context, before time.Time, cursor string) (store.Page, error) {
	var page store.Page
	err := s.view(ctx, func(b buckets) error {
		var err error
		page, err = b.listDue(before, cursor)
		return err
	})
	if err != nil {
		return store.Page{}, fmt.Errorf("listing records due %q: %w", before.UTC().Format(time.RFC3339Nano), err)
	}
	return page, nil
}

// Commit implements store.Store. If it returns the context's error, nothing
// was changed.
func (s *Store) Commit(ctx context.Context, changes ...store.Change) error {
	err := store.CheckChanges(changes)
	if err == nil {
		err = s.commit(ctx, changes)
	}
	if err != nil {
		return fmt.Errorf("committing %d changes: %w", len(changes), err)
	}
	return nil
}

func (s *Store) view(ctx context.Context, f func(buckets) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := s.within(s.db.View, f)
	return err
}

// within runs f in a transaction and returns its number. A panic or a memory
// fault is ErrDamaged: bbolt trusts the pages that it reads.
func (s *Store) within(transact func(func(*bbolt.Tx) error) error, f func(buckets) error) (id int64, err error) {
	if s.broken.Load() {
		return 0, damaged("%q failed before", s.path)
	}
	latest := s.latest.Load()
	panicked, err := recovered(func() error {
		return transact(func(tx *bbolt.Tx) error {
			if id = int64(tx.ID()); id < latest {
				// Overwritten in place, by damage or by an older backup.
				return damaged("file has gone back to before its last commit")
			}
			b, err := openBuckets(tx)
			if err != nil {
				return err
			}
			return f(b)
		})
	})
	if panicked {
		s.broken.Store(true)
	}
	return id, err
}

// recovered runs f and makes an ErrDamaged of its panic. Reading a mapped
// page that the file no longer has is a fault, which would end the process.
func recovered(f func() error) (panicked bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			panicked, err = true, damaged("%v", p)
		}
	}()
	return false, f()
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrDamaged)
}
