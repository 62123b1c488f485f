package bolt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/records/store"
)

// fileFormat is the version of the file's format. A program that does not know the version cannot use the file.
const fileFormat = 1

var (
	recordsBucket = []byte("records")
	dueBucket     = []byte("due")
	aboutBucket   = []byte("about") // holds one value, under its own name
)

// An about is the file's description of itself.
type about struct {
	// tally is the sum of the checksums of all entries. It proves that no page is older than it should be.
	tally uint64
	// last is the time of the last commit, in milliseconds since 1970; 0 if no commit recorded its time.
	last     int64
	identity string
}

// The value of an about is its checksum, the format, the tally, the time and the identity. A
// later format keeps the first two in their places.
const aboutLength = sumLength + 1 + 8 + 8

func (a about) write(b *bbolt.Bucket) error {
	v := append(make([]byte, sumLength, aboutLength+len(a.identity)), fileFormat)
	v = binary.BigEndian.AppendUint64(v, a.tally)
	v = binary.BigEndian.AppendUint64(v, uint64(a.last))
	v = append(v, a.identity...)
	binary.BigEndian.PutUint64(v, sum64(aboutBucket, v[sumLength:]))
	return b.Put(aboutBucket, v)
}

// A content is the content of the file as a transaction sees it.
type content struct {
	tx      *bbolt.Tx
	records chain
	tally   uint64 // the change that this transaction makes to the file's tally
}

// contentOf finds the bucket of records, which every transaction needs.
func contentOf(tx *bbolt.Tx) (*content, error) {
	c := &content{tx: tx}
	b, err := c.bucket(recordsBucket)
	if err != nil {
		return nil, err
	}
	c.records = chain{b, &c.tally}
	return c, nil
}

func (c *content) bucket(name []byte) (*bbolt.Bucket, error) {
	if b := c.tx.Bucket(name); b != nil {
		return b, nil
	}
	return nil, damaged("bucket %q is missing", name)
}

// due returns the index of due records. Its entries have no content beside their keys.
func (c *content) due() (chain, error) {
	b, err := c.bucket(dueBucket)
	return chain{b, &c.tally}, err
}

// listed returns the value of a record's entry in the due index.
func (c chain) listed(milliseconds int64, key []byte) ([]byte, error) {
	value, err := c.value(dueKey(milliseconds, key))
	if err == nil && value == nil {
		err = damaged("%s is not in the due index", nameOf(key))
	}
	return value, err
}

func (c *content) about() (a about, err error) {
	b, err := c.bucket(aboutBucket)
	if err != nil {
		return a, err
	}
	v := b.Get(aboutBucket)
	switch {
	case len(v) < aboutLength || sumOf(v) != sum64(aboutBucket, v[sumLength:]):
		return a, damaged("what the file says of itself does not match its checksum")
	case v[sumLength] != fileFormat:
		return a, fmt.Errorf("file format is %d, not %d: %w", v[sumLength], fileFormat, ErrNewer)
	}
	v = v[sumLength+1:]
	return about{binary.BigEndian.Uint64(v), int64(binary.BigEndian.Uint64(v[8:])), string(v[16:])}, nil
}

// make makes an empty file.
func (c *content) make(identity string) error {
	var err error
	for _, name := range [][]byte{recordsBucket, dueBucket, aboutBucket} {
		b, e := c.tx.CreateBucket(name)
		if err = errors.Join(err, e); err == nil && !bytes.Equal(name, aboutBucket) {
			err = chain{b, &c.tally}.write(origin, make([]byte, headLength), 0)
		}
	}
	if err != nil {
		return err
	}
	return about{tally: c.tally, identity: identity}.write(c.tx.Bucket(aboutBucket))
}

// read returns the record without its key; version 0 if there is none.
func (c *content) read(key []byte) (r store.Record, err error) {
	v, err := c.records.read(key)
	if v == nil || err != nil {
		return r, err
	}
	return decode(key, v)
}

// list fills a page with the records whose joined keys start with prefix, beginning with the
// key from. It leaves out damaged records, and names them in the error.
func (c *content) list(p pager, prefix, from []byte) (store.Page, error) {
	err := c.records.walk(from, func(k, v []byte) (bool, error) {
		if !bytes.HasPrefix(k, prefix) || p.ends() {
			return false, nil
		}
		r, err := decodeWhole(k, v)
		if err == nil {
			p.add(k, r)
		}
		return true, err
	}, p.leaveOut)
	return p.page, p.left(err)
}

