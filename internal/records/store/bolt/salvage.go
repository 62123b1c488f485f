package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/records/store"
)

// A Salvaged says what Salvage has found.
type Salvaged struct {
	// Identity is that of the damaged file; empty if that is damaged, too.
	Identity string
	Records  int
	// Problems are the first of what is damaged, at most mostProblems of Wrong.
	Problems []error
	Wrong    int
}

// Salvage writes what is whole of the damaged file at from into a new file at to: each
// record as it was, at its version. Keep says which of them; the new file has the
// identity that is given. The damaged one is not changed. It fails with ErrNewer,
// ErrMissing or ErrDamaged if nothing can be read; what it leaves at to then is of no
// use.
func Salvage(from, to, identity string, keep func(store.Record) bool) (Salvaged, error) {
	s := salvage{keep: keep}
	err := s.file(from, to, identity)
	if err != nil {
		return s.Salvaged, fmt.Errorf("salvaging store %q: %w", from, err)
	}
	return s.Salvaged, nil
}

// A salvage is one run of Salvage.
type salvage struct {
	Salvaged
	keep  func(store.Record) bool
	to    *bbolt.DB
	about about
	last  []byte // when the damaged file was committed to, as it is written there
	batch []salvagedRecord
	bytes int
}

// A salvagedRecord is as the file holds it.
type salvagedRecord struct{ key, value []byte }

func (s *salvage) file(from, to, identity string) (err error) {
	if err := usable(os.Stat(from)); err != nil {
		return err
	}
	damagedDB, file, err := openFile(from, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, damagedDB.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := create(to); err != nil {
		return err
	}
	if s.to, _, err = openFile(to, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.to.Close()) }()
	s.to.NoSync = true // until all is there
	s.about = about{format: fileFormat, identity: []byte(identity), tally: checksum([]byte(identity))}
	_, err = recovered(func() error {
		return damagedDB.View(func(tx *bbolt.Tx) error { return s.all(tx, uint64(info.Size())) })
	})
	if err == nil {
		err = s.flush()
	}
	return errors.Join(err, s.to.Sync())
}

// all reads what is left. It needs neither of what only writing needs, the list of free
// pages and the second meta.
func (s *salvage) all(tx *bbolt.Tx, size uint64) error {
	in, err := contentOf(tx)
	if err != nil {
		return err
	}
	cut := size / in.records.size * in.records.size // of a file that is cut off
	for _, t := range []*tree{&in.records, &in.about} {
		t.data = t.data[:min(uint64(len(t.data)), cut)]
	}
	switch was, err := in.whose(); {
	case errors.Is(err, ErrNewer):
		return err
	case err == nil:
		s.Identity = string(was.identity)
	}
	if at, err := in.lastCommit(); err == nil && !at.IsZero() {
		last, _ := in.about.get(timeKey) // which has just been read
		s.last = bytes.Clone(last)
	}
	return in.records.ascendPast(nil, s.record, func(err error) error {
		if s.Wrong++; len(s.Problems) < mostProblems {
			s.Problems = append(s.Problems, err)
		}
		return nil
	})
}

func (s *salvage) record(key, value []byte) (bool, error) {
	r, err := decode(key, value)
	if err != nil || !s.keep(r) {
		return true, err
	}
	s.Records++
	s.bytes += len(value)
	s.batch = append(s.batch, salvagedRecord{bytes.Clone(key), bytes.Clone(value)})
	if s.bytes < pageBytes {
		return true, nil
	}
	return true, s.flush()
}

// flush writes the records that were read, and what the file says of itself.
func (s *salvage) flush() error {
	err := s.to.Update(func(tx *bbolt.Tx) error {
		records, due := tx.Bucket(recordsBucket), tx.Bucket(dueBucket)
		for _, e := range s.batch {
			r, err := decodeOf(e.key, e.value)
			if err == nil {
				err = records.Put(e.key, e.value)
			}
			if at, isDue := milliseconds(r.Due); err == nil && isDue {
				err = due.Put(dueKey(at, e.key), present)
			}
			if err != nil {
				return err
			}
			s.about.tally += storedChecksum(e.value)
		}
		if s.last != nil {
			if err := tx.Bucket(aboutBucket).Put(timeKey, s.last); err != nil {
				return err
			}
		}
		return s.about.write(tx.Bucket(aboutBucket))
	})
	s.batch, s.bytes = nil, 0
	return err
}
