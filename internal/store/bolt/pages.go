package bolt

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"os"
)

// The layout of a bbolt file (version 2, in the byte order of the machine): a
// page starts with its number (8 bytes), kind (2), count of elements (2) and
// how many more pages it spreads over (4). Pages 0 and 1 are the metas, of
// which the one with the higher transaction counts.
const (
	branchPage = 0x01
	leafPage   = 0x02
	metaPage   = 0x04
	freePage   = 0x10

	pageHeader    = 16
	elementLength = 16
	bucketFlag    = 0x01
	bucketHeader  = 16 // root page, sequence

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaLength  = 64

	noFreelist = ^uint64(0)
)

var native = binary.NativeEndian

// A pageChecker walks a file's pages and remembers what each one is for.
type pageChecker struct {
	file *os.File
	size int
	end  uint64 // the first page that is not in use
	used map[uint64]bool
}

// checkPages proves that the pages are what bbolt relies on: both metas whole,
// every page in one place only, all keys in order, nothing out of bounds.
func checkPages(file *os.File, pageSize int) error {
	c, root, err := checkHead(file, pageSize)
	if err != nil {
		return err
	}
	return c.tree(root, nil, nil)
}

// checkHead proves as much of the metas and of the list of free pages, which
// every commit relies on, and returns the page at the root of the rest.
//
// bbolt itself makes do with one whole meta. We do not: the other is the state
// before the last commit, and going back to it would lose what was accepted.
// A crash leaves both whole, since a meta lies within one sector of the disk.
func checkHead(file *os.File, pageSize int) (c *pageChecker, root uint64, err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	c = &pageChecker{file: file, size: pageSize, end: uint64(info.Size()) / uint64(pageSize), used: map[uint64]bool{}}
	var free, end, latest uint64
	for id := range uint64(2) {
		page, err := c.page(id)
		if err != nil {
			return nil, 0, err
		}
		m := page[pageHeader:]
		sum := fnv.New64a()
		sum.Write(m[:metaLength-8])
		if kind(page) != metaPage || native.Uint32(m) != metaMagic || native.Uint32(m[4:]) != metaVersion ||
			uint64(native.Uint32(m[8:])) != uint64(pageSize) || native.Uint64(m[metaLength-8:]) != sum.Sum64() {
			return nil, 0, damaged("meta page %d is not whole", id)
		}
		if txid := native.Uint64(m[48:]); id == 0 || txid > latest {
			root, free, end, latest = native.Uint64(m[16:]), native.Uint64(m[32:]), native.Uint64(m[40:]), txid
		}
	}
	if end > c.end {
		return nil, 0, damaged("file is cut off: %d of %d pages", c.end, end)
	}
	c.end = end
	if free == noFreelist {
		return c, root, nil
	}
	return c, root, c.freelist(free)
}

func kind(page []byte) uint16 { return native.Uint16(page[8:]) }
func count(page []byte) int   { return int(native.Uint16(page[10:])) }

// take notes that a page is used, which it may be once.
func (c *pageChecker) take(id uint64) error {
	if id >= c.end {
		return damaged("page %d is beyond the file's %d", id, c.end)
	}
	if c.used[id] {
		return damaged("page %d is used twice", id)
	}
	c.used[id] = true
	return nil
}

// page reads a page with those that it spreads over.
func (c *pageChecker) page(id uint64) ([]byte, error) {
	if err := c.take(id); err != nil {
		return nil, err
	}
	page := make([]byte, c.size)
	if _, err := c.file.ReadAt(page, int64(id)*int64(c.size)); err != nil {
		return nil, err
	}
	if got := native.Uint64(page); got != id {
		return nil, damaged("page %d says that it is %d", id, got)
	}
	more := uint64(native.Uint32(page[12:]))
	if kind(page) == metaPage || more == 0 {
		return page, nil
	}
	for next := id + 1; next <= id+more; next++ {
		if err := c.take(next); err != nil {
			return nil, err
		}
	}
	rest := make([]byte, more*uint64(c.size))
	if _, err := c.file.ReadAt(rest, int64(id+1)*int64(c.size)); err != nil {
		return nil, err
	}
	return append(page, rest...), nil
}

