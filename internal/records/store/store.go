// Package store is the contract for keeping records, whatever they mean. The adapters are store/bolt
// (one machine) and store/dynamo (AWS); test/storetest is the one suite that every adapter passes.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
)

// A Key names a record by its partition and its sort key. Records of one partition are listed
// together, ordered by the bytes of Sort. Like all text in a Record, both are UTF-8: not every
// store can keep other bytes.
type Key struct {
	Partition string // 1 to 2048 bytes
	Sort      string // 1 to 1024 bytes
}

// A Record is an envelope that the store understands, and a body that it does not.
type Record struct {
	Key
	// Version is 1 when the record is first written and rises by one with each write. In a Put
	// it is the version that was read, 0 if the record was absent.
	Version int64
	// Writer names the one commit that wrote this version, so that a caller that
	// lost the answer to a commit can recognise it as its own.
	Writer string
	// Schema is the version of the body's encoding.
	Schema int
	// Due puts the record into the index of due records; zero leaves it out. It is kept in UTC
	// to the millisecond; anything finer is cut off. A store that drops expired records by
	// itself may leave out of the index a record that is due no earlier than it expires, since
	// dropping it is all there is to do.
	Due time.Time
	// Expires lets the store drop the record at any later time; zero for never. It is kept in
	// UTC to the second; anything finer is cut off. A record that has expired but was not
	// dropped is still returned: readers compare times themselves.
	Expires time.Time
	// Body is at most MaxBody bytes.
	Body []byte
}

// Milliseconds returns the time of a Due as it is stored, and whether there is one: a time that is
// cut down to the zero time counts as none.
func Milliseconds(due time.Time) (int64, bool) {
	ms := due.UnixMilli()
	return ms, ms != (time.Time{}).UnixMilli()
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

// A Change is one part of a commit. It applies only if the record's version is still
// Record.Version (0: the record does not exist).
type Change struct {
	Action Action
	// Record is the whole record for a Put; for a Check or Delete, only Key and Version count.
	Record Record
}

// Put writes r at version r.Version+1 if the stored version is r.Version.
func Put(r Record) Change { return Change{Action: ActionPut, Record: r} }

// Check requires that the record is at the version; 0 means absent.
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
	// ErrNotFound says that there is no record with that key.
	ErrNotFound = errors.New("record not found")
	// ErrConflict says that a record was not at the version that a change named. Nothing was
	// changed. The caller reads and decides again.
	ErrConflict = errors.New("record changed in between")
	// ErrInvalid says that the call cannot be right (two changes of one key, no change or more
	// than MaxChanges, an unknown action, a body over MaxBody, a key out of range, text that is
	// not UTF-8, a cursor that no page returned). Nothing was changed.
	ErrInvalid = errors.New("invalid store call")
	// ErrUnreadable says that a record exists and cannot be read: it is not as it was written,
	// or only a newer program knows its encoding.
	ErrUnreadable = errors.New("record cannot be read")
)

// A Page is a part of a listing.
type Page struct {
	Records []Record
	// Next continues the listing where this page ended; empty at the end. In a page of List it
	// is a sort key; otherwise only the store knows its meaning.
	Next string
}

// A Store keeps records. Many goroutines may call its methods at once. After any error other
// than those above, it is unknown whether a Commit happened.
type Store interface {
	// Get reads one record, strongly consistent, or returns ErrNotFound.
	Get(ctx context.Context, key Key) (Record, error)

	// List reads the records of a partition whose sort key starts with prefix, in order of
	// their sort keys, strongly consistent within a page. After is empty for the first page,
	// then the Next of the page before, or any sort key with the prefix, whether recorded or
	// not: the page begins after it. A page reads at most limit records, which may cost less
	// than a page as large as the store makes it, for which limit is 0. A record that cannot be
	// read may be left out; then the page comes with an error that names the record, and a
	// caller that acts on missing records must stop.
	List(ctx context.Context, partition, prefix, after string, limit int) (Page, error)

	// Due reads the records whose Due is not zero and not later than before. If the store has
	// one order (one shard), a page begins with the earliest; all pages together hold every
	// record that was due throughout. If there are several shards, a listing begins with
	// another shard at each minute of before, so that a caller that never reaches the end still
	// reaches each shard. The index may lag behind a commit: a caller that acts on a record
	// reads it again. A record that cannot be read is left out; then the page comes with an
	// error that names the record, so that one record never hides the rest.
	Due(ctx context.Context, before time.Time, cursor string) (Page, error)

	// Commit applies all changes or none; it returns ErrConflict if any record is not at the
	// version that its change names. The records of one commit have distinct keys.
	Commit(ctx context.Context, changes ...Change) error

	// Scan reads one page of all records, in any order. It costs as much as reading the whole store: it
	// is for operators, never for serving requests. Cursor is empty for the first page, then the Next of
	// the page before. A record that exists throughout is on exactly one page; a record that changes
	// meanwhile may be on one, as it was or as it is. A record that cannot be read is left out; then the
	// page comes with an error that names the record.
	Scan(ctx context.Context, cursor string) (Page, error)
}

// A Rereader is a Store that leaves out the body of a record that the caller has read before.
type Rereader interface {
	// Reread reads a record as Get does, but without its body if the record still has this version and this writer.
	Reread(ctx context.Context, key Key, version int64, writer string) (Record, error)
}
