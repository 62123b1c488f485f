package bolt

import (
	"os"

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

// CheckFile proves the open file as Open does.
func (s *Store) CheckFile() error {
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := checkPages(file, s.db.Info().PageSize); err != nil {
		return err
	}
	return s.db.View(func(tx *bbolt.Tx) error {
		b, err := openBuckets(tx)
		if err != nil {
			return err
		}
		_, err = b.check()
		return err
	})
}
