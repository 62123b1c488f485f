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

// fileFormat is what a program must know to use the file at all. A file of an
// earlier format is read as it is, and becomes one of this with its next commit.
const (
	fileFormat   = 2
	oldestFormat = 1
)

var (
	aboutBucket   = []byte("about")
	recordsBucket = []byte("records")
	dueBucket     = []byte("due")

	formatKey   = []byte("format")
	identityKey = []byte("identity")
	// The tally is the sum of the checksums of all records and of the
	// identity. It proves that no record has gone missing.
	tallyKey = []byte("tally")
	// The checksum of these three: none in format 1.
	sumKey = []byte("sum")
	// The time of the last commit, behind its checksum: none in a file of a
	// program that did not note it.
	timeKey = []byte("time")

	// What the due index holds is all in its keys; bbolt tells an empty value
	// from none less plainly than this.
	present = []byte{1}
)

// An about is what the file says of itself.
type about struct {
	format, tally uint64
	identity      []byte
}

func (a about) sum() []byte {
	return binary.BigEndian.AppendUint64(nil, checksum(eight(a.format), eight(a.tally), a.identity))
}

func eight(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func (a about) write(b *bbolt.Bucket) error {
	for _, e := range []struct{ key, value []byte }{
		{formatKey, eight(a.format)}, {identityKey, a.identity}, {tallyKey, eight(a.tally)}, {sumKey, a.sum()},
	} {
		if err := b.Put(e.key, e.value); err != nil {
			return err
		}
	}
	return nil
}

func makeBuckets(tx *bbolt.Tx, identity string) error {
	for _, name := range [][]byte{aboutBucket, recordsBucket, dueBucket} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	a := about{format: fileFormat, identity: []byte(identity), tally: checksum([]byte(identity))}
	return a.write(tx.Bucket(aboutBucket))
}

// A content is what the file holds, as a transaction began with it.
type content struct {
	about, records, due tree
}

// contentOf finds the buckets. It reads no more than the page that names them.
func contentOf(tx *bbolt.Tx) (c content, err error) {
	p := pagesOf(tx)
	top, err := p.node(uint64(tx.Cursor().Bucket().Root()), nil, nil)
	if err != nil {
		return c, err
	}
	for i := 0; top.leaf && i < top.n; i++ {
		for _, b := range []struct {
			name []byte
			into *tree
		}{{aboutBucket, &c.about}, {recordsBucket, &c.records}, {dueBucket, &c.due}} {
			if !bytes.Equal(top.key(i), b.name) || top.flags(i) != bucketFlag {
				continue
			}
			if *b.into, err = p.newTree(top.value(i)); err != nil {
				return c, err
			}
		}
	}
	if c.about.data == nil || c.records.data == nil || c.due.data == nil {
		return c, damaged("a bucket is missing")
	}
	return c, nil
}

func (c content) pages() pages { return c.records.pages }

func (c content) number(key []byte) (uint64, error) {
	v, err := c.about.get(key)
	if err == nil && len(v) != 8 {
		err = damaged("the file's %s is missing", key)
	}
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}

// whose is what the file says of itself, proven.
func (c content) whose() (a about, err error) {
	if a.format, err = c.number(formatKey); err != nil {
		return a, err
	}
	if a.format < oldestFormat || a.format > fileFormat {
		return a, fmt.Errorf("file format is %d, not %d to %d: %w", a.format, oldestFormat, fileFormat, ErrNewer)
	}
	if a.tally, err = c.number(tallyKey); err != nil {
		return a, err
	}
	if a.identity, err = c.about.get(identityKey); err != nil {
		return a, err
	}
	sum, err := c.about.get(sumKey)
	if err == nil && !bytes.Equal(sum, a.sum()) && (sum != nil || a.format > oldestFormat) {
		err = damaged("what the file says of itself does not match its checksum")
	}
	return a, err
}

// lastCommit is the time that was noted; zero if none was. It is rounded up.
func (c content) lastCommit() (time.Time, error) {
	v, err := c.about.get(timeKey)
	if v == nil || err != nil {
		return time.Time{}, err
	}
	if len(v) != 16 || binary.BigEndian.Uint64(v) != checksum(timeKey, v[8:]) {
		return time.Time{}, damaged("the time of the last commit does not match its checksum")
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(v[8:])) + 1).UTC(), nil
}

