package storetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/records/store"
)

// listTests are about the listing of a partition.
var listTests = map[string]func(*testing.T, *Harness){
	"Prefixes":   testPrefixes,
	"Order":      testOrder,
	"Partitions": testPartitions,
	"Many":       testManyListed,
	"Large":      testLargeListed,
	"After":      testListAfter,
	"Limit":      testListLimit,
	"Changing":   testChangingList,
}

func testPrefixes(t *testing.T, h *Harness) {
	all := map[string]store.Record{}
	for _, sort := range []string{"A", "A#", "A#1", "A#10", "A#2", "AA", "B#1", "a#1", "Ä", "\x00", "\x00A", "~"} {
		all[sort] = put(t, h.Store, resting(key("partition", sort)))
	}
	for name, test := range map[string]struct {
		reason, prefix string
		want           []string
	}{
		"None": {"no prefix is everything", "",
			[]string{"A", "A#", "A#1", "A#10", "A#2", "AA", "B#1", "a#1", "Ä", "\x00", "\x00A", "~"}},
		"Shared":      {"a prefix of prefixes", "A", []string{"A", "A#", "A#1", "A#10", "A#2", "AA"}},
		"WithDivider": {"a divider is a byte like others", "A#", []string{"A#", "A#1", "A#10", "A#2"}},
		"Whole":       {"a key is a prefix of itself and of longer ones", "A#1", []string{"A#1", "A#10"}},
		"One":         {"nothing is longer", "A#10", []string{"A#10"}},
		"Longer":      {"a key is no prefix of a shorter one", "A#100", nil},
		"SmallLetter": {"letters are compared as bytes", "a", []string{"a#1"}},
		"NotASCII":    {"letters may have several bytes", "Ä", []string{"Ä"}},
		"Zero":        {"the first of all bytes", "\x00", []string{"\x00", "\x00A"}},
		"Last":        {"the last of all keys here but one", "~", []string{"~"}},
		"Nothing":     {"no key has it", "C", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var want []store.Record
			for _, sort := range test.want {
				want = append(want, all[sort])
			}
			isListed(t, h.Store, test.reason, "partition", test.prefix, want...)
		})
	}
}

func testOrder(t *testing.T, h *Harness) {
	// In the order of their bytes, which is not that of numbers, of
	// dictionaries, or of UTF-16.
	want := []string{
		"\x00", "\x00\x00", "\x01", " ", "!", "#", "-1", "1", "10", "2", "A", "A\x00", "AA", "B", "_", "a", "b", "~", "\x7f",
		"\u0080", "ä", "ö", "\ufffd", "\U00010000", "\U0010ffff",
	}
	if !slices.IsSorted(want) {
		t.Fatal("the test itself is out of order")
	}
	for i := range want {
		put(t, h.Store, resting(key("partition", want[(i*7+3)%len(want)])))
	}
	var got []string
	for _, r := range list(t, h.Store, "partition", "") {
		got = append(got, r.Sort)
	}
	if !slices.Equal(got, want) {
		t.Errorf("List is not in the order of the bytes\ngot  %q\nwant %q", got, want)
	}
}

func testPartitions(t *testing.T, h *Harness) {
	partitions := []string{"P", "P#", "PP", "P\x00", "p", "P\U0010ffff", "O", "Q"}
	want := map[string][]store.Record{}
	for _, p := range partitions {
		for _, sort := range []string{"a", "ab", "P", "#"} {
			want[p] = append(want[p], put(t, h.Store, resting(key(p, sort))))
		}
	}
	for _, p := range partitions {
		isListed(t, h.Store, "a listing holds no other partition's records", p, "", want[p]...)
		isListed(t, h.Store, "nor does one by prefix", p, "a", want[p][0], want[p][1])
	}
	isListed(t, h.Store, "a partition without records is empty", "P#P", "")
}

func testManyListed(t *testing.T, h *Harness) {
	var records []store.Record
	for i := range 350 {
		r := resting(key("partition", fmt.Sprintf("%c#%04d", "AB"[i%2], i)))
		r.Body = body(20)
		records = append(records, r)
	}
	records = append(records, resting(key("partition ", "A#0001")), resting(key("partitio", "A#0001")))
	stored := putAll(t, h.Store, records...)[:350]
	isListed(t, h.Store, "every record once, over all pages", "partition", "", stored...)
	isListed(t, h.Store, "also by prefix", "partition", "A#",
		slices.DeleteFunc(stored, func(r store.Record) bool { return r.Sort[0] == 'B' })...)
}

