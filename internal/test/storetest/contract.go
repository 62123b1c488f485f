package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/records/store"
)

// contractTests are about single calls: what they accept and what they answer.
var contractTests = map[string]func(*testing.T, *Harness){
	"Empty":         testEmpty,
	"Versions":      testVersions,
	"VersionMatrix": testVersionMatrix,
	"Invalid":       testInvalid,
	"InvalidReads":  testInvalidReads,
	"Boundaries":    testBoundaries,
	"Keys":          testKeys,
	"Context":       testContext,
}

func testEmpty(t *testing.T, h *Harness) {
	isAbsent(t, h.Store, "a fresh store is empty", key("partition", "sort"))
	isListed(t, h.Store, "a fresh store is empty", "partition", "")
	isDue(t, h, "a fresh store is empty", due)
}

func testVersions(t *testing.T, h *Harness) {
	k := key("partition", "sort")
	r := fixture(k)
	for version := int64(1); version <= 5; version++ {
		r = put(t, h.Store, r)
		if r.Version != version {
			t.Fatalf("version is %d, want %d", r.Version, version)
		}
		isStored(t, h.Store, "each put is one version more", r)
		r = changed(r)
	}
	commit(t, h.Store, store.Delete(k, 5))
	isAbsent(t, h.Store, "the record is deleted", k)
	again := put(t, h.Store, fixture(k))
	isStored(t, h.Store, "a record that is made again starts at version 1", again)
}

// testVersionMatrix tries every action with every version on records at
// several versions: it applies where the versions are the same, else never.
func testVersionMatrix(t *testing.T, h *Harness) {
	actions := map[string]struct {
		change func(k store.Key, version int64) store.Change
		// after is what is left of a record at the version.
		after func(r store.Record) (store.Record, bool)
	}{
		"Put": {
			change: func(k store.Key, version int64) store.Change {
				r := changed(resting(k))
				r.Version = version
				return store.Put(r)
			},
			after: func(r store.Record) (store.Record, bool) {
				next := changed(resting(r.Key))
				next.Version = r.Version + 1
				return next, true
			},
		},
		"Check":  {change: store.Check, after: func(r store.Record) (store.Record, bool) { return r, r.Version > 0 }},
		"Delete": {change: store.Delete, after: func(r store.Record) (store.Record, bool) { return r, false }},
	}
	for name, action := range actions {
		for stored := range int64(4) {
			for given := int64(-1); given <= 5; given++ {
				k := key("matrix", fmt.Sprint(name, stored, given))
				r := resting(k)
				for range stored {
					r = put(t, h.Store, r)
				}
				err := h.Store.Commit(t.Context(), action.change(k, given))
				what := fmt.Sprintf("%s with version %d of a record at version %d", name, given, stored)
				exists := stored > 0
				if given == stored {
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					r, exists = action.after(r)
				} else {
					isError(t, what, err, store.ErrConflict)
				}
				if exists {
					isStored(t, h.Store, what, r)
				} else {
					isAbsent(t, h.Store, what, k)
				}
			}
		}
	}
}

