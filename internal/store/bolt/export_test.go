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