// large is some 2 MB of records, small ones among them: more than one page of
// a store whose pages end at 1 MB.
func large(partition string) []store.Record {
	var records []store.Record
	for i := range 40 {
		r := fixture(key(partition, fmt.Sprintf("%02d", i)))
		if i%6 == 1 {
			r.Body = body(300_000)
		}
		records = append(records, r)
	}
	return records
}

func testLargeListed(t *testing.T, h *Harness) {
	stored := putAll(t, h.Store, large("partition")...)
	isListed(t, h.Store, "every record once, over all pages", "partition", "", stored...)
	isListed(t, h.Store, "also by prefix", "partition", "2", stored[20:30]...)
}

// testListAfter goes on after keys that no page ended with.
func testListAfter(t *testing.T, h *Harness) {
	var all []store.Record
	for i := range 200 {
		r := resting(key("partition", fmt.Sprintf("A#%03d", 2*i)))
		r.Body = body(20)
		all = append(all, r)
	}
	stored := putAll(t, h.Store, append(all, resting(key("partition", "B#000")))...)[:200]
	for name, test := range map[string]struct {
		reason, after string
		want          []store.Record
	}{
		"Recorded": {"a record is not after itself", "A#100", stored[51:]},
		"Absent":   {"a place needs no record", "A#101", stored[51:]},
		"First":    {"the prefix itself is a place, before all that has it", "A#", stored},
		"Longer":   {"a key is before those that are longer", "A#100\x00", stored[51:]},
		"Last":     {"nothing is after the last", "A#398", nil},
		"Behind":   {"nor after what would come later", "A#\U0010ffff", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Gather(func(after string) (store.Page, error) {
				return h.Store.List(t.Context(), "partition", "A#", cmp.Or(after, test.after), 0)
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(test.want, got); d != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, d)
			}
		})
	}
}

func testListLimit(t *testing.T, h *Harness) {
	var all []store.Record
	for i := range 120 {
		r := resting(key("partition", fmt.Sprintf("A#%03d", i)))
		r.Body = body(20)
		all = append(all, r)
	}
	stored := putAll(t, h.Store, append(all, resting(key("partition", "B#000")))...)[:120]
	for _, limit := range []int{1, 7, 100, 1000, math.MaxInt} {
		got, err := Gather(func(after string) (store.Page, error) {
			page, err := h.Store.List(t.Context(), "partition", "A#", after, limit)
			if len(page.Records) > limit {
				t.Errorf("a page of at most %d records has %d", limit, len(page.Records))
			}
			return page, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(stored, got); d != "" {
			t.Errorf("every record once, in pages of at most %d: -want +got:\n%s", limit, d)
		}
	}
}

func testChangingList(t *testing.T, h *Harness) {
	stable := map[string]bool{}
	stored := putAll(t, h.Store, large("partition")...)
	for i, r := range stored {
		stable[r.Sort] = i%3 != 0
	}
	pages := 0
	got, err := Gather(func(after string) (store.Page, error) {
		page, err := h.Store.List(t.Context(), "partition", "", after, 0)
		if err != nil || len(page.Records) == 0 {
			return page, err
		}
		pages++
		// The record that the page ended with is deleted: the cursor must
		// stand for a place, not for a record.
		last := page.Records[len(page.Records)-1]
		commit(t, h.Store, store.Delete(last.Key, last.Version))
		// Some of the others are changed or deleted, listed or not, and some are added
		// before and behind.
		for i, r := range stored {
			if stable[r.Sort] || r.Key == last.Key || (i/3)%4 != pages%4 {
				continue
			}
			got, found := stillThere(t, h.Store, r.Key)
			if !found {
				continue
			}
			if i%2 == 0 {
				commit(t, h.Store, store.Delete(r.Key, got.Version))
			} else {
				put(t, h.Store, changed(got))
			}
		}
		if pages < 10 { // else the listing of a store with small pages never ends
			put(t, h.Store, resting(key("partition", fmt.Sprintf("00+%d", pages))))
			put(t, h.Store, resting(key("partition", fmt.Sprintf("39+%d", pages))))
		}
		return page, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var sorts []string
	for _, r := range got {
		sorts = append(sorts, r.Sort)
	}
	if !slices.IsSorted(sorts) || len(slices.Compact(slices.Clone(sorts))) != len(sorts) {
		t.Errorf("while records change, the listing is not in order: %s", strings.Join(sorts, " "))
	}
	for sort, is := range stable {
		if is && !slices.Contains(sorts, sort) {
			t.Errorf("record %q was there throughout and is not listed", sort)
		}
	}
}
