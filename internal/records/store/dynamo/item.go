package dynamo

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore/longshore/internal/records/store"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func itemKey(k store.Key) item {
	return item{AttributePartition: text(k.Partition), AttributeSort: text(k.Sort)}
}

// encode leaves out members that are zero.
func encode(r store.Record) item {
	i := itemKey(r.Key)
	i[AttributeVersion] = number(r.Version)
	if r.Writer != "" {
		i[AttributeWriter] = text(r.Writer)
	}
	if r.Schema != 0 {
		i[AttributeFormat] = number(int64(r.Schema))
	}
	expires, dropped := r.Expires.Unix(), false
	if expires != (time.Time{}).Unix() {
		i[AttributeExpires], dropped = number(expires), r.Due.Unix() >= expires
	}
	if due, ok := store.Milliseconds(r.Due); ok {
		i[AttributeDue] = number(due)
		if !dropped {
			i[AttributeShard] = number(int64(shardOf(r.Key)))
		}
	}
	if len(r.Body) > 0 {
		i[AttributeBody] = &types.AttributeValueMemberB{Value: r.Body}
	}
	return i
}

func shardOf(k store.Key) int {
	h := fnv.New32a()
	// The zero byte distinguishes keys that would be equal when joined.
	_, _ = h.Write([]byte(k.Partition + "\x00" + k.Sort))
	return int(h.Sum32() % Shards)
}

// A reader reads the members of an item, and remembers the first one that is not as encode writes it.
type reader struct {
	item item
	err  error
}

func (r *reader) fail(name, what string) {
	if r.err == nil {
		r.err = fmt.Errorf("attribute %q %s", name, what)
	}
}

func (r *reader) text(name string) string {
	switch v := r.item[name].(type) {
	case nil:
	case *types.AttributeValueMemberS:
		return v.Value
	default:
		r.fail(name, "is no text")
	}
	return ""
}

func (r *reader) number(name string) (n int64, ok bool) {
	switch v := r.item[name].(type) {
	case nil:
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err == nil {
			return n, true
		}
		r.fail(name, "is no whole number")
	default:
		r.fail(name, "is no number")
	}
	return 0, false
}

func (r *reader) bytes(name string) []byte {
	switch v := r.item[name].(type) {
	case nil:
	case *types.AttributeValueMemberB:
		return v.Value
	default:
		r.fail(name, "is not of bytes")
	}
	return nil
}

func (r *reader) key() store.Key {
	k := store.Key{Partition: r.text(AttributePartition), Sort: r.text(AttributeSort)}
	if k.Partition == "" || k.Sort == "" {
		r.fail(AttributePartition, "or the one beside it is missing")
	}
	return k
}

func decodeKey(i item) (store.Key, error) {
	in := reader{item: i}
	k := in.key()
	if in.err != nil {
		return store.Key{}, fmt.Errorf("decoding a key: %w", in.err)
	}
	return k, nil
}

func decode(i item) (store.Record, error) {
	in := reader{item: i}
	r := store.Record{Key: in.key(), Writer: in.text(AttributeWriter), Body: in.bytes(AttributeBody)}
	var ok bool
	if r.Version, ok = in.number(AttributeVersion); !ok {
		in.fail(AttributeVersion, "is missing")
	}
	schema, _ := in.number(AttributeFormat)
	r.Schema = int(schema)
	if due, ok := in.number(AttributeDue); ok {
		r.Due = time.UnixMilli(due).UTC()
	}
	if expires, ok := in.number(AttributeExpires); ok {
		r.Expires = time.Unix(expires, 0).UTC()
	}
	if in.err != nil {
		return store.Record{}, fmt.Errorf("decoding record %q of %q: %w: %w", r.Sort, r.Partition, store.ErrUnreadable, in.err)
	}
	return r, nil
}

// A cursor is the place where the previous page ended.
type cursor struct {
	Partition string `json:"p,omitempty"`
	Sort      string `json:"s,omitempty"`
	Due       *place `json:"d,omitempty"` // nil in a listing of everything
}

// A place is a place in the index: the start of a shard or, if the cursor has a key, that key
// at that time. First is the shard with which the listing began.
type place struct {
	First int   `json:"f,omitempty"`
	Shard int   `json:"s"`
	Time  int64 `json:"t,omitempty"`
}

// firstShard returns the shard with which a listing begins: at each minute the next one. If a
// sweep is cut off before it has reached all shards, because the first is too full, it has
// reached each of them after as many minutes as there are shards.
func firstShard(before int64) int {
	minute := time.UnixMilli(before).Unix() / 60
	return int((minute%Shards + Shards) % Shards)
}

func (c cursor) String() string {
	b, _ := json.Marshal(c) // never fails: a cursor holds only text and numbers
	return base64.RawURLEncoding.EncodeToString(b)
}

func (c cursor) key() store.Key { return store.Key{Partition: c.Partition, Sort: c.Sort} }

// parseCursor returns the place where a page begins; first is that of the first page. It accepts only
// texts that String returned for a cursor that fits.
func parseCursor(s string, first cursor, fits func(cursor) bool) (c cursor, _ error) {
	if s == "" {
		return first, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.String() != s || !fits(c) {
		return c, store.Invalidf("cursor %q is of no such listing", s)
	}
	return c, nil
}

// start returns the key after which a page begins; nil for the start of the table or the shard.
func (c cursor) start() item {
	if c.key() == (store.Key{}) {
		return nil
	}
	after := itemKey(c.key())
	if c.Due != nil {
		after[AttributeShard], after[AttributeDue] = number(int64(c.Due.Shard)), number(c.Due.Time)
	}
	return after
}
