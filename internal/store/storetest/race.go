package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/store"
)

// raceTests are about commits that were prepared from the same versions.
var raceTests = map[string]func(*testing.T, *Harness){
	"SameRecord":          testSameRecord,
	"Crossing":            testCrossing,
	"Together":            testTogether,
	"AbsentTogether":      testAbsentTogether,
	"CrossingTogether":    testCrossingTogether,
	"CheckAgainstDelete":  testCheckAgainstDelete,
	"CheckAgainstAnother": testCheckAgainstAnother,
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

func testCrossing(t *testing.T, h *Harness) {
	x, y := put(t, h.Store, fixture(key("p1", "x"))), put(t, h.Store, fixture(key("p2", "y")))
	a := []store.Change{store.Put(written(x, "a")), store.Put(written(y, "a"))}
	b := []store.Change{store.Put(written(y, "b")), store.Put(written(x, "b"))}
	commit(t, h.Store, a...)
	isError(t, "the second to come has lost", h.Store.Commit(t.Context(), b...), store.ErrConflict)
	x, y = written(x, "a"), written(y, "a")
	x.Version, y.Version = 2, 2
	isStored(t, h.Store, "both records are the winner's", x, y)
}

// contest runs the contenders at once and returns the one that won. A
// contender that lost although its records are unchanged tries again: there
// are stores in which two transactions that meet may both be turned away.
func contest(t *testing.T, n int, try func(ctx context.Context, i int) error, undecided func(ctx context.Context) (bool, error)) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	won := make([]bool, n)
	errs := together(n, func(i int) error {
		for {
			err := try(ctx, i)
			if !errors.Is(err, store.ErrConflict) {
				won[i] = err == nil
				return err
			}
			if again, err := undecided(ctx); err != nil || !again {
				return err
			}
		}
	})
	winner := -1
	for i := range n {
		switch {
		case errs[i] != nil:
			t.Fatalf("contender %d: %v", i, errs[i])
		case won[i] && winner >= 0:
			t.Fatalf("contenders %d and %d have both won", winner, i)
		case won[i]:
			winner = i
		}
	}
	if winner < 0 {
		t.Fatal("no contender has won")
	}
	return winner
}

func at(s store.Store, k store.Key, version int64) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		r, err := s.Get(ctx, k)
		if errors.Is(err, store.ErrNotFound) {
			return version == 0, nil
		}
		return r.Version == version, err
	}
}

func testTogether(t *testing.T, h *Harness) {
	r := put(t, h.Store, fixture(key("partition", "sort")))
	for range 10 {
		beside := func(i int) store.Key { return key(fmt.Sprint("beside ", r.Version), fmt.Sprint(i)) }
		winner := contest(t, 6, func(ctx context.Context, i int) error {
			return h.Store.Commit(ctx, store.Put(resting(beside(i))), store.Put(written(r, fmt.Sprint(i))))
		}, at(h.Store, r.Key, r.Version))
		made := resting(beside(winner))
		made.Version = 1
		isListed(t, h.Store, "of the losers nothing is made", made.Partition, "", made)
		r = written(r, fmt.Sprint(winner))
		r.Version++
		isStored(t, h.Store, "the record is the winner's", r)
	}
}

func testAbsentTogether(t *testing.T, h *Harness) {
	for round := range 10 {
		r := fixture(key("partition", fmt.Sprint(round)))
		winner := contest(t, 6, func(ctx context.Context, i int) error {
			return h.Store.Commit(ctx, store.Put(written(r, fmt.Sprint(i))))
		}, at(h.Store, r.Key, 0))
		r = written(r, fmt.Sprint(winner))
		r.Version = 1
		isStored(t, h.Store, "the record is the winner's", r)
	}
}

func testCrossingTogether(t *testing.T, h *Harness) {
	x, y := put(t, h.Store, fixture(key("p1", "x"))), put(t, h.Store, fixture(key("p2", "y")))
	for range 10 {
		winner := contest(t, 4, func(ctx context.Context, i int) error {
			changes := []store.Change{store.Put(written(x, fmt.Sprint(i))), store.Put(written(y, fmt.Sprint(i)))}
			if i%2 == 1 {
				changes[0], changes[1] = changes[1], changes[0]
			}
			return h.Store.Commit(ctx, changes...)
		}, at(h.Store, x.Key, x.Version))
		x, y = written(x, fmt.Sprint(winner)), written(y, fmt.Sprint(winner))
		x.Version++
		y.Version++
		isStored(t, h.Store, "both records are the winner's", x, y)
	}
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

func testCheckAgainstAnother(t *testing.T, h *Harness) {
	r := put(t, h.Store, fixture(key("partition", "sort")))
	errs := together(6, func(int) error { return h.Store.Commit(t.Context(), store.Check(r.Key, 1)) })
	for _, err := range errs {
		// Nothing changes the record, but a store may turn a check away
		// while another is under way.
		if err != nil {
			isError(t, "a check", err, store.ErrConflict)
		}
	}
	isStored(t, h.Store, "checks change nothing", r)
}
