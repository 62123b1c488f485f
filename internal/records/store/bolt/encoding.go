package bolt

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/records/store"
)

// joinKey puts the partition's length first, so that no two keys join to the same bytes, the records of
// one partition stand together, and a prefix of a sort key is a prefix of the joined key.
func joinKey(k store.Key) []byte {
	b := make([]byte, 0, 2+len(k.Partition)+len(k.Sort))
	b = binary.BigEndian.AppendUint16(b, uint16(len(k.Partition)))
	b = append(b, k.Partition...)
	return append(b, k.Sort...)
}

// behind returns the first key that can follow another.
func behind(key []byte) []byte {
	if key == nil {
		return first
	}
	return append(key[:len(key):len(key)], 0)
}

// nameOf names an entry in a message, by its key.
func nameOf(key []byte) string {
	if bytes.Equal(key, origin) {
		return "the beginning"
	}
	if k, err := splitKey(key); err == nil && utf8.ValidString(k.Partition) {
		return fmt.Sprintf("record %q of %q", k.Sort, k.Partition)
	}
	if _, of, err := splitDueKey(key); err == nil {
		if k, err := splitKey(of); err == nil {
			return fmt.Sprintf("due entry of record %q of %q", k.Sort, k.Partition)
		}
	}
	return fmt.Sprintf("entry %q", key)
}

// sortOf returns the sort key in a joined key that decodeWhole has accepted.
func sortOf(b []byte) string { return string(b[2+int(binary.BigEndian.Uint16(b)):]) }

func splitKey(b []byte) (store.Key, error) {
	if len(b) >= 2 {
		if n := int(binary.BigEndian.Uint16(b)); len(b) > 2+n {
			return store.Key{Partition: string(b[2 : 2+n]), Sort: string(b[2+n:])}, nil
		}
	}
	return store.Key{}, damaged("key %q is not one of a record", b)
}

// dueKey orders the index by time, then by record. Flipping the sign bit puts times before 1970 first.
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

// A record's value is the head of its entry, then a byte that says which times follow, then
// numbers of variable length: version, schema, due in milliseconds and expiry in seconds since
// 1970, the length of the writer; then the writer and the body. Changing how records are
// written raises fileFormat.
const (
	hasDue     = 1 << 0
	hasExpires = 1 << 1
)

// encode returns the value of a record, with room for its head.
func encode(r store.Record) []byte {
	const times = headLength // the place of the byte
	b := make([]byte, times+1, times+1+5*binary.MaxVarintLen64+len(r.Writer)+len(r.Body))
	b = binary.AppendVarint(b, r.Version)
	b = binary.AppendVarint(b, int64(r.Schema))
	if due, ok := store.Milliseconds(r.Due); ok {
		b[times] |= hasDue
		b = binary.AppendVarint(b, due)
	}
	if expires := r.Expires.Unix(); expires != (time.Time{}).Unix() {
		b[times] |= hasExpires
		b = binary.AppendVarint(b, expires)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Writer)))
	b = append(b, r.Writer...)
	return append(b, r.Body...)
}

// decodeWhole proves an entry and returns its record, with a body of its own.
func decodeWhole(key, value []byte) (r store.Record, err error) {
	if err = proven(key, value); err == nil {
		r, err = decode(key, value)
	}
	if err == nil {
		r.Key, err = splitKey(key)
	}
	return own(r), err
}

// decode returns the record of a proven entry, without its key. Its body is a part of value, which bbolt takes back.
func decode(key, value []byte) (r store.Record, err error) {
	b := value[headLength:]
	if len(b) == 0 {
		return r, damaged("%s is empty", nameOf(key))
	}
	times, b := b[0], b[1:]
	ok := times&^(hasDue|hasExpires) == 0
	next := func() int64 {
		v, n := binary.Varint(b)
		if ok = ok && n > 0; ok {
			b = b[n:]
		}
		return v
	}
	r.Version, r.Schema = next(), int(next())
	if times&hasDue != 0 {
		r.Due = time.UnixMilli(next()).UTC()
	}
	if times&hasExpires != 0 {
		r.Expires = time.Unix(next(), 0).UTC()
	}
	length, n := binary.Uvarint(b)
	if !ok || n <= 0 || length > uint64(len(b)-n) {
		return store.Record{}, damaged("%s has no readable envelope", nameOf(key))
	}
	r.Writer, r.Body = string(b[n:][:length]), b[n:][length:]
	return r, nil
}

// own returns the record with a body of its own.
func own(r store.Record) store.Record {
	r.Body = bytes.Clone(r.Body)
	return r
}

// A cursor is the key with which the previous page ended, preceded by a byte for the kind of listing.
const (
	scanCursor = 'l'
	dueCursor  = 'd'
)

func newCursor(kind byte) func(key []byte) string {
	return func(key []byte) string { return base64.RawURLEncoding.EncodeToString(append([]byte{kind}, key...)) }
}

// parseCursor returns the key after which the listing starts; nil for the first page.
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
