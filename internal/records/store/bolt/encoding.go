package bolt

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"hash/crc64"
	"time"

	"github.com/longshore/longshore/internal/records/store"
)

// joinKey puts the partition's length first, so that no two keys ever join to
// the same bytes, one partition's records stand together, and a sort key's
// prefix is a prefix of the joined key.
func joinKey(k store.Key) []byte {
	b := make([]byte, 0, 2+len(k.Partition)+len(k.Sort))
	b = binary.BigEndian.AppendUint16(b, uint16(len(k.Partition)))
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
	b := make([]byte, 0, 8+len(recordKey))
	return append(binary.BigEndian.AppendUint64(b, uint64(milliseconds)^1<<63), recordKey...)
}

func splitDueKey(b []byte) (milliseconds int64, recordKey []byte, err error) {
	if len(b) < 8 {
		return 0, nil, damaged("key %q is not one of the due index", b)
	}
	return int64(binary.BigEndian.Uint64(b) ^ 1<<63), b[8:], nil
}

// A record is stored as a checksum of its key and of all that follows, the
// format, the envelope, and the body. Whoever changes how records are written
// raises recordFormat and fileFormat, and keeps reading the old ones.
const (
	firstFormat  = 1
	recordFormat = 2
	sumLength    = 8
	formatAt     = sumLength // the byte with the format
	formatEnd    = formatAt + 1
)

// The envelope of format 2 is a byte that says which times follow, then numbers
// as variable lengths: version, schema, due in milliseconds and expiry in seconds
// since 1970, the length of the writer; then the writer.
const (
	hasDue     = 1 << 0
	hasExpires = 1 << 1
)

var (
	ecma       = crc64.MakeTable(crc64.ECMA)
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// checksum is that of what the file says of itself, and of records of format 1.
func checksum(parts ...[]byte) uint64 {
	var sum uint64
	for _, p := range parts {
		sum = crc64.Update(sum, ecma, p)
	}
	return sum
}

// recordSum is the checksum of a record: two of 32 bits, which processors make
// many times as fast as one of 64.
func recordSum(key, value []byte) uint64 {
	if value[formatAt] == firstFormat {
		return checksum(key, value[sumLength:])
	}
	value = value[sumLength:]
	high := crc32.Update(crc32.Update(0, castagnoli, key), castagnoli, value)
	low := crc32.Update(crc32.Update(0, crc32.IEEETable, key), crc32.IEEETable, value)
	return uint64(high)<<32 | uint64(low)
}

func encode(key []byte, r store.Record) []byte {
	var times byte
	due, ok := milliseconds(r.Due)
	if ok {
		times |= hasDue
	}
	expires := r.Expires.Unix()
	if expires != (time.Time{}).Unix() {
		times |= hasExpires
	}
	b := make([]byte, sumLength, formatEnd+1+5*binary.MaxVarintLen64+len(r.Writer)+len(r.Body))
	b = append(b, recordFormat, times)
	b = binary.AppendVarint(b, r.Version)
	b = binary.AppendVarint(b, int64(r.Schema))
	if times&hasDue != 0 {
		b = binary.AppendVarint(b, due)
	}
	if times&hasExpires != 0 {
		b = binary.AppendVarint(b, expires)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Writer)))
	b = append(b, r.Writer...)
	b = append(b, r.Body...)
	binary.BigEndian.PutUint64(b, recordSum(key, b))
	return b
}

// proven reports whether the value is what was written under the key.
func proven(key, value []byte) error {
	if len(value) >= formatEnd && binary.BigEndian.Uint64(value) == recordSum(key, value) {
		return nil
	}
	k, err := splitKey(key)
	if err != nil {
		return err
	}
	return damaged("record %q of %q does not match its checksum", k.Sort, k.Partition)
}

// decode gives a record whose body is the one in value, which bbolt takes back.
func decode(key, value []byte) (r store.Record, err error) {
	if r, err = decodeOf(key, value); err == nil {
		r.Key, err = splitKey(key)
	}
	return r, err
}

// decodeOf is decode for whoever knows the key.
func decodeOf(key, value []byte) (r store.Record, err error) {
	if err := proven(key, value); err != nil {
		return r, err
	}
	ok := false
	switch value[formatAt] {
	case firstFormat:
		r, ok = decode1(value[formatEnd:])
	case recordFormat:
		r, ok = decode2(value[formatEnd:])
	}
	if !ok {
		k, err := splitKey(key)
		return store.Record{}, cmp.Or(err, damaged("record %q of %q has no readable envelope", k.Sort, k.Partition))
	}
	return r, nil
}

func decode2(b []byte) (r store.Record, ok bool) {
	if len(b) == 0 {
		return r, false
	}
	times, b := b[0], b[1:]
	ok = times&^(hasDue|hasExpires) == 0
	next := func(wanted bool) int64 {
		if !ok || !wanted {
			return 0
		}
		v, n := binary.Varint(b)
		if ok = n > 0; ok {
			b = b[n:]
		}
		return v
	}
	r.Version, r.Schema = next(true), int(next(true))
	if due := next(times&hasDue != 0); times&hasDue != 0 {
		r.Due = time.UnixMilli(due).UTC()
	}
	if expires := next(times&hasExpires != 0); times&hasExpires != 0 {
		r.Expires = time.Unix(expires, 0).UTC()
	}
	length, n := binary.Uvarint(b)
	if !ok || n <= 0 || length > uint64(len(b)-n) {
		return store.Record{}, false
	}
	r.Writer, r.Body = string(b[n:][:length]), b[n:][length:]
	return r, true
}

// decode1 reads what was written before: the length of an envelope in JSON, the
// envelope, and the body.
func decode1(b []byte) (r store.Record, ok bool) {
	if len(b) < 4 {
		return r, false
	}
	length, rest := uint64(binary.BigEndian.Uint32(b)), b[4:]
	var e struct {
		Version int64  `json:"version"`
		Writer  string `json:"writer"`
		Schema  int    `json:"schema"`
		Due     *int64 `json:"due"`     // milliseconds since 1970
		Expires *int64 `json:"expires"` // seconds since 1970
	}
	if length > uint64(len(rest)) || json.Unmarshal(rest[:length], &e) != nil {
		return r, false
	}
	r = store.Record{Version: e.Version, Writer: e.Writer, Schema: e.Schema, Body: rest[length:]}
	if e.Due != nil {
		r.Due = time.UnixMilli(*e.Due).UTC()
	}
	if e.Expires != nil {
		r.Expires = time.Unix(*e.Expires, 0).UTC()
	}
	return r, true
}

// own gives the record a body of its own.
func own(r store.Record) store.Record {
	r.Body = bytes.Clone(r.Body)
	return r
}

// storedChecksum is the checksum of a record that is proven.
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
