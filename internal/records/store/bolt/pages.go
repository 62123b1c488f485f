package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"sort"
	"unsafe"

	"go.etcd.io/bbolt"
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

	// maxDepth is more than any tree has: bbolt's have 50 children to a page.
	maxDepth = 32
)

var native = binary.NativeEndian

// pages are the file's pages as a transaction sees them.
//
// bbolt trusts every page: on a damaged one it panics, loops, or answers that a
// record is not there. Its own check (Tx.Check) cannot stand in for this file:
// it reads everything, keeps an entry for each page in memory, and runs in a
// goroutine of its own, where its panic over a damaged page ends the process. So
// we read by ourselves, verify each page that we come by, and let bbolt write
// where we have been.
type pages struct {
	data []byte // mapped; valid while the transaction is open
	size uint64
}

func pagesOf(tx *bbolt.Tx) pages {
	info := tx.DB().Info()
	data := *(*unsafe.Pointer)(unsafe.Pointer(&info.Data)) // bbolt gives the address as a number
	return pages{data: unsafe.Slice((*byte)(data), tx.Size()), size: uint64(info.PageSize)}
}

func (p pages) count() uint64 { return uint64(len(p.data)) / p.size }

// page is one with those that it spreads over.
func (p pages) page(id uint64) ([]byte, error) {
	if id >= p.count() {
		return nil, damaged("page %d is beyond the file's %d", id, p.count())
	}
	page := p.data[id*p.size:]
	if got := native.Uint64(page); got != id {
		return nil, damaged("page %d says that it is %d", id, got)
	}
	if kind(page) == metaPage {
		return page[:p.size], nil
	}
	more := uint64(native.Uint32(page[12:]))
	if more >= p.count()-id {
		return nil, damaged("page %d is longer than the file", id)
	}
	return page[:(1+more)*p.size], nil
}

func kind(page []byte) uint16 { return native.Uint16(page[8:]) }
func count(page []byte) int   { return int(native.Uint16(page[10:])) }

// A head is what the two metas say.
type head struct {
	root, free uint64 // pages
	end        uint64 // the first page that is not in use
}

// checkHead proves that both metas are whole, and the list of free pages, which
// every commit relies on. Fit is how many pages the file has.
//
// bbolt itself makes do with one whole meta. We do not: the other is the state
// before the last commit, and going back to it would lose what was accepted.
// A crash leaves both whole, since a meta lies within one sector of the disk.
func (p pages) checkHead(fit uint64) (h head, err error) {
	if fit < 2 || p.count() < 2 {
		return head{}, damaged("file has no metas")
	}
	var latest uint64
	for id := range uint64(2) {
		page, err := p.page(id)
		if err != nil {
			return head{}, err
		}
		m := page[pageHeader:]
		sum := fnv.New64a()
		sum.Write(m[:metaLength-8])
		if kind(page) != metaPage || native.Uint32(m) != metaMagic || native.Uint32(m[4:]) != metaVersion ||
			uint64(native.Uint32(m[8:])) != p.size || native.Uint64(m[metaLength-8:]) != sum.Sum64() {
			return head{}, damaged("meta page %d is not whole", id)
		}
		if txid := native.Uint64(m[48:]); id == 0 || txid > latest {
			h, latest = head{root: native.Uint64(m[16:]), free: native.Uint64(m[32:]), end: native.Uint64(m[40:])}, txid
		}
	}
	if h.end > fit || h.end > p.count() {
		return head{}, damaged("file is cut off: %d of %d pages", min(fit, p.count()), h.end)
	}
	return h, p.freelist(h, func(uint64) error { return nil })
}

