package storetest

import (
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/records/store"
)

// raceTests are about commits that were prepared from the same versions.
var raceTests = map[string]func(*testing.T, *Harness){
	"SameRecord":         testSameRecord,
	"CheckAgainstDelete": testCheckAgainstDelete,
}

func written(r store.Record, writer string) store.Record {
	r.Writer = writer
	return r
}

func testSameRecord(t *testing.T, h *Harness) {
	r := put(t, h.Store, fixture(key("partition", "sort")))
	beside := fixture(key("partition", "beside"))
	first, second := written(r, "first"), written(r, "second")
	first = put(t, h.Store, first)
	err := h.Store.Commit(t.Context(), store.Put(beside), store.Put(second))
	isError(t, "the second to come has lost", err, store.ErrConflict)
	isStored(t, h.Store, "the first to come has won", first)
	isAbsent(t, h.Store, "nothing of the loser is made", beside.Key)
}

// testCheckAgainstDelete is how a binding is kept from outliving its
// instance: one commit makes the child and checks the parent, the other
// changes the parent.
func testCheckAgainstDelete(t *testing.T, h *Harness) {
	for round := range 10 {
		parent := put(t, h.Store, fixture(key(fmt.Sprint("family ", round), "parent")))
		child := fixture(key(parent.Partition, "child"))
		errs := together(2, func(i int) error {
			if i == 0 {
				return h.Store.Commit(t.Context(), store.Check(parent.Key, 1), store.Put(child))
			}
			return h.Store.Commit(t.Context(), store.Delete(parent.Key, 1), store.Check(child.Key, 0))
		})
		for _, err := range errs {
			if err != nil {
				isError(t, "who loses has a conflict", err, store.ErrConflict)
			}
		}
		var want []store.Record
		switch {
		case errs[0] == nil && errs[1] == nil:
			t.Fatal("a child was made and its parent deleted, each on condition that the other was not")
		case errs[0] == nil:
			made := child
			made.Version = 1
			want = []store.Record{parent, made}
		case errs[1] != nil: // both were turned away
			want = []store.Record{parent}
		}
		isListed(t, h.Store, "what was answered is so", parent.Partition, "", want...)
	}
}
