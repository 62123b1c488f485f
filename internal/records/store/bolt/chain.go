package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"go.etcd.io/bbolt"
)

// A chain is a bucket whose entries name each other: each holds a mark of the key
// that follows on it, under a checksum of all that it is, its key included. So what is
// there is proven by itself, and what is not there by the entry before its place, which
// names the one behind it. Whatever bbolt makes of a damaged page (a key changed, an
// element cut off, another page in its place), no entry is missed or taken for another.
//
// The first entry, origin, stands before all others and names the first of them.
type chain struct {
	*bbolt.Bucket
	tally *uint64 // the sum of the checksums of all entries; nil where nothing is written
}

// origin is before every other key: those begin with the length of a partition, or have
// eight bytes.
var origin = []byte{0}

// first is where the keys begin that follow on origin.
var first = []byte{0, 0}

// A value is the checksum of its key and of all that follows, the mark of the next key,
// and what the entry holds.
const (
	sumLength  = 8
	headLength = sumLength + 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum64 is two checksums of 32 bits, which processors make many times as fast as one
// of 64.
func sum64(a, b []byte) uint64 {
	high := crc32.Update(crc32.Update(0, castagnoli, a), castagnoli, b)
	low := crc32.Update(crc32.Update(0, crc32.IEEETable, a), crc32.IEEETable, b)
	return uint64(high)<<32 | uint64(low)
}

// mark stands for a key in the entry before it; 0 for none.
func mark(key []byte) uint64 {
	if key == nil {
		return 0
	}
	return sum64(key, nil)
}

func sumOf(value []byte) uint64  { return binary.BigEndian.Uint64(value) }
func nextOf(value []byte) uint64 { return binary.BigEndian.Uint64(value[sumLength:]) }

// proven reports whether the value is what was written under the key.
func proven(key, value []byte) error {
	if len(value) < headLength || sumOf(value) != sum64(key, value[sumLength:]) {
		return damaged("%s does not match its checksum", nameOf(key))
	}
	return nil
}

// begin makes the chain an empty one.
func (c chain) begin() error { return c.write(origin, make([]byte, headLength), 0) }

// write gives the value its head. The entry must be new, or taken off the tally.
func (c chain) write(key, value []byte, next uint64) error {
	binary.BigEndian.PutUint64(value[sumLength:], next)
	binary.BigEndian.PutUint64(value, sum64(key, value[sumLength:]))
	*c.tally += sumOf(value)
	return c.Put(key, value)
}

// relink makes an entry name another one as the next.
func (c chain) relink(key, value []byte, next uint64) error {
	*c.tally -= sumOf(value)
	return c.write(key, bytes.Clone(value), next)
}

// value is that of a key; nil if bbolt finds none.
func (c chain) value(key []byte) ([]byte, error) {
	value := c.Get(key)
	if value == nil {
		return nil, nil
	}
	return value, proven(key, value)
}

// read is the value of a key; nil if it is proven that there is none.
func (c chain) read(key []byte) ([]byte, error) {
	value, err := c.value(key)
	if value == nil && err == nil {
		_, _, err = c.gap(key)
	}
	return value, err
}

// gap proves that there is no such key, and gives the entry before its place.
func (c chain) gap(key []byte) (before, named []byte, err error) {
	cursor := c.Cursor()
	if before, named, err = seekBefore(cursor, key); err != nil {
		return nil, nil, err
	}
	after, _, err := follow(cursor, before, named)
	if err == nil && after != nil && bytes.Compare(after, key) <= 0 {
		err = damaged("%s is no entry", nameOf(key)) // but a bucket
	}
	return before, named, err
}

// set writes a value, with room for its head, in the place of the old one, or anew where
// that is nil.
func (c chain) set(key, old, value []byte) error {
	if old != nil {
		*c.tally -= sumOf(old)
		return c.write(key, value, nextOf(old))
	}
	before, named, err := c.gap(key)
	if err != nil {
		return err
	}
	if err := c.write(key, value, nextOf(named)); err != nil {
		return err
	}
	return c.relink(before, named, mark(key))
}

// remove takes an entry out; old is its value.
func (c chain) remove(key, old []byte) error {
	before, named, err := seekBefore(c.Cursor(), key)
	if err == nil && nextOf(named) != mark(key) {
		err = misses(before)
	}
	if err != nil {
		return err
	}
	next := nextOf(old)
	*c.tally -= sumOf(old)
	if err := c.Delete(key); err != nil {
		return err
	}
	return c.relink(before, named, next)
}

// seekBefore moves the cursor to the last entry before the key, and proves it.
func seekBefore(cursor *bbolt.Cursor, key []byte) (before, value []byte, err error) {
	if at, _ := cursor.Seek(key); at == nil {
		before, value = cursor.Last()
	} else {
		before, value = cursor.Prev()
	}
	// bbolt gives nothing for a leaf that this transaction has emptied, as at the beginning.
	for emptied := 0; before == nil && emptied < mostEmptied; emptied++ {
		before, value = cursor.Prev()
	}
	if before == nil || bytes.Compare(before, key) >= 0 {
		return nil, nil, damaged("nothing stands before %s", nameOf(key))
	}
	return before, value, proven(before, value)
}

// follow moves the cursor on to the next entry: nil at the end. It fails if that is not
// the one that the entry before it names.
func follow(cursor *bbolt.Cursor, before, named []byte) (key, value []byte, err error) {
	key, value = cursor.Next()
	if nextOf(named) != mark(key) || key != nil && bytes.Compare(before, key) >= 0 {
		err = misses(before)
	}
	return key, value, err
}

func misses(before []byte) error { return damaged("what follows on %s is missing", nameOf(before)) }

// visit takes an entry, proves it, and reports whether it wants more.
type visit func(key, value []byte) (more bool, err error)

// walk visits the entries in order, beginning with the key from. Of each damaged entry,
// and of each place where some are missing, it asks bad whether to go on: that returns
// nil, or the error that ends it.
func (c chain) walk(from []byte, f visit, bad func(error) error) error {
	cursor := c.Cursor()
	key, value, fault := seekBefore(cursor, from)
	if key == nil {
		return fault
	}
	for more := true; more; {
		before, named := key, value
		if fault != nil { // who follows on a damaged entry nobody knows
			if err := past(fault, bad); err != nil {
				return err
			}
			key, value = cursor.Next()
		} else if key, value, fault = follow(cursor, before, named); fault != nil {
			if err := past(fault, bad); err != nil {
				return err
			}
		}
		if key == nil {
			return nil
		}
		if bytes.Compare(before, key) >= 0 { // or it might have no end
			return damaged("entries are out of order behind %s", nameOf(before))
		}
		if more, fault = f(key, value); fault != nil {
			more = true
		}
	}
	return nil
}

// past asks about damage; any other error stands.
func past(err error, bad func(error) error) error {
	if errors.Is(err, ErrDamaged) {
		return bad(err)
	}
	return err
}
