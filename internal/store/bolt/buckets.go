package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/store"
)

// fileFormat is what a program must know to use the file at all.
const fileFormat = 1

var (
	aboutBucket   = []byte("about")
	recordsBucket = []byte("records")
	dueBucket     = []byte("due")

	formatKey   = []byte("format")
	identityKey = []byte("identity")
	// The tally is the sum of the checksums of all records and of the
	// identity. It proves that no record has gone missing.
	tallyKey = []byte("tally")
	// The time of the last commit, behind its checksum: none in a file of a
	// program that did not note it.
	timeKey = []byte("time")

	// What the due index holds is all in its keys; bbolt tells an empty value
	// from none less plainly than this.
	present = []byte{1}
)

// buckets is the file's content within one transaction.
type buckets struct {
	about, records, due *bbolt.Bucket
}

func makeBuckets(tx *bbolt.Tx, identity string) error {
	for _, name := range [][]byte{aboutBucket, recordsBucket, dueBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	about := tx.Bucket(aboutBucket)
	if err := about.Put(formatKey, binary.BigEndian.AppendUint64(nil, fileFormat)); err != nil {
		return err
	}
	if err := about.Put(identityKey, []byte(identity)); err != nil {
		return err
	}
	return about.Put(tallyKey, binary.BigEndian.AppendUint64(nil, checksum([]byte(identity))))
}

func openBuckets(tx *bbolt.Tx) (buckets, error) {
	b := buckets{tx.Bucket(aboutBucket), tx.Bucket(recordsBucket), tx.Bucket(dueBucket)}
	if b.about == nil || b.records == nil || b.due == nil {
		return buckets{}, damaged("a bucket is missing")
	}
	return b, nil
}

func (b buckets) number(key []byte) (uint64, error) {
	v := b.about.Get(key)
	if len(v) != 8 {
		return 0, damaged("the file's %s is missing", key)
	}
	return binary.BigEndian.Uint64(v), nil
}

// lastCommit is the time that was noted; zero if none was. It is rounded up.
func (b buckets) lastCommit() (time.Time, error) {
	v := b.about.Get(timeKey)
	if v == nil {
		return time.Time{}, nil
	}
	if len(v) != 16 || binary.BigEndian.Uint64(v) != checksum(timeKey, v[8:]) {
		return time.Time{}, damaged("the time of the last commit does not match its checksum")
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(v[8:])) + 1).UTC(), nil
}

// note remembers when a commit was made; a clock that has gone back does not move
// it back.
func (b buckets) note(now time.Time) error {
	if last, err := b.lastCommit(); err != nil || !now.After(last) {
		return err
	}
	at := binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli()))
	return b.about.Put(timeKey, append(binary.BigEndian.AppendUint64(nil, checksum(timeKey, at)), at...))
}

// read returns the record and whether there is one.
func (b buckets) read(key []byte) (store.Record, bool, error) {
	v := b.records.Get(key)
	if v == nil {
		return store.Record{}, false, nil
	}
	r, err := decode(key, v)
	return r, err == nil, err
}

// require returns ErrConflict unless each record is at the version that its
// change names. It changes nothing.
func (b buckets) require(changes []store.Change) error {
	for _, c := range changes {
		old, _, err := b.read(joinKey(c.Record.Key))
		if err != nil {
			return err
		}
		if c.Record.Version != old.Version {
			return fmt.Errorf("record %q of %q is at version %d, not %d: %w",
				c.Record.Sort, c.Record.Partition, old.Version, c.Record.Version, store.ErrConflict)
		}
	}
	return nil
}

// apply makes the changes, which require has allowed, and returns what they
// add to the tally. On an error the transaction must be rolled back.
func (b buckets) apply(changes []store.Change) (tally uint64, err error) {
	for _, c := range changes {
		if c.Action == store.ActionCheck {
			continue
		}
		key := joinKey(c.Record.Key)
		old, found, err := b.read(key)
		if err != nil {
			return 0, err
		}
		if found {
			tally -= storedChecksum(b.records.Get(key))
			if err := b.remove(key, old); err != nil {
				return 0, err
			}
		}
		if c.Action == store.ActionPut {
			next := c.Record
			next.Version++
			sum, err := b.write(key, next)
			if err != nil {
				return 0, err
			}
			tally += sum
		}
	}
	return tally, nil
}

