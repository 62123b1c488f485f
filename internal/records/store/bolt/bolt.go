// Package bolt owns keeping the records of package store in one local file,
// by way of bbolt: the file's making, opening, locking and checking, and how
// keys and records are written in it.
//
// It needs a folder that it may write to, on a file system with locks and
// hard links, and it needs the file for itself: one process at a time. Every
// commit is on the disk before it is answered. It leaves to its callers what
// the records mean and when they expire (it never drops one by itself), and
// to the operator the backups.
//
// All is read and written through bbolt, which trusts its pages. What guards the answers
// is in what we keep (see chain): each entry is proven whenever it is read, and so is
// each answer that there is none, by the entry before its place (what a Reread answers
// from memory was proven when it was read: see seen). So no damaged page
// makes a record wrong or absent: a caller that meets one gets ErrDamaged. Where bbolt itself
// fails on a page, by a panic or a memory fault, nothing more is asked of it before
// the next start. Opening proves both metas, without which bbolt would go back to before
// the last commit.
//
// Check, in a process of its own, reads everything, for damage that no caller has met and that
// no read can tell: pages that are used twice or wrongly free, which a later commit
// would write over, and a page that is whole but older than it should be, from a disk
// that lost a write after it had said that it was kept. What it finds in an open store
// stops all changes. Nothing guards the time before it: a commit may write over a page
// that is wrongly free, and a process may end on a page that leads back to itself.
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

	"github.com/longshore/longshore/internal/records/store"
)

var (
	// ErrLocked: another process holds the file, or another Store of this one.
	ErrLocked = errors.New("store file in use: stop the process that holds it, or give this one a file of its own")
	// ErrDamaged: the file, or a record in it, is not as it was written.
	ErrDamaged = fmt.Errorf("store file damaged: keep it as it is and restore a backup in its place: %w", store.ErrUnreadable)
	// ErrMissing: there is no file and MustExist said that there is one.
	ErrMissing = errors.New("store file missing: put it back, or, if there never was one, start without requiring it")
	// ErrNewer: the file was written in a format that this program does not know.
	ErrNewer = errors.New("store file written by a newer version: run that version or a later one")
	// ErrUnknown: whether a commit was made is unknown, since the disk has not
	// answered, or has failed while it was told to keep it.
	ErrUnknown = errors.New("the disk has not answered: it is unknown whether the change was made")
	// ErrDiskFailed: the disk failed while it was told to keep a commit. What is read
	// from the file may not be on the disk, so that nothing is answered from it.
	ErrDiskFailed = errors.New("the disk failed to keep a change: put the disk right and start again")
	// ErrReadOnly: the store was opened with ReadOnly.
	ErrReadOnly = errors.New("the store cannot be written: allow its folder to be written")
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
	readOnly bool
	db       *bbolt.DB
	file     *os.File // the one that db holds
	seen     seen
	queue    queue         // the sets of changes that wait to be written
	writing  chan struct{} // held by the one commit that writes a group of them
	latest   atomic.Int64  // the last transaction that is known to be in the file
	broken   atomic.Bool   // bbolt panicked: nothing more is asked of it
	failed   atomic.Bool   // what the file says may not be on the disk
	spoilt   atomic.Bool   // Check found damage: nothing more is written
	closing  sync.Once

	clock      func() time.Time // nil if commits do not note their times
	lastCommit time.Time
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Rereader = (*Store)(nil)
)

// An Option changes how Open opens.
type Option func(*options)

type options struct {
	mustExist, readOnly bool
	clock               func() time.Time
}

// MustExist makes Open fail with ErrMissing where there is no file, so that
// one that was lost is never replaced by a fresh and empty one.
func MustExist() Option { return func(o *options) { o.mustExist = true } }

// ReadOnly opens a file that may lie where nothing can be written. Commits that write
// fail with ErrReadOnly.
func ReadOnly() Option { return func(o *options) { o.readOnly = true } }

// Clock has each commit note its time, so that LastCommit tells it after a
// restart, whatever has become of the machine's clock by then.
func Clock(now func() time.Time) Option { return func(o *options) { o.clock = now } }

// Open opens the store in the file at path; where there is none it makes one,
// whole or not at all. How long that takes does not depend on how much the file
// holds (see Check). It waits up to a second for another process to let go of it.
// Its errors are ErrLocked, ErrDamaged, ErrMissing, ErrNewer, or the operating
// system's.
func Open(path string, opts ...Option) (s *Store, err error) {
	defer while(&err, "opening store %q", path)
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return open(path, o)
}

