// Package bolt keeps the records of package store in one local file, by way of bbolt. It owns
// how the file is made, opened, locked and checked, and how keys and records are written in it.
//
// It needs a folder that it may write to, on a file system with locks and hard links, and it
// needs the file for itself: one process at a time. Every commit is on the disk before it is
// answered. Callers decide what the records mean and when they expire (this package never drops
// a record by itself), and the operator makes the backups.
//
// Everything is read and written through bbolt, which trusts its pages. The stored entries
// themselves guard the answers (see chain): each entry is proven whenever it is read, and each
// answer that there is none is proven by the entry before its place. (A record that a Reread
// answers from memory was proven when it was read: see seen.) So no damaged page makes a record
// wrong or absent: a caller that meets one gets ErrDamaged. If bbolt itself fails on a page, by
// a panic or a memory fault, the package asks nothing more of it until the next start. Opening
// proves both metas; otherwise bbolt could go back to the state before the last commit.
//
// Check, in a process of its own, reads everything. It looks for damage that no caller has met
// and that no read can detect: pages that are used twice or wrongly free, which a later commit
// would overwrite, and a page that is whole but older than it should be, from a disk that lost
// a write after it had confirmed it. If it finds damage in an open store, it stops all changes.
// Nothing guards the time before: a commit may overwrite a page that is wrongly free, and a
// process may die of a page that leads back to itself.
package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/records/store"
)

var (
	// ErrLocked says that another process holds the file, or another Store of this process.
	ErrLocked = errors.New("store file in use: stop the process that holds it, or give this one a file of its own")
	// ErrDamaged says that the file, or a record in it, is not as it was written.
	ErrDamaged = fmt.Errorf("store file damaged: keep it as it is and restore a backup in its place: %w", store.ErrUnreadable)
	// ErrMissing says that there is no file, although MustExist was given.
	ErrMissing = errors.New("store file missing: put it back, or, if there never was one, start without requiring it")
	// ErrNewer says that the file was written in a format that this program does not know.
	ErrNewer = errors.New("store file written by a newer version: run that version or a later one")
	// ErrUnknown says that it is unknown whether a commit was made: the disk has not answered,
	// or failed while it was told to keep the commit.
	ErrUnknown = errors.New("the disk has not answered: it is unknown whether the change was made")
	// ErrDiskFailed says that the disk failed while it was told to keep a commit. The file may
	// say things that are not on the disk, so nothing is answered from it.
	ErrDiskFailed = errors.New("the disk failed to keep a change: put the disk right and start again")
	// ErrReadOnly says that the store was opened with ReadOnly.
	ErrReadOnly = errors.New("the store cannot be written: allow its folder to be written")
)

const (
	// lockWait is how long Open waits for another process to release the file.
	lockWait = time.Second
	// A page of a listing ends at either of these limits.
	pageRecords = 100
	pageBytes   = 1 << 20
)

// A Store keeps records in one file. It is safe for use by many goroutines.
type Store struct {
	path       string
	how        Options
	identity   string
	lastCommit time.Time
	db         *bbolt.DB
	file       *os.File // the file that db holds
	seen       seen
	queue      queue         // the sets of changes that wait to be written
	writing    chan struct{} // held by the commit that is writing a group of sets
	latest     atomic.Int64  // the last transaction that is known to be in the file
	broken     atomic.Bool   // bbolt panicked: nothing more is asked of it
	failed     atomic.Bool   // the file's content may not be on the disk
	spoilt     atomic.Bool   // Check found damage: nothing more is written
	closing    sync.Once
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Rereader = (*Store)(nil)
)

// Options say how Open opens the file.
type Options struct {
	// MustExist makes Open fail with ErrMissing if there is no file, so that a lost file is never
	// replaced by a new and empty one.
	MustExist bool
	// ReadOnly opens a file that may be in a place where nothing can be written. Commits that write fail with ErrReadOnly.
	ReadOnly bool
	// Clock makes each commit record its time; nil for none. LastCommit returns that time after a
	// restart, even if the machine's clock is wrong by then.
	Clock func() time.Time
}

// Open opens the store in the file at path. If there is no file, it makes one, whole or not at
// all. The time that it takes does not depend on the size of the file's content (see Check). It
// waits up to a second for another process to release the file. Its errors are ErrLocked,
// ErrDamaged, ErrMissing, ErrNewer, or those of the operating system.
func Open(path string, how Options) (_ *Store, err error) {
	defer while(&err, "opening store %q", path)
	s := &Store{path: path, how: how, writing: make(chan struct{}, 1)}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !how.MustExist {
		if err := create(path); err != nil {
			return nil, err
		}
	}
	if err := usable(os.Stat(path)); err != nil {
		return nil, err
	}
	if s.db, s.file, err = openFile(path, bbolt.Options{ReadOnly: how.ReadOnly}); err != nil {
		return nil, err
	}
	if err := s.prove(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// while prefixes an error with what was being done.
func while(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// Identity returns a random name that the file got when it was made. It stays the same for as
// long as the file holds the same records.
func (s *Store) Identity() string { return s.identity }

// LastCommit returns the latest time of any commit before the file was opened, according to its
// Clock; zero if no commit recorded its time.
func (s *Store) LastCommit() time.Time { return s.lastCommit }

// Close waits for the calls under way and releases the file. Closing again does nothing.
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

// get also returns the transaction that read the record.
func (s *Store) get(ctx context.Context, key store.Key) (r store.Record, transaction int64, err error) {
	err = store.CheckKey(key)
	if err == nil {
		err = s.view(ctx, func(c *content) error {
			transaction = int64(c.tx.ID())
			if r, err = c.read(joinKey(key)); err == nil && r.Version == 0 {
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

// Scan implements store.Store.
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

// Due implements store.Store. It lists records in the order of their due times, and shows a commit at once.
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
	case s.how.ReadOnly:
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

// ready returns why the store answers nothing any more; nil if it does.
func (s *Store) ready() error {
	switch {
	case s.broken.Load():
		return damaged("%q failed before", s.path)
	case s.failed.Load():
		return ErrDiskFailed
	}
	return nil
}

// within runs f in a transaction and returns the transaction's number. A panic or a memory
// fault becomes ErrDamaged, since bbolt trusts the pages that it reads.
func (s *Store) within(transact func(func(*bbolt.Tx) error) error, f func(*content) error) (id int64, err error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	latest := s.latest.Load()
	panicked, err := recovered(func() error {
		return transact(func(tx *bbolt.Tx) error {
			if id = int64(tx.ID()); id < latest {
				// The file was overwritten in place, by damage or by an older backup.
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

// recovered runs f and turns a panic into ErrDamaged. The error does not quote the panic, which
// may quote the file's content. Reading a mapped page that the file no longer has is a memory
// fault, which would otherwise end the process.
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