func testInvalid(t *testing.T, h *Harness) {
	good := resting(key("partition", "good"))
	stored := put(t, h.Store, resting(key("partition", "stored")))
	with := func(change func(*store.Record)) store.Change {
		r := resting(key("partition", "bad"))
		change(&r)
		return store.Put(r)
	}
	var many []store.Change
	for i := range store.MaxChanges {
		many = append(many, store.Put(resting(key("many", fmt.Sprint(i)))))
	}

	tests := map[string]struct {
		reason  string
		changes []store.Change // each is committed beside a put of good
	}{
		"TwoPuts":      {"a record may be changed once", []store.Change{store.Put(good)}},
		"PutAndCheck":  {"a check is a change too", []store.Change{store.Check(good.Key, 0)}},
		"PutAndDelete": {"a delete is a change too", []store.Change{store.Delete(good.Key, 0)}},
		"TwoChecks": {"even if neither changes anything",
			[]store.Change{store.Check(stored.Key, 1), store.Check(stored.Key, 1)}},
		"BodyTooLarge": {"one byte more than MaxBody",
			[]store.Change{with(func(r *store.Record) { r.Body = body(store.MaxBody + 1) })}},
		"NoPartition": {"a partition has a byte or more", []store.Change{with(func(r *store.Record) { r.Partition = "" })}},
		"NoSort":      {"a sort key has a byte or more", []store.Change{with(func(r *store.Record) { r.Sort = "" })}},
		"LongPartition": {"a partition has 2048 bytes at most",
			[]store.Change{with(func(r *store.Record) { r.Partition = strings.Repeat("p", 2049) })}},
		"LongSort": {"a sort key has 1024 bytes at most",
			[]store.Change{with(func(r *store.Record) { r.Sort = strings.Repeat("s", 1025) })}},
		"LongInBytes": {"bytes count, not letters",
			[]store.Change{with(func(r *store.Record) { r.Sort = strings.Repeat("ü", 513) })}},
		"CheckNoSort":       {"a check's key is a key", []store.Change{store.Check(key("partition", ""), 0)}},
		"DeleteNoPartition": {"a delete's key is a key", []store.Change{store.Delete(key("", "sort"), 0)}},
		"TooManyChanges":    {"one change more than MaxChanges", many},
		"PartitionNotText": {"not every store can keep other bytes",
			[]store.Change{with(func(r *store.Record) { r.Partition = "\xff" })}},
		"SortNotText": {"not every store can keep other bytes",
			[]store.Change{with(func(r *store.Record) { r.Sort = "\xc3" })}},
		"WriterNotText": {"not every store can keep other bytes",
			[]store.Change{with(func(r *store.Record) { r.Writer = "\xff" })}},
		"UnknownAction": {"there are three actions", []store.Change{{Action: 99, Record: resting(key("partition", "bad"))}}},
		"InvalidAndConflict": {"what cannot be right is not worth reading again for",
			[]store.Change{store.Check(stored.Key, 9), store.Check(key("partition", ""), 0)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := h.Store.Commit(t.Context(), append([]store.Change{store.Put(good)}, test.changes...)...)
			isError(t, test.reason, err, store.ErrInvalid)
			isAbsent(t, h.Store, "nothing of an invalid commit is made", good.Key, key("partition", "bad"), key("many", "0"))
			isStored(t, h.Store, "nothing of an invalid commit is made", stored)
		})
	}
	t.Run("NoChange", func(t *testing.T) {
		isError(t, "a commit has a change", h.Store.Commit(t.Context()), store.ErrInvalid)
	})
}

func testInvalidReads(t *testing.T, h *Harness) {
	for name, k := range map[string]store.Key{
		"NoPartition":   key("", "sort"),
		"NoSort":        key("partition", ""),
		"LongPartition": key(strings.Repeat("p", 2049), "sort"),
		"LongSort":      key("partition", strings.Repeat("s", 1025)),
		"NotText":       key("partition", "\xff"),
	} {
		_, err := h.Store.Get(t.Context(), k)
		isError(t, "Get with "+name, err, store.ErrInvalid)
	}
	for name, partition := range map[string]string{
		"NoPartition":   "",
		"LongPartition": strings.Repeat("p", 2049),
		"NotText":       "\xff",
	} {
		_, err := h.Store.List(t.Context(), partition, "", "", 0)
		isError(t, "List with "+name, err, store.ErrInvalid)
	}
	for name, after := range map[string]string{"NotText": "A\xff", "OtherPrefix": "B", "Shorter": "A",
		"Long": "A#" + strings.Repeat("s", 1024)} {
		_, err := h.Store.List(t.Context(), "partition", "A#", after, 0)
		isError(t, "List after what no such key can be: "+name, err, store.ErrInvalid)
	}
	_, err := h.Store.List(t.Context(), "partition", "", "", -1)
	isError(t, "List with a limit below zero", err, store.ErrInvalid)
	const cursor = "\x00 no page gave this \xff"
	_, err = h.Store.Due(t.Context(), due, cursor)
	isError(t, "Due with a cursor that no page gave", err, store.ErrInvalid)
}

