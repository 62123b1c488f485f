package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/records/store"
)

// A Checkup is what Check is told and what it tells.
type Checkup struct {
	// Progress is told now and then how many of the file's pages have been read.
	Progress func(pages, of uint64)
	// Record is given each record that is as it was written, and says what is
	// wrong with it; nil if nothing is. The body is valid during the call.
	Record func(store.Record) error
}

// A Result is what Check found.
type Result struct {
	Identity string
	Records  int
	// Problems are the first of what is wrong, at most mostProblems of Wrong.
	Problems []error
	Wrong    int
}

const (
	// mostProblems bounds what is remembered of a file that is all wrong.
	mostProblems  = 100
	progressEvery = 1 << 12 // pages
)

// Check reads everything in the file at path and proves that each page and
// record is as it was written, that no record is missing, and that the due index
// is that of the records. It goes on past what is damaged and changes nothing.
// Its memory is a bit for each page. It fails where there is nothing to judge:
// ErrLocked while a broker runs, ErrMissing, ErrNewer, the context's error.
func Check(ctx context.Context, path string, o Checkup) (Result, error) {
	var r Result
	c := &checker{Checkup: o, ctx: ctx, result: &r}
	err := c.file(path)
	if errors.Is(err, ErrDamaged) {
		c.problem(err)
		err = nil
	}
	if err != nil {
		return r, fmt.Errorf("checking store %q: %w", path, err)
	}
	return r, nil
}

func (c *checker) file(path string) error {
	if err := usable(os.Stat(path)); err != nil {
		return err
	}
	db, file, err := openFile(path, true)
	if err != nil {
		return err
	}
	s := &Store{path: path, db: db, file: file}
	_, err = recovered(func() error {
		return db.View(func(tx *bbolt.Tx) error { return c.all(s, tx) })
	})
	return errors.Join(err, db.Close())
}

// A checker reads everything once.
type checker struct {
	Checkup
	ctx    context.Context
	pages  pages
	result *Result
	used   []uint64 // a bit for each page
	read   uint64
	sum    uint64 // of the records' checksums
	due    int    // how many more records are due than the index has
}

func (c *checker) problem(err error) {
	c.result.Wrong++
	if len(c.result.Problems) < mostProblems {
		c.result.Problems = append(c.result.Problems, err)
	}
}

func (c *checker) all(s *Store, tx *bbolt.Tx) error {
	c.pages = pagesOf(tx)
	if err := s.checkHead(c.pages); err != nil {
		return err
	}
	h, err := c.pages.checkHead(c.pages.count())
	if err != nil {
		return err
	}
	in, err := contentOf(tx)
	if err != nil {
		return err
	}
	about, err := in.whose()
	if err != nil {
		return err
	}
	c.result.Identity, c.sum = string(about.identity), checksum(about.identity)
	c.used = make([]uint64, h.end/64+1)
	for _, id := range []uint64{0, 1, h.free, h.root} {
		if err := c.take(id); err != nil {
			return err
		}
	}
	if err := c.pages.freelist(h, c.takeOne); err != nil {
		return err
	}
	for _, part := range []struct {
		tree  tree
		check func(key, value []byte) error
	}{
		{in.about, nil},
		{in.records, func(k, v []byte) error { return c.record(in, k, v) }},
		{in.due, func(k, _ []byte) error { return c.dueEntry(in, k) }},
	} {
		if err := c.tree(part.tree, part.check); err != nil {
			return err
		}
	}
	c.whole(about, h)
	return nil
}

// whole judges what only all of the file tells.
func (c *checker) whole(about about, h head) {
	if c.result.Wrong > 0 {
		return // then what is missing is no news
	}
	if c.sum != about.tally {
		c.problem(damaged("records are missing or not of this file"))
	}
	if c.due != 0 {
		c.problem(damaged("the due index holds records that are not there"))
	}
	if c.read != h.end {
		c.problem(damaged("%d pages are of no use to anything", h.end-c.read))
	}
}

// take notes that a page is used, with those that it spreads over.
func (c *checker) take(id uint64) error {
	page, err := c.pages.page(id)
	if err != nil {
		return err
	}
	for i := range uint64(len(page)) / c.pages.size {
		if err := c.takeOne(id + i); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) takeOne(id uint64) error {
	if id/64 >= uint64(len(c.used)) {
		return damaged("page %d is beyond the file's %d", id, c.pages.count())
	}
	if c.used[id/64]&(1<<(id%64)) != 0 {
		return damaged("page %d is used twice", id)
	}
	c.used[id/64] |= 1 << (id % 64)
	if c.read++; c.read%progressEvery == 0 && c.Progress != nil {
		c.Progress(c.read, c.pages.count())
	}
	return nil
}

// tree reads a bucket. Its error is the context's: what is damaged is a problem.
func (c *checker) tree(t tree, check func(key, value []byte) error) error {
	if t.inline == nil {
		if err := c.take(t.root); err != nil {
			c.problem(err)
			return nil
		}
	}
	top, err := t.top()
	if err != nil {
		c.problem(err)
		return nil
	}
	return c.node(top, 0, check)
}

func (c *checker) node(n node, depth int, check func(key, value []byte) error) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	for i := range n.n {
		if n.leaf {
			if check == nil {
				continue
			}
			if err := check(n.key(i), n.value(i)); err != nil {
				c.problem(err)
			}
			continue
		}
		first, end := n.bounds(i)
		child, err := node{}, c.take(n.child(i))
		if err == nil {
			child, err = c.pages.node(n.child(i), first, end)
		}
		if err == nil && depth > maxDepth {
			err = damaged("the tree has no end")
		}
		if err != nil {
			c.problem(err)
			continue
		}
		if err := c.node(child, depth+1, check); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) record(in content, key, value []byte) error {
	r, err := decode(key, value)
	if err != nil {
		return err
	}
	c.result.Records++
	c.sum += storedChecksum(value)
	if due, ok := milliseconds(r.Due); ok {
		c.due++
		entry := dueKey(due, key)
		if found, err := in.due.get(entry); err != nil || found == nil {
			return damaged("record %q of %q is not in the due index", r.Sort, r.Partition)
		}
	}
	if c.Record == nil {
		return nil
	}
	return c.Record(r)
}

// dueEntry proves an entry of the due index where no record has missed one.
func (c *checker) dueEntry(in content, entry []byte) error {
	c.due--
	due, key, err := splitDueKey(entry)
	if err != nil {
		return err
	}
	r, found, err := in.read(key)
	if err != nil {
		return nil // that has been said
	}
	if kept, _ := milliseconds(r.Due); !found || kept != due {
		return damaged("due index and record %q disagree", bytes.ToValidUTF8(key, []byte("?")))
	}
	return nil
}