// freelist gives the pages that are free: in ascending order, each once, as
// bbolt writes them. A commit writes into them.
func (p pages) freelist(h head, each func(id uint64) error) error {
	page, err := p.page(h.free)
	if err != nil {
		return err
	}
	if kind(page) != freePage {
		return damaged("page %d is no list of free pages", h.free)
	}
	ids, n := page[pageHeader:], uint64(count(page))
	if n == 0xFFFF { // then the list starts with its length
		n, ids = native.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids)/8) {
		return damaged("page %d lists more free pages than it holds", h.free)
	}
	// bbolt takes room for those that were free before it took that room.
	pages := uint64(len(page)) / p.size
	if pages < (pageHeader+8*n)/p.size+1 || pages > (pageHeader+8*(n+pages+1))/p.size+1 {
		return damaged("page %d is not as long as its list", h.free)
	}
	last := uint64(1)
	for i := range n {
		id := native.Uint64(ids[8*i:])
		if id <= last || id >= h.end || id == h.free {
			return damaged("page %d lists page %d as free out of order", h.free, id)
		}
		if err := each(id); err != nil {
			return err
		}
		last = id
	}
	return nil
}

// A node is a page of a tree, or a bucket so small that it stands within
// another page. All of it has been verified.
type node struct {
	page  []byte
	n     int
	leaf  bool
	first []byte // its first key, as the branch above it has it; nil at the root
	end   []byte // all its keys are before it; nil for none
}

// node verifies a page of a tree: its elements lie one after the other without a
// gap, their keys are in order, the first is the one that the branch above it
// names, and all are before end.
func (p pages) node(id uint64, first, end []byte) (node, error) {
	page, err := p.page(id)
	if err != nil {
		return node{}, err
	}
	n, err := newNode(id, page, first, end)
	if err != nil {
		return n, err
	}
	// What a page spreads over is freed with it, and must be its own. Earlier
	// versions of bbolt took one more page where the content ends with a page.
	length := uint64(pageHeader)
	if n.n > 0 {
		position, keyLength, valueLength := n.place(n.n - 1)
		length += uint64(n.n-1)*elementLength + position + keyLength + valueLength
	}
	if more := uint64(len(page))/p.size - 1; more != (length-1)/p.size && more != length/p.size {
		return node{}, damaged("page %d is not as long as its content", id)
	}
	return n, nil
}

func newNode(id uint64, page, first, end []byte) (node, error) {
	n := node{page: page, n: count(page), leaf: kind(page) == leafPage, first: first, end: end}
	if !n.leaf && kind(page) != branchPage {
		return node{}, damaged("page %d is of no tree", id)
	}
	if n.n == 0 && (first != nil || !n.leaf) {
		return node{}, damaged("page %d has lost its keys", id)
	}
	next := uint64(pageHeader + n.n*elementLength)
	for i := range n.n {
		at := pageHeader + i*elementLength
		if at+elementLength > len(page) {
			return node{}, damaged("page %d holds more than fits", id)
		}
		position, keyLength, valueLength := n.place(i)
		if uint64(at)+position != next || next+keyLength+valueLength > uint64(len(page)) {
			return node{}, damaged("page %d holds an element in the wrong place", id)
		}
		next += keyLength + valueLength
		if n.leaf && n.flags(i)&^bucketFlag != 0 {
			return node{}, damaged("page %d holds neither a value nor a bucket", id)
		}
		if i == 0 && first != nil && !bytes.Equal(n.key(0), first) || i > 0 && bytes.Compare(n.key(i-1), n.key(i)) >= 0 {
			return node{}, damaged("page %d holds keys out of order", id)
		}
	}
	if n.n > 0 && end != nil && bytes.Compare(n.key(n.n-1), end) >= 0 {
		return node{}, damaged("page %d holds keys out of order", id)
	}
	return n, nil
}

// place is where an element's key is, from its header on, and how long it and
// its value are.
func (n node) place(i int) (position, keyLength, valueLength uint64) {
	at := n.page[pageHeader+i*elementLength:]
	if n.leaf {
		return uint64(native.Uint32(at[4:])), uint64(native.Uint32(at[8:])), uint64(native.Uint32(at[12:]))
	}
	return uint64(native.Uint32(at)), uint64(native.Uint32(at[4:])), 0
}

func (n node) flags(i int) uint32 { return native.Uint32(n.page[pageHeader+i*elementLength:]) }
func (n node) child(i int) uint64 { return native.Uint64(n.page[pageHeader+i*elementLength+8:]) }

func (n node) key(i int) []byte {
	position, length, _ := n.place(i)
	return n.page[pageHeader+i*elementLength:][position:][:length]
}