// freelist reads the list of free pages: a commit writes into them, so none
// may be in use.
func (c *pageChecker) freelist(id uint64) error {
	page, err := c.page(id)
	if err != nil {
		return err
	}
	if kind(page) != freePage {
		return damaged("page %d is no list of free pages", id)
	}
	ids, n := page[pageHeader:], uint64(count(page))
	if n == 0xFFFF { // then the list starts with its length
		n, ids = native.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids)/8) {
		return damaged("page %d lists more free pages than it holds", id)
	}
	for i := range n {
		if err := c.take(native.Uint64(ids[8*i:])); err != nil {
			return err
		}
	}
	return nil
}

// tree walks a bucket's pages, or a part of them, whose first key is first and
// whose last is before end, unless these are nil. A branch that names another
// first key than its child has is no error to bbolt, until it writes there.
func (c *pageChecker) tree(id uint64, first, end []byte) error {
	page, err := c.page(id)
	if err != nil {
		return err
	}
	switch kind(page) {
	case leafPage:
		return c.leaf(id, page, first, end)
	case branchPage:
	default:
		return damaged("page %d is of no tree", id)
	}
	elements, err := c.elements(id, page, first, end)
	if err != nil {
		return err
	}
	if len(elements) == 0 {
		return damaged("page %d leads nowhere", id)
	}
	for i, e := range elements {
		next := end
		if i+1 < len(elements) {
			next = elements[i+1].key
		}
		if err := c.tree(e.child, e.key, next); err != nil {
			return err
		}
	}
	return nil
}

func (c *pageChecker) leaf(id uint64, page, first, end []byte) error {
	elements, err := c.elements(id, page, first, end)
	if err != nil {
		return err
	}
	for _, e := range elements {
		switch e.flags {
		case 0:
			continue
		case bucketFlag:
		default:
			return damaged("page %d holds neither a value nor a bucket", id)
		}
		if len(e.value) < bucketHeader {
			return damaged("page %d holds a bucket that is cut off", id)
		}
		if root := native.Uint64(e.value); root != 0 {
			if err := c.tree(root, nil, nil); err != nil {
				return err
			}
			continue
		}
		// A small bucket stands within the page that names it.
		inline := e.value[bucketHeader:]
		if len(inline) < pageHeader || kind(inline) != leafPage {
			return damaged("page %d holds a bucket that is cut off", id)
		}
		if err := c.leaf(id, inline, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// An element of a branch names a child; one of a leaf has a value.
type element struct {
	key, value []byte
	child      uint64
	flags      uint32
}

func (c *pageChecker) elements(id uint64, page, first, end []byte) ([]element, error) {
	n := count(page)
	if pageHeader+n*elementLength > len(page) {
		return nil, damaged("page %d holds more than fits", id)
	}
	if n == 0 && first != nil {
		return nil, damaged("page %d has lost its keys", id)
	}
	elements := make([]element, n)
	for i := range elements {
		e := &elements[i]
		at := page[pageHeader+i*elementLength:]
		var position, keyLength, valueLength uint64
		if kind(page) == branchPage {
			position, keyLength = uint64(native.Uint32(at)), uint64(native.Uint32(at[4:]))
			e.child = native.Uint64(at[8:])
		} else {
			e.flags = native.Uint32(at)
			position, keyLength = uint64(native.Uint32(at[4:])), uint64(native.Uint32(at[8:]))
			valueLength = uint64(native.Uint32(at[12:]))
		}
		if position+keyLength+valueLength > uint64(len(at)) {
			return nil, damaged("page %d holds an element out of bounds", id)
		}
		e.key = at[position : position+keyLength]
		e.value = at[position+keyLength : position+keyLength+valueLength]
		inOrder := first == nil || bytes.Equal(e.key, first)
		if i > 0 {
			inOrder = bytes.Compare(e.key, elements[i-1].key) > 0
		}
		if !inOrder || end != nil && bytes.Compare(e.key, end) >= 0 {
			return nil, damaged("page %d holds keys out of order", id)
		}
	}
	return elements, nil
}
