package bolt

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc64"
	"time"

	"github.com/longshore/longshore/internal/store"
)

// joinKey puts the partition's length first, so that no two keys ever join to
// the same bytes, one partition's records stand together, and a sort key's
// prefix is a prefix of the joined key.
func joinKey(k store.Key) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(k.Partition)))
	b = append(b, k.Partition...)
	return append(b, k.Sort...)
}

// sortOf is the sort key in a joined key that decode has accepted.
func sortOf(b []byte) string { return string(b[2+int(binary.BigEndian.Uint16(b)):]) }

func splitKey(b []byte) (store.Key, error) {
	if len(b) >= 2 {
		if n := int(binary.BigEndian.Uint16(b)); len(b) > 2+n {
			return store.Key{Partition: string(b[2 : 2+n]), Sort: string(b[2+n:])}, nil
		}
	}
	return store.Key{}, damaged("key %q is not one of a record", b)
}

// dueKey orders the index by time, then by record. Flipping the sign bit puts
// the times before 1970 first.
func dueKey(milliseconds int64, recordKey []byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(milliseconds)^1<<63), recordKey...)
}

func splitDueKey(b []byte) (milliseconds int64, recordKey []byte, err error) {
	if len(b) < 8 {
		return 0, nil, damaged("key %q is not one of the due index", b)
	}
	return int64(binary.BigEndian.Uint64(b) ^ 1<<63), b[8:], nil
}

// An envelope is a record without its key and body. Whoever changes how
// records are written raises recordFormat and keeps reading the old ones; if
// older programs cannot read the new ones, fileFormat rises as well.
type envelope struct {
	Version int64  `json:"version"`
	Writer  string `json:"writer,omitempty"`
	Schema  int    `json:"schema,omitempty"`
	Due     *int64 `json:"due,omitempty"`     // milliseconds since 1970
	Expires *int64 `json:"expires,omitempty"` // seconds since 1970
}

// A record is stored as a checksum of its key and of all that follows, the
// format, the length of the envelope, the envelope, and the body.
const (
	recordFormat = 1
	headLength   = 8 + 1 + 4
)

var crcTable = crc64.MakeTable(crc64.ECMA)

func checksum(parts ...[]byte) uint64 {
	var sum uint64
	for _, p := range parts {
		sum = crc64.Update(sum, crcTable, p)
	}
	return sum
}

func encode(key []byte, r store.Record) ([]byte, error) {
	e := envelope{Version: r.Version, Writer: r.Writer, Schema: r.Schema}
	if due, ok := milliseconds(r.Due); ok {
		e.Due = &due
	}
	if expires := r.Expires.Unix(); expires != (time.Time{}).Unix() {
		e.Expires = &expires
	}
	header, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 8, headLength+len(header)+len(r.Body))
	b = append(b, recordFormat)
	b = binary.BigEndian.AppendUint32(b, uint32(len(header)))
	b = append(b, header...)
	b = append(b, r.Body...)
	binary.BigEndian.PutUint64(b, checksum(key, b[8:]))
	return b, nil
}

// decode shares no memory with value, which bbolt takes back.
func decode(key, value []byte) (store.Record, error) {
	k, err := splitKey(key)
	if err != nil {
		return store.Record{}, err
	}
	if len(value) < headLength || binary.BigEndian.Uint64(value) != checksum(key, value[8:]) {
		return store.Record{}, damaged("record %q of %q does not match its checksum", k.Sort, k.Partition)
	}
	length, rest := uint64(binary.BigEndian.Uint32(value[9:])), value[headLength:]
	if value[8] != recordFormat || length > uint64(len(rest)) {
		return store.Record{}, damaged("record %q of %q has no known format", k.Sort, k.Partition)
	}
	var e envelope
	if err := json.Unmarshal(rest[:length], &e); err != nil {
		return store.Record{}, damaged("record %q of %q has no readable envelope", k.Sort, k.Partition)
	}
	r := store.Record{
		Key: k, Version: e.Version, Writer: e.Writer, Schema: e.Schema,
		Body: bytes.Clone(rest[length:]),
	}
	if e.Due != nil {
		r.Due = time.UnixMilli(*e.Due).UTC()
	}
	if e.Expires != nil {
		r.Expires = time.Unix(*e.Expires, 0).UTC()
	}
	return r, nil
}

// storedChecksum is the checksum of a record that decode has accepted.
func storedChecksum(value []byte) uint64 { return binary.BigEndian.Uint64(value) }

// milliseconds is the time as it is kept, and whether it is one: what is cut
// down to the zero time is none.
func milliseconds(t time.Time) (int64, bool) {
	ms := t.UnixMilli()
	return ms, ms != (time.Time{}).UnixMilli()
}

// A cursor is the key that the page before ended with, marked with the
// listing that it is for.
const (
	scanCursor = 'l'
	dueCursor  = 'd'
)

func newCursor(kind byte) func(key []byte) string {
	return func(key []byte) string { return base64.RawURLEncoding.EncodeToString(append([]byte{kind}, key...)) }
}

// parseCursor returns the key that the listing starts after; nil for a first
// page.
func parseCursor(kind byte, cursor string) ([]byte, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < 2 || b[0] != kind {
		return nil, store.Invalidf("cursor %q is of no such listing", cursor)
	}
	return b[1:], nil
}