// read returns the record without its key, and whether there is one. That there is none is proven
// by the records on both sides: a damaged key stands where it always stood.
func (c content) read(key []byte) (r store.Record, found bool, err error) {
	err = c.records.ascend(key, func(k, v []byte) (bool, error) {
		if !bytes.Equal(k, key) {
			return bytes.Compare(k, key) < 0, proven(k, v)
		}
		found = true
		var err error
		r, err = decodeOf(k, v)
		return false, err
	})
	return r, found && err == nil, err
}

// list fills a page with the records whose joined keys start with prefix and
// are past after. The records on both sides of the page are proven, too.
func (c content) list(p *pager, prefix, after []byte) error {
	from := prefix
	if bytes.Compare(after, from) > 0 {
		from = after
	}
	return c.records.ascend(from, func(k, v []byte) (bool, error) {
		if bytes.Compare(k, from) < 0 || after != nil && bytes.Equal(k, after) {
			return true, proven(k, v)
		}
		if !bytes.HasPrefix(k, prefix) || p.ends() {
			return false, proven(k, v)
		}
		r, err := decode(k, v)
		p.add(k, own(r))
		return true, err
	})
}

// scan reads a page of all records past after. What is damaged is left out, and
// named in the error.
func (c content) scan(after []byte) (store.Page, error) {
	p := pager{next: newCursor(scanCursor)}
	err := c.records.ascendPast(after, func(k, v []byte) (bool, error) {
		if after != nil && bytes.Compare(k, after) <= 0 {
			return true, proven(k, v)
		}
		if p.ends() {
			return false, nil
		}
		r, err := decode(k, v)
		if err == nil {
			p.add(k, own(r))
		}
		return true, err
	}, p.leaveOut)
	return p.page, p.left(err)
}

// listDue reads a page of the records that are due. What is damaged is left out,
// and named in the error.
func (c content) listDue(before time.Time, cursor string) (store.Page, error) {
	after, err := parseCursor(dueCursor, cursor)
	if err != nil {
		return store.Page{}, err
	}
	latest := before.UnixMilli()
	p := pager{next: newCursor(dueCursor)}
	err = c.due.ascendPast(after, func(k, _ []byte) (bool, error) {
		due, key, err := splitDueKey(k)
		if err != nil || bytes.Compare(k, after) <= 0 {
			return true, err
		}
		if due > latest || p.ends() {
			return false, nil
		}
		r, found, err := c.read(key)
		if err != nil {
			return false, err
		}
		if kept, _ := milliseconds(r.Due); !found || kept != due {
			return false, damaged("due index and record %q disagree", key)
		}
		if r.Key, err = splitKey(key); err != nil {
			return false, err
		}
		p.add(k, own(r))
		return true, nil
	}, p.leaveOut)
	return p.page, p.left(err)
}

// A pager fills a page. It is asked whether the page ends only when there is
// one more record, so that no listing goes on to an empty page.
type pager struct {
	limit int                 // of records; 0 for pageRecords, which it is at most
	next  func([]byte) string // how the listing goes on after a key
	page  store.Page
	bytes int
	last  []byte
	bad   []error // the first of what is damaged
	wrong int     // how much that is
}

// leaveOut notes what is damaged.
func (p *pager) leaveOut(err error) error {
	if p.wrong++; len(p.bad) < mostProblems {
		p.bad = append(p.bad, err)
	}
	return nil
}

