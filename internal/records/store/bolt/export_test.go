package bolt

import (
	"context"

	"go.etcd.io/bbolt"
)

// HoldCommits keeps all commits that write waiting until it is released.
func (s *Store) HoldCommits() (release func()) {
	s.writing <- struct{}{}
	return func() { <-s.writing }
}

// Waiting is how many commits wait to be written.
func (s *Store) Waiting() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.sets)
}

// Transactions is how many the file has seen.
func (s *Store) Transactions() int64 { return s.latest.Load() }

// LoseFile closes the file under the store: nothing can be written any more.
func (s *Store) LoseFile() error { return s.file.Close() }

// Edit changes the open file past all that keeps it in order.
func (s *Store) Edit(f func(*bbolt.Tx) error) error { return s.db.Update(f) }

// CheckFile proves the open file as Check does.
func (s *Store) CheckFile() (problems []error, err error) {
	r := Result{}
	err = s.db.View(func(tx *bbolt.Tx) error {
		c := &checker{ctx: context.Background(), result: &r}
		return c.all(s, tx)
	})
	return r.Problems, err
}

// FileFormat is what the file says that a program must know.
func (s *Store) FileFormat() (format uint64) {
	_, _ = s.within(s.db.View, func(_ *bbolt.Tx, c content) error {
		a, err := c.whose()
		format = a.format
		return err
	})
	return format
}