// listDue is like list, for the records that are due.
func (c *content) listDue(before time.Time, after []byte) (store.Page, error) {
	index, err := c.due()
	if err != nil {
		return store.Page{}, err
	}
	latest := before.UnixMilli()
	p := pager{next: newCursor(dueCursor)}
	err = index.walk(behind(after), func(k, v []byte) (bool, error) {
		due, key, err := splitDueKey(k)
		if err == nil && (due > latest || p.ends()) {
			return false, nil
		}
		if err = cmp.Or(proven(k, v), err); err != nil {
			return true, err
		}
		r, err := c.read(key)
		if err != nil {
			return true, err
		}
		if kept, _ := store.Milliseconds(r.Due); r.Version == 0 || kept != due {
			return true, damaged("due index and %s disagree", nameOf(key))
		}
		if r.Key, err = splitKey(key); err == nil {
			p.add(k, own(r))
		}
		return true, err
	}, p.leaveOut)
	return p.page, p.left(err)
}

// A pager fills a page. It is asked whether the page ends only when there is one more record,
// so that no listing continues with an empty page.
type pager struct {
	limit int                 // the most records in a page; 0 for pageRecords, which is also the upper bound
	next  func([]byte) string // returns the cursor with which the listing goes on after a key
	page  store.Page
	bytes int
	last  []byte
	Damage
}

// left returns the error that comes with a page.
func (p *pager) left(err error) error {
	if more := p.Wrong - len(p.Problems); more > 0 {
		err = errors.Join(err, damaged("%d more are damaged", more))
	}
	return errors.Join(append(p.Problems, err)...)
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

// Damage is the damage that was found.
type Damage struct {
	// Problems are the first of the Wrong problems, at most mostProblems.
	Problems []error
	Wrong    int
}

// mostProblems bounds the problems that are remembered, for a file that is all wrong.
const mostProblems = 100

// Add notes one more problem.
func (d *Damage) Add(err error) {
	if d.Wrong++; len(d.Problems) < mostProblems {
		d.Problems = append(d.Problems, err)
	}
}

// leaveOut notes a problem and lets the caller go on past it.
func (d *Damage) leaveOut(err error) error {
	d.Add(err)
	return nil
}

// require returns ErrConflict unless each record is at the version that its change names. It changes nothing.
func (c *content) require(changes []store.Change) error {
	for _, change := range changes {
		r := change.Record
		old, err := c.read(joinKey(r.Key))
		if err == nil && r.Version != old.Version {
			err = fmt.Errorf("record %q of %q is at version %d, not %d: %w",
				r.Sort, r.Partition, old.Version, r.Version, store.ErrConflict)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// apply makes the changes, which require has allowed. After an error the transaction must be rolled back.
func (c *content) apply(changes []store.Change) error {
	for _, change := range changes {
		if change.Action == store.ActionCheck {
			continue
		}
		if err := c.change(change); err != nil {
			return err
		}
	}
	return nil
}

// change writes or removes one record, and moves it in the due index.
func (c *content) change(change store.Change) error {
	key, next := joinKey(change.Record.Key), change.Record
	value, err := c.records.value(key)
	if err != nil {
		return err
	}
	var old store.Record
	if value != nil {
		if old, err = decode(key, value); err != nil {
			return err
		}
	}
	switch {
	case change.Action == store.ActionPut:
		next.Version++
		err = c.records.set(key, value, encode(next))
	case value != nil:
		next.Due = time.Time{}
		err = c.records.remove(key, value)
	}
	if err != nil {
		return err
	}
	return c.move(key, old.Due, next.Due)
}

// move moves a record in the due index from one time to another.
func (c *content) move(key []byte, from, to time.Time) error {
	was, wasDue := store.Milliseconds(from)
	is, isDue := store.Milliseconds(to)
	due, err := c.due()
	if err != nil || wasDue == isDue && was == is {
		return err
	}
	if wasDue {
		value, err := due.listed(was, key)
		if err == nil {
			err = due.remove(dueKey(was, key), value)
		}
		if err != nil {
			return err
		}
	}
	if !isDue {
		return nil
	}
	return due.set(dueKey(is, key), nil, make([]byte, headLength))
}