// left is the error beside a page.
func (p *pager) left(err error) error {
	if more := p.wrong - len(p.bad); more > 0 {
		err = errors.Join(err, damaged("%d more are damaged", more))
	}
	return errors.Join(append(p.bad, err)...)
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

// buckets are what a transaction that writes changes. What it has written
// before is in them, and not yet in its content.
type buckets struct {
	content
	about, records, due *bbolt.Bucket
}

func bucketsOf(tx *bbolt.Tx, c content) buckets {
	return buckets{c, tx.Bucket(aboutBucket), tx.Bucket(recordsBucket), tx.Bucket(dueBucket)}
}

// require returns ErrConflict unless each record is at the version that its
// change names.
func (c content) require(changes []store.Change) error {
	for _, change := range changes {
		old, _, err := c.read(joinKey(change.Record.Key))
		if err == nil {
			err = conflict(change, old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func conflict(c store.Change, old store.Record) error {
	if c.Record.Version == old.Version {
		return nil
	}
	return fmt.Errorf("record %q of %q is at version %d, not %d: %w",
		c.Record.Sort, c.Record.Partition, old.Version, c.Record.Version, store.ErrConflict)
}

// require is the same for a set that is to be applied, and ErrDamaged if a page
// that apply would read or change is. It changes nothing.
func (b buckets) require(changes []store.Change) error {
	for _, c := range changes {
		key := joinKey(c.Record.Key)
		if err := b.content.records.verify(key, c.Action == store.ActionDelete); err != nil {
			return err
		}
		old, err := b.read(key)
		if err == nil {
			err = conflict(c, old)
		}
		if err != nil {
			return err
		}
		if c.Action == store.ActionCheck {
			continue
		}
		was, wasDue, is, isDue := moved(old.Due, due(c))
		if wasDue {
			err = b.content.due.verify(dueKey(was, key), true)
		}
		if err == nil && isDue {
			err = b.content.due.verify(dueKey(is, key), false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read returns the record as this transaction has changed it, without its key; the
// zero Record if there is none.
func (b buckets) read(key []byte) (r store.Record, err error) {
	if v := b.records.Get(key); v != nil {
		return decodeOf(key, v)
	}
	// Either it was not there, or this transaction has removed it.
	_, _, err = b.content.read(key)
	return r, err
}

// apply makes the changes, which require has allowed, and returns what they
// add to the tally. On an error the transaction must be rolled back.
func (b buckets) apply(changes []store.Change) (tally uint64, err error) {
	for _, c := range changes {
		if c.Action == store.ActionCheck {
			continue
		}
		sum, err := b.change(c)
		if err != nil {
			return 0, err
		}
		tally += sum
	}
	return tally, nil
}

// change writes or removes one record, moves it in the due index, and returns
// what that adds to the tally.
func (b buckets) change(c store.Change) (tally uint64, err error) {
	key := joinKey(c.Record.Key)
	var old store.Record
	v := b.records.Get(key)
	if v != nil {
		if old, err = decodeOf(key, v); err != nil {
			return 0, err
		}
		tally -= storedChecksum(v)
	}
	if err := b.move(key, old.Due, due(c)); err != nil {
		return 0, err
	}
	if c.Action == store.ActionDelete {
		return tally, b.records.Delete(key)
	}
	next := c.Record
	next.Version++
	value := encode(key, next)
	return tally + storedChecksum(value), b.records.Put(key, value)
}

// due is when the record is due after the change: after a deletion never.
func due(c store.Change) time.Time {
	if c.Action == store.ActionDelete {
		return time.Time{}
	}
	return c.Record.Due
}

// moved is what the due index loses and gains: neither where the time stays.
func moved(from, to time.Time) (was int64, wasDue bool, is int64, isDue bool) {
	was, wasDue = milliseconds(from)
	is, isDue = milliseconds(to)
	if wasDue == isDue && was == is {
		return 0, false, 0, false
	}
	return was, wasDue, is, isDue
}

// move changes when a record is due.
func (b buckets) move(key []byte, from, to time.Time) error {
	was, wasDue, is, isDue := moved(from, to)
	if wasDue {
		if err := b.due.Delete(dueKey(was, key)); err != nil {
			return err
		}
	}
	if isDue {
		return b.due.Put(dueKey(is, key), present)
	}
	return nil
}

// note remembers when a commit was made; a clock that has gone back does not move
// it back.
func (b buckets) note(now time.Time) error {
	if last, err := b.lastCommit(); err != nil || !now.After(last) {
		return err
	}
	at := eight(uint64(now.UnixMilli()))
	return b.about.Put(timeKey, append(eight(checksum(timeKey, at)), at...))
}