func testBoundaries(t *testing.T, h *Harness) {
	whole := func(k store.Key, length int) store.Record {
		r := fixture(k)
		r.Body = body(length)
		return r
	}
	tests := map[string]struct {
		reason string
		record store.Record
	}{
		"LargestBody":      {"a body of MaxBody bytes is not too large", whole(key("b", "largest"), store.MaxBody)},
		"NoBody":           {"a body may be empty", whole(key("b", "none"), 0)},
		"ShortestKey":      {"one byte each is enough", whole(key("p", "s"), 1)},
		"LongestPartition": {"2048 bytes are not too long", whole(key(strings.Repeat("p", 2048), "s"), 1)},
		"LongestSort":      {"1024 bytes are not too long", whole(key("p", strings.Repeat("s", 1024)), 1)},
		"LongestLetters": {"nor if the letters have several bytes",
			whole(key(strings.Repeat("ü", 1024), strings.Repeat("漢", 341)), 1)},
		"LargestOfAll": {"nor with the largest body",
			whole(key(strings.Repeat("q", 2048), strings.Repeat("t", 1024)), store.MaxBody)},
		"OnlyKey": {"every other field may be zero", store.Record{Key: key("p", "only the key")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			isStored(t, h.Store, test.reason, put(t, h.Store, test.record))
			deletion := store.Change{Action: store.ActionDelete, Record: test.record}
			deletion.Record.Version = 1
			deletion.Record.Body = body(store.MaxBody + 1)
			commit(t, h.Store, deletion)
			isAbsent(t, h.Store, "of a delete only the key and version are read", test.record.Key)
		})
	}
	t.Run("MostChanges", func(t *testing.T) {
		var records []store.Record
		for i := range store.MaxChanges {
			records = append(records, resting(key("most", fmt.Sprintf("%03d", i))))
		}
		stored := putAll(t, h.Store, records...)
		isListed(t, h.Store, "MaxChanges changes are not too many", "most", "", stored...)
	})
}

// testKeys puts records whose keys would be the same if an adapter joined or
// escaped them carelessly.
func testKeys(t *testing.T, h *Harness) {
	var records []store.Record
	for i, k := range []store.Key{
		key("a", "bc"), key("ab", "c"), key("abc", "d"),
		key("a#b", "c"), key("a", "b#c"),
		key("a\x00b", "c"), key("a", "b\x00c"), key("a\x00", "b"), key("a", "\x00b"), key("a\x00\x00", "b"),
		key("a|b", "c"), key("a", "b|c"), key("a/b", "c"), key("a", "b/c"), key("a%2Fb", "c"), key(`a\`, "b"), key("a", `\b`),
		key("A", "bc"), key("a", "BC"), key(" a", "bc"), key("a ", "bc"), key("a", "bc "),
		key("ü", "é"), key("u\u0308", "e\u0301"), // the same letters, composed and not
		key("\x01", "\x01\x01"), key("\x01\x01", "\x01"), key("\n", "\t\r"),
		key("\u2028<&>", "\"'`${}"), key("\U0010ffff", "\x7f"), key("\ufffd", "\ufffd"),
	} {
		r := fixture(k)
		r.Body = fmt.Appendf(nil, "%d", i)
		records = append(records, r)
	}
	stored := putAll(t, h.Store, records...)
	isStored(t, h.Store, "every key is its own record", stored...)
	for _, r := range stored {
		var same []store.Record
		for _, other := range stored {
			if other.Partition == r.Partition {
				same = append(same, other)
			}
		}
		isListed(t, h.Store, "every partition is its own", r.Partition, "", same...)
	}
	isDue(t, h, "every key is its own record", due, stored...)
}

func testContext(t *testing.T, h *Harness) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()

	stored := put(t, h.Store, fixture(key("partition", "stored")))
	absent := fixture(key("partition", "absent"))
	for name, test := range map[string]struct {
		ctx  context.Context
		want error
	}{
		"Canceled": {canceled, context.Canceled},
		"Late":     {late, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.Store.Get(test.ctx, stored.Key)
			isError(t, "Get", err, test.want)
			_, err = h.Store.List(test.ctx, "partition", "", "", 0)
			isError(t, "List", err, test.want)
			_, err = h.Store.Due(test.ctx, due, "")
			isError(t, "Due", err, test.want)

			next := changed(stored)
			err = h.Store.Commit(test.ctx, store.Put(next), store.Put(absent))
			isError(t, "Commit", err, test.want)
			// The contract leaves open whether it happened, but not by halves.
			next.Version++
			made := absent
			made.Version++
			if _, err := h.Store.Get(t.Context(), absent.Key); errors.Is(err, store.ErrNotFound) {
				isStored(t, h.Store, "if one record is not written, none is", stored)
			} else {
				isStored(t, h.Store, "if one record is written, all are", next, made)
				commit(t, h.Store, store.Delete(made.Key, 1))
				stored = next
			}
		})
	}
}
