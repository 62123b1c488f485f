// Package store is the contract for keeping records, and nothing of what they
// mean. The adapters are store/bolt (one machine) and store/dynamo (AWS);
// test/storetest is the one suite that every adapter passes.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
)

// A Key names a record by its partition and its sort key. Records of one
// partition are listed together, ordered by the bytes of Sort. Like all text
// in a Record, both are UTF-8: not every store can keep other bytes.
type Key struct {
	Partition string // 1 to 2048 bytes
	Sort      string // 1 to 1024 bytes
}

// A Record is what the store keeps: an envelope that it understands, and a
// body that it does not.
type Record struct {
	Key
	// Version is 1 when the record is first written and rises by one with
	// each write. In a Put it is the version that was read, 0 for absent.
	Version int64
	// Writer names the one commit that wrote this version, so that a caller that
	// lost the answer to a commit can recognise it as its own.
	Writer string
	// Schema is the version of the body's encoding.
	Schema int
	// Due puts the record into the index of what is due; zero leaves it out.
	// Kept in UTC to the millisecond; what is finer is cut off. A store that by
	// itself drops what has expired may leave out what is due no sooner than
	// that: nothing else is to be done with it.
	Due time.Time
	// Expires lets the store drop the record at any time after it; zero
	// never. Kept in UTC to the second, likewise. A record that has expired but was not
	// dropped is still returned: readers compare times themselves.
	Expires time.Time
	// Body is at most MaxBody bytes.
	Body []byte
}

// MaxBody is the largest body in bytes.
const MaxBody = limits.Record

// An Action is what a Change does.
type Action int

// The actions.
const (
	ActionPut    Action = iota // write the record at the next version
	ActionCheck                // change nothing; only require the version
	ActionDelete               // remove the record
)

// A Change is one part of a commit: it applies only if the record's version
// is still Record.Version (0: the record does not exist).
type Change struct {
	Action Action
	// Record is whole for a Put; of a Check or Delete only Key and Version
	// are read.
	Record Record
}

// Put writes r at version r.Version+1 if the stored version is r.Version.
func Put(r Record) Change { return Change{Action: ActionPut, Record: r} }

// Check requires that the record is at the version, 0 for absent.
func Check(k Key, version int64) Change {
	return Change{Action: ActionCheck, Record: Record{Key: k, Version: version}}
}

// Delete removes the record if it is at the version.
func Delete(k Key, version int64) Change {
	return Change{Action: ActionDelete, Record: Record{Key: k, Version: version}}
}

// MaxChanges is how many changes one commit may hold.
const MaxChanges = 100

var (
	// ErrNotFound: there is no record with that key.
	ErrNotFound = errors.New("record not found")
	// ErrConflict: a record was not at the version that a change named.
	// Nothing was changed. Read again and decide again.
	ErrConflict = errors.New("record changed in between")
	// ErrInvalid: the call cannot be right (two changes of one key, no
	// change or more than MaxChanges, an unknown action, a body over MaxBody,
	// a key out of range, text that is not UTF-8, a cursor that no page gave).
	// Nothing was changed.
	ErrInvalid = errors.New("invalid store call")
	// ErrUnreadable: a record is there and cannot be read: it is not as it was
	// written, or only a newer program knows its encoding.
	ErrUnreadable = errors.New("record cannot be read")
)

// A Page is a part of a listing.
type Page struct {
	Records []Record
	// Next continues the listing where this page ended; empty at the end. Of
	// List it is a sort key, and otherwise only the store knows what it says.
	Next string
}

// A Store keeps records. Every method may be called by many goroutines at
// once. Any error other than those above leaves it unknown whether a Commit
// happened.
type Store interface {
	// Get reads one record, strongly consistent, or ErrNotFound.
	Get(ctx context.Context, key Key) (Record, error)

	// List reads the records of a partition whose sort key starts with
	// prefix, in order of their sort keys, strongly consistent within a
	// page. After is empty for the first page, then the Next of the last, or
	// any sort key with the prefix, recorded or not: what is listed follows on
	// it. A page reads no more than limit records, which may cost less than
	// one as large as the store makes it, for which limit is 0. A record that
	// cannot be read may be left out; then the page comes beside an error that
	// names it, and a caller that decides by what is missing stops.
	List(ctx context.Context, partition, prefix, after string, limit int) (Page, error)

	// Due reads the records whose Due is not zero and not after before. A
	// page holds the earliest first where the store has one order (one shard);
	// pages together hold every record that was due throughout. Where there are
	// several shards, a listing begins with another at each minute of before,
	// so that who never comes to its end still comes to each of them. The
	// index may lag behind a commit: a caller that acts on a record reads it again. A
	// record that cannot be read is left out; then the page comes beside an error
	// that names it, so that one record never hides the rest.
	Due(ctx context.Context, before time.Time, cursor string) (Page, error)

	// Commit applies all changes or none: ErrConflict if any record is not at
	// the version its change names. Records of one commit have distinct keys.
	Commit(ctx context.Context, changes ...Change) error
}

// A Rereader is a Store that leaves out the body of a record that the caller has read before.
type Rereader interface {
	// Reread reads a record as Get does, but without its body if it is still of
	// this version and this writer.
	Reread(ctx context.Context, key Key, version int64, writer string) (Record, error)
}

// A Scanner reads everything that there is, which costs as much as everything:
// it is for operators, never for serving requests. Every store of this program
// is one.
type Scanner interface {
	// Scan reads one page of all records, in any order. Cursor is empty for
	// the first page, then the Next of the last. What is there throughout is
	// on one page; what changes meanwhile may be on one as it was or as it is. A
	// record that cannot be read is left out; then the page comes beside an error
	// that names it.
	Scan(ctx context.Context, cursor string) (Page, error)
}
