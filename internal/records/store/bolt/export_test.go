package bolt

import (
	"bytes"
	"encoding/binary"

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

// SetNewer makes the file one of the next format.
func SetNewer(tx *bbolt.Tx) error {
	b := tx.Bucket(aboutBucket)
	v := bytes.Clone(b.Get(aboutBucket))
	v[sumLength]++
	binary.BigEndian.PutUint64(v, sum64(aboutBucket, v[sumLength:]))
	return b.Put(aboutBucket, v)
}