func (n node) value(i int) []byte {
	position, keyLength, length := n.place(i)
	return n.page[pageHeader+i*elementLength:][position+keyLength:][:length]
}

// at is the element with this key, or the last one before it; the first where
// there is none.
func (n node) at(key []byte) int {
	i := sort.Search(n.n, func(i int) bool { return bytes.Compare(n.key(i), key) > 0 })
	return max(i-1, 0)
}

// bounds are those of a branch's child.
func (n node) bounds(i int) (first, end []byte) {
	if i+1 < n.n {
		return n.key(i), n.key(i + 1)
	}
	return n.key(i), n.end
}

// A tree is a bucket.
type tree struct {
	pages
	root   uint64
	inline []byte // in place of a root
}

func (t tree) top() (node, error) {
	if t.inline != nil {
		return newNode(0, t.inline, nil, nil)
	}
	return t.node(t.root, nil, nil)
}

// newTree is what the value of a bucket says.
func (p pages) newTree(value []byte) (tree, error) {
	if len(value) < bucketHeader {
		return tree{}, damaged("a bucket is cut off")
	}
	t := tree{pages: p, root: native.Uint64(value)}
	if t.root != 0 {
		return t, nil
	}
	if t.inline = value[bucketHeader:]; len(t.inline) < pageHeader || kind(t.inline) != leafPage {
		return tree{}, damaged("a bucket is cut off")
	}
	return t, nil
}

// visit takes an element of a leaf, and reports whether it wants more.
type visit func(key, value []byte) (more bool, err error)

// ascend visits the elements in order. It begins with the one that has the key
// from, or, where there is none, with the one that stands before that place, if
// there is one: whether that is what was written tells whether from is missing.
func (t tree) ascend(from []byte, f visit) error { return t.ascendPast(from, f, fails) }

// fails is for whoever can do nothing without what is damaged.
func fails(err error) error { return err }

// ascendPast ascends, and asks at each damaged element or page whether it is to
// go on past it: bad returns nil, or the error that ends it.
func (t tree) ascendPast(from []byte, f visit, bad func(error) error) error {
	top, err := t.top()
	if err != nil {
		return past(err, bad)
	}
	_, err = t.ascendFrom(top, from, 0, f, bad)
	return err
}

// past asks about damage; any other error stands.
func past(err error, bad func(error) error) error {
	if errors.Is(err, ErrDamaged) {
		return bad(err)
	}
	return err
}

func (t tree) ascendFrom(n node, from []byte, depth int, f visit, bad func(error) error) (more bool, err error) {
	if depth > maxDepth {
		return false, damaged("the tree has no end")
	}
	first := n.at(from)
	for i := first; i < n.n; i++ {
		if n.leaf {
			if more, err = f(n.key(i), n.value(i)); err != nil {
				err, more = past(err, bad), true
			}
		} else {
			if i > first {
				from = nil
			}
			var child node
			if child, err = t.below(n, i); err != nil {
				err, more = past(err, bad), true
			} else {
				more, err = t.ascendFrom(child, from, depth+1, f, bad)
			}
		}
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// get is the value of a key; nil if there is none.
func (t tree) get(key []byte) (value []byte, err error) {
	err = t.ascend(key, func(k, v []byte) (bool, error) {
		if bytes.Equal(k, key) {
			value = v
		}
		return false, nil
	})
	return value, err
}

// verify proves the pages that a change of this key reads: those on the way to it,
// and before a deletion their neighbours too, with which bbolt merges them when they
// are nearly empty.
func (t tree) verify(key []byte, deletion bool) error {
	n, err := t.top()
	for depth := 0; err == nil && !n.leaf; depth++ {
		if depth > maxDepth {
			return damaged("the tree has no end")
		}
		at := n.at(key)
		if deletion {
			for _, i := range []int{at - 1, at + 1} {
				if i < 0 || i >= n.n {
					continue
				}
				if _, err := t.below(n, i); err != nil {
					return err
				}
			}
		}
		n, err = t.below(n, at)
	}
	return err
}

// below is a branch's child.
func (t tree) below(n node, i int) (node, error) {
	first, end := n.bounds(i)
	return t.node(n.child(i), first, end)
}
