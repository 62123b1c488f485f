package bolt

import (
	"bytes"
	"errors"
	"os"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/records/store"
)

// Salvage copies what is whole in the damaged file at from into a new file at to: each record
// as it was, at its version. Keep says which records to copy. The new file has the given
// identity; the result has that of the damaged file, or an empty one if that is damaged too.
// The damaged file is not changed. Salvage reads from both ends up to the page on which bbolt
// fails, so if bbolt fails on two pages, all records between them are lost. It fails with
// ErrNewer, ErrMissing or ErrDamaged if nothing can be read; the file at to is then of no use.
func Salvage(from, to, identity string, keep func(store.Record) bool) (_ Result, err error) {
	defer while(&err, "salvaging store %q", from)
	s := salvage{keep: keep, about: about{identity: identity}}
	err = s.file(from, to)
	return s.Result, err
}

// A salvage is one run of Salvage.
type salvage struct {
	Result
	keep  func(store.Record) bool
	to    *bbolt.DB
	about about // describes the new file
	batch []store.Change
	bytes int
}

func (s *salvage) file(from, to string) (err error) {
	if err := usable(os.Stat(from)); err != nil {
		return err
	}
	was, _, err := openFile(from, bbolt.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, was.Close()) }()
	if err := create(to); err != nil {
		return err
	}
	if s.to, _, err = openFile(to, bbolt.Options{NoSync: true}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.to.Close()) }()
	err = was.View(func(tx *bbolt.Tx) error { return s.all(tx) })
	if err == nil {
		err = s.flush()
	}
	return errors.Join(err, s.to.Sync())
}

// all reads and copies the records that are left.
func (s *salvage) all(tx *bbolt.Tx) error {
	var in *content
	var was about
	_, err := recovered(func() (err error) {
		if in, err = contentOf(tx); err == nil {
			was, err = in.about()
		}
		return err
	})
	if in == nil || errors.Is(err, ErrNewer) {
		return err
	}
	s.Identity, s.about.last = was.identity, was.last
	last := origin // the last key that was read from the beginning
	panicked, err := recovered(func() error {
		return in.records.walk(first, func(k, v []byte) (bool, error) {
			last = k
			return true, s.record(k, v)
		}, s.leaveOut)
	})
	if err = past(err, s.leaveOut); err != nil || !panicked {
		return err
	}
	_, err = recovered(func() error { return s.back(in.records.Cursor(), last) })
	return past(err, s.leaveOut)
}

// back reads backwards from the end to the key last.
func (s *salvage) back(cursor *bbolt.Cursor, last []byte) error {
	for key, value := cursor.Last(); bytes.Compare(key, last) > 0; {
		if err := past(s.record(key, value), s.leaveOut); err != nil {
			return err
		}
		behind := key
		if key, value = cursor.Prev(); bytes.Compare(key, behind) >= 0 { // otherwise the loop might never end
			return damaged("entries are out of order before %s", nameOf(behind))
		}
	}
	return nil
}

func (s *salvage) record(key, value []byte) error {
	r, err := decodeWhole(key, value)
	if err != nil || !s.keep(r) {
		return err
	}
	s.Records++
	s.bytes += len(value)
	r.Version-- // a change names the version before it
	s.batch = append(s.batch, store.Put(r))
	if s.bytes < pageBytes {
		return nil
	}
	return s.flush()
}

// flush writes the records of the batch, and the file's description of itself.
func (s *salvage) flush() error {
	err := s.to.Update(func(tx *bbolt.Tx) error {
		c, err := contentOf(tx)
		if err != nil {
			return err
		}
		made, err := c.about()
		if err == nil {
			err = c.apply(s.batch)
		}
		if err != nil {
			return err
		}
		s.about.tally = made.tally + c.tally
		return s.about.write(tx.Bucket(aboutBucket))
	})
	s.batch, s.bytes = nil, 0
	return err
}
