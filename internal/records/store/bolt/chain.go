package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"

	"go.etcd.io/bbolt"
)

// A chain is a bucket whose entries name each other. Each entry holds a mark of the next key,
// under a checksum of the whole entry, its key included. So an entry that exists proves itself,
// and the absence of a key is proven by the entry before its place, which names the entry after
// it. Whatever bbolt makes of a damaged page (a changed key, a missing element, another page in
// its place), no entry is missed or taken for another.
//
// The first entry, origin, comes before all others and names the first of them.
type chain struct {
	*bbolt.Bucket
	tally *uint64 // the sum of the checksums of all entries; nil if nothing is written
}

// origin sorts before every other key: the others begin with the length of a partition, or have eight bytes.
var origin = []byte{0}

// first is the lowest key that can follow origin.
var first = []byte{0, 0}

// A value holds a checksum of its key and of everything that follows, then the mark of the next
// key, then the content of the entry.
const (
	sumLength  = 8
	headLength = sumLength + 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum64 joins two checksums of 32 bits, which processors compute many times faster than one of 64 bits.
func sum64(a, b []byte) uint64 {
	high := crc32.Update(crc32.Update(0, castagnoli, a), castagnoli, b)
	low := crc32.Update(crc32.Update(0, crc32.IEEETable, a), crc32.IEEETable, b)
	return uint64(high)<<32 | uint64(low)
}

// mark returns the mark that stands for a key in the entry before it; 0 if there is no next key.
func mark(key []byte) uint64 {
	if key == nil {
		return 0
	}
	return sum64(key, nil)
}

func sumOf(value []byte) uint64  { return binary.BigEndian.Uint64(value) }
func nextOf(value []byte) uint64 { return binary.BigEndian.Uint64(value[sumLength:]) }

// proven returns ErrDamaged unless the value is the one that was written under the key.
func proven(key, value []byte) error {
	if len(value) < headLength || sumOf(value) != sum64(key, value[sumLength:]) {
		return damaged("%s does not match its checksum", nameOf(key))
	}
	return nil
}

// write fills in the head of the value and writes it. The entry must be new, or already
// subtracted from the tally.
func (c chain) write(key, value []byte, next uint64) error {
	binary.BigEndian.PutUint64(value[sumLength:], next)
	binary.BigEndian.PutUint64(value, sum64(key, value[sumLength:]))
	*c.tally += sumOf(value)
	return c.Put(key, value)
}

// relink changes which entry an entry names as the next.
func (c chain) relink(key, value []byte, next uint64) error {
	*c.tally -= sumOf(value)
	return c.write(key, bytes.Clone(value), next)
}

// value returns the value of a key; nil if bbolt finds none.
func (c chain) value(key []byte) ([]byte, error) {
	value := c.Get(key)
	if value == nil {
		return nil, nil
	}
	return value, proven(key, value)
}

// read returns the value of a key; nil if it is proven that there is none.
func (c chain) read(key []byte) ([]byte, error) {
	value, err := c.value(key)
	if value == nil && err == nil {
		_, _, err = c.gap(key)
	}
	return value, err
}

// gap proves that there is no such key, and returns the entry before its place.
func (c chain) gap(key []byte) (before, named []byte, err error) {
	cursor := c.Cursor()
	if before, named, err = seekBefore(cursor, key); err != nil {
		return nil, nil, err
	}
	after, _, err := follow(cursor, before, named)
	if err == nil && after != nil && bytes.Compare(after, key) <= 0 {
		err = damaged("%s is no entry", nameOf(key)) // it is a bucket
	}
	return before, named, err
}

// set writes a value, with room for its head, in place of the old value, or as a new entry if old is nil.
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

// remove removes an entry; old is its value.
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

// seekBefore moves the cursor to the last entry before the key, and proves that entry.
func seekBefore(cursor *bbolt.Cursor, key []byte) (before, value []byte, err error) {
	if at, _ := cursor.Seek(key); at == nil {
		before, value = cursor.Last()
	} else {
		before, value = cursor.Prev()
	}
	// For a leaf that this transaction has emptied, bbolt returns nothing, as it does at the beginning.
	for emptied := 0; before == nil && emptied < mostEmptied; emptied++ {
		before, value = cursor.Prev()
	}
	if before == nil || bytes.Compare(before, key) >= 0 {
		return nil, nil, damaged("nothing stands before %s", nameOf(key))
	}
	return before, value, proven(before, value)
}

// follow moves the cursor to the next entry; key is nil at the end. It fails if that is not the
// entry that the one before names.
func follow(cursor *bbolt.Cursor, before, named []byte) (key, value []byte, err error) {
	key, value = cursor.Next()
	if nextOf(named) != mark(key) || key != nil && bytes.Compare(before, key) >= 0 {
		err = misses(before)
	}
	return key, value, err
}

func misses(before []byte) error { return damaged("what follows on %s is missing", nameOf(before)) }

// walk visits the entries in order, beginning with the key from: f handles an entry, which it proves, and reports
// whether it wants more. For each damaged entry, and for each place where entries are missing, walk calls bad, which
// returns nil to go on, or the error that ends the walk.
func (c chain) walk(from []byte, f func(key, value []byte) (more bool, err error), bad func(error) error) error {
	cursor := c.Cursor()
	key, value, fault := seekBefore(cursor, from)
	if key == nil {
		return fault
	}
	for more := true; more; {
		before, named := key, value
		if fault != nil { // a damaged entry does not tell which entry follows
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
		if bytes.Compare(before, key) >= 0 { // otherwise the walk might never end
			return damaged("entries are out of order behind %s", nameOf(before))
		}
		if more, fault = f(key, value); fault != nil {
			more = true
		}
	}
	return nil
}

// past passes damage to bad, and returns any other error.
func past(err error, bad func(error) error) error {
	if errors.Is(err, ErrDamaged) {
		return bad(err)
	}
	return err
}