// while says in an error what was done when it came.
func while(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// Identity is a random name given to the file when it was made. It stays the
// same for as long as the file holds the same records.
func (s *Store) Identity() string { return s.identity }

// LastCommit is the highest time at which anything was committed before the file
// was opened, as a Clock had it; zero if none did.
func (s *Store) LastCommit() time.Time { return s.lastCommit }

// Close waits for the calls under way and lets go of the file. Closing again
// does nothing.
func (s *Store) Close() (err error) {
	defer while(&err, "closing store %q", s.path)
	s.closing.Do(func() {
		s.seen.end()
		if s.broken.Load() {
			// bbolt may have died holding its own locks, and its Close would
			// wait for them for ever. The lock on the file ends with the process.
			err = s.file.Close()
			return
		}
		_, err = recovered(s.db.Close)
	})
	return err
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Record, error) {
	r, _, err := s.get(ctx, key)
	return r, err
}

// Reread implements store.Rereader.
func (s *Store) Reread(ctx context.Context, key store.Key, version int64, writer string) (store.Record, error) {
	if r, ok := s.seen.recall(key, version, writer); ok && s.ready() == nil {
		return r, nil
	}
	r, transaction, err := s.get(ctx, key)
	if err != nil {
		return r, err
	}
	s.seen.remember(r, transaction)
	if r.Version == version && r.Writer == writer {
		r.Body = nil
	}
	return r, nil
}

// get also gives the transaction that read the record.
func (s *Store) get(ctx context.Context, key store.Key) (r store.Record, transaction int64, err error) {
	err = store.CheckKey(key)
	if err == nil {
		err = s.view(ctx, func(c *content) error {
			transaction = int64(c.tx.ID())
			found := false
			if r, found, err = c.read(joinKey(key)); err == nil && !found {
				err = store.ErrNotFound
			}
			r = own(r)
			r.Key = key
			return err
		})
	}
	if err != nil {
		return store.Record{}, 0, fmt.Errorf("reading record %q of %q: %w", key.Sort, key.Partition, err)
	}
	return r, transaction, nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, partition, prefix, after string, limit int) (page store.Page, err error) {
	defer while(&err, "listing records %q of %q", prefix, partition)
	if err := store.CheckList(partition, prefix, after, limit); err != nil {
		return page, err
	}
	all := joinKey(store.Key{Partition: partition, Sort: prefix})
	from := all
	if after != "" {
		from = behind(joinKey(store.Key{Partition: partition, Sort: after}))
	}
	err = s.view(ctx, func(c *content) (err error) {
		page, err = c.list(pager{limit: limit, next: sortOf}, all, from)
		return err
	})
	return page, err
}

// Scan implements store.Scanner.
func (s *Store) Scan(ctx context.Context, cursor string) (page store.Page, err error) {
	defer while(&err, "listing all records")
	after, err := parseCursor(scanCursor, cursor)
	if err != nil {
		return page, err
	}
	err = s.view(ctx, func(c *content) (err error) {
		page, err = c.list(pager{next: newCursor(scanCursor)}, nil, behind(after))
		return err
	})
	return page, err
}

// Due implements store.Store. Records are listed in the order of their due
// times, and a commit shows in the listing at once.
func (s *Store) Due(ctx context.Context, before time.Time, cursor string) (page store.Page, err error) {
	defer while(&err, "listing records due %q", before.UTC().Format(time.RFC3339Nano))
	after, err := parseCursor(dueCursor, cursor)
	if err != nil {
		return page, err
	}
	err = s.view(ctx, func(c *content) (err error) {
		page, err = c.listDue(before, after)
		return err
	})
	return page, err
}

// Commit implements store.Store. If it returns the context's error, nothing
// was changed.
func (s *Store) Commit(ctx context.Context, changes ...store.Change) (err error) {
	defer while(&err, "committing %d changes", len(changes))
	switch err := store.CheckChanges(changes); {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case !writes(changes):
		return s.view(ctx, func(c *content) error { return c.require(changes) })
	case s.readOnly:
		return ErrReadOnly
	case s.spoilt.Load():
		return errSpoilt
	}
	return s.commit(ctx, changes)
}

func (s *Store) view(ctx context.Context, f func(*content) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := s.within(s.db.View, f)
	return err
}

// ready returns why nothing is answered any more, or nil.
func (s *Store) ready() error {
	switch {
	case s.broken.Load():
		return damaged("%q failed before", s.path)
	case s.failed.Load():
		return ErrDiskFailed
	}
	return nil
}

// within runs f in a transaction and returns its number. A panic or a memory
// fault is ErrDamaged: bbolt trusts the pages that it reads.
func (s *Store) within(transact func(func(*bbolt.Tx) error) error, f func(*content) error) (id int64, err error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	latest := s.latest.Load()
	panicked, err := recovered(func() error {
		return transact(func(tx *bbolt.Tx) error {
			if id = int64(tx.ID()); id < latest {
				// Overwritten in place, by damage or by an older backup.
				return damaged("file has gone back to before its last commit")
			}
			c, err := contentOf(tx)
			if err != nil {
				return err
			}
			return f(c)
		})
	})
	if panicked {
		s.broken.Store(true)
	}
	return id, err
}

// recovered runs f and makes an ErrDamaged of its panic, of which it says nothing:
// it may quote what the file holds. Reading a mapped page that the file no longer
// has is a fault, which would end the process.
func recovered(f func() error) (panicked bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			panicked, err = true, damaged("a page cannot be used")
		}
	}()
	return false, f()
}

// errSpoilt refuses a change after Check has found damage.
var errSpoilt = damaged("a check of all has found damage")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrDamaged)
}