func (b buckets) remove(key []byte, old store.Record) error {
	if due, ok := milliseconds(old.Due); ok {
		if err := b.due.Delete(dueKey(due, key)); err != nil {
			return err
		}
	}
	return b.records.Delete(key)
}

func (b buckets) write(key []byte, r store.Record) (sum uint64, err error) {
	value, err := encode(key, r)
	if err != nil {
		return 0, err
	}
	if due, ok := milliseconds(r.Due); ok {
		if err := b.due.Put(dueKey(due, key), present); err != nil {
			return 0, err
		}
	}
	return storedChecksum(value), b.records.Put(key, value)
}

// list fills a page with the records whose joined keys start with prefix and
// are past after.
func (b buckets) list(p *pager, prefix, after []byte) error {
	c := b.records.Cursor()
	for k, v := seek(c, prefix, after); k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if p.ends() {
			break
		}
		r, err := decode(k, v)
		if err != nil {
			return err
		}
		p.add(k, r)
	}
	return nil
}

// listDue reads a page of the records that are due.
func (b buckets) listDue(before time.Time, cursor string) (store.Page, error) {
	after, err := parseCursor(dueCursor, cursor)
	if err != nil {
		return store.Page{}, err
	}
	latest := before.UnixMilli()
	p := pager{next: newCursor(dueCursor)}
	c := b.due.Cursor()
	for k, _ := seek(c, nil, after); k != nil; k, _ = c.Next() {
		due, key, err := splitDueKey(k)
		if err != nil {
			return store.Page{}, err
		}
		if due > latest || p.ends() {
			break
		}
		r, found, err := b.read(key)
		if err != nil {
			return store.Page{}, err
		}
		if kept, _ := milliseconds(r.Due); !found || kept != due {
			return store.Page{}, damaged("due index and record %q disagree", key)
		}
		p.add(k, r)
	}
	return p.page, nil
}

// seek moves to the first key that is not before from and is past after.
func seek(c *bbolt.Cursor, from, after []byte) (k, v []byte) {
	if after == nil {
		return c.Seek(from)
	}
	k, v = c.Seek(after)
	if bytes.Equal(k, after) {
		return c.Next()
	}
	return k, v
}

// A pager fills a page. It is asked whether the page ends only when there is
// one more record, so that no listing goes on to an empty page.
type pager struct {
	limit int                 // of records; 0 for pageRecords, which it is at most
	next  func([]byte) string // how the listing goes on after a key
	page  store.Page
	bytes int
	last  []byte
}

func (p *pager) ends() bool {
	if len(p.page.Records) < min(cmp.Or(p.limit, pageRecords), pageRecords) && p.bytes < pageBytes {
		return false
	}
	p.page.Next = p.next(p.last)
	return true
}

func (p *pager) add(key []byte, r store.Record) {
	p.page.Records = append(p.page.Records, r)
	p.bytes += len(r.Body)
	p.last = key
}

// check reads all content and proves that each record is as it was written,
// that none is missing, and that the due index is that of the records.
func (b buckets) check() (identity string, err error) {
	format, err := b.number(formatKey)
	if err != nil {
		return "", err
	}
	if format != fileFormat {
		return "", fmt.Errorf("file format is %d, not %d: %w", format, fileFormat, ErrNewer)
	}
	tally, err := b.number(tallyKey)
	if err != nil {
		return "", err
	}
	identity = string(b.about.Get(identityKey))
	sum, due := checksum([]byte(identity)), 0
	err = b.records.ForEach(func(k, v []byte) error {
		r, err := decode(k, v)
		if err != nil {
			return err
		}
		sum += storedChecksum(v)
		if ms, ok := milliseconds(r.Due); ok {
			due++
			if b.due.Get(dueKey(ms, k)) == nil {
				return damaged("record %q of %q is not in the due index", r.Sort, r.Partition)
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if sum != tally {
		return "", damaged("records are missing or not of this file")
	}
	err = b.due.ForEach(func(_, _ []byte) error {
		due--
		return nil
	})
	if err == nil && due != 0 {
		err = damaged("the due index holds records that are not there")
	}
	return identity, err
}
