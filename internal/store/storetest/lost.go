package storetest

import (
	"testing"

	"github.com/longshore/longshore/internal/store"
)

// lostTests show how whoever lost the answer to a commit finds out about it.
var lostTests = map[string]func(*testing.T, *Harness){
	"Happened": testLostButHappened,
	"Never":    testNeverHappened,
	"Overrun":  testLostToAnother,
}

// landed reports whether the commit that the writer made of records read at
// these versions is the one that is stored. One record is enough to ask.
func landed(t *testing.T, s store.Store, k store.Key, was int64, writer string) bool {
	t.Helper()
	r, found := stillThere(t, s, k)
	return found && r.Version == was+1 && r.Writer == writer
}

func isUnknown(t *testing.T, err error) {
	t.Helper()
	isError(t, "the outcome is unknown", err, ErrLost)
}

func testLostButHappened(t *testing.T, h *Harness) {
	s := LoseAnswers(h.Store, 2)
	old := put(t, s, written(fixture(key("partition", "old")), "first"))
	made, next := written(fixture(key("partition", "made")), "mine"), written(changed(old), "mine")
	isUnknown(t, s.Commit(t.Context(), store.Put(next), store.Put(made)))
	if !landed(t, s, old.Key, 1, "mine") || !landed(t, s, made.Key, 0, "mine") {
		t.Error("a commit that happened is not recognised")
	}
	isError(t, "trying it again is a conflict, and no second effect",
		s.Commit(t.Context(), store.Put(next), store.Put(made)), store.ErrConflict)
	if !landed(t, s, old.Key, 1, "mine") || !landed(t, s, made.Key, 0, "mine") {
		t.Error("a commit that happened is not recognised after trying it again")
	}
}

func testNeverHappened(t *testing.T, h *Harness) {
	s := &Faulty{Store: h.Store, Before: Nth(2, ErrLost)}
	old := put(t, s, written(fixture(key("partition", "old")), "first"))
	made, next := written(fixture(key("partition", "made")), "mine"), written(changed(old), "mine")
	isUnknown(t, s.Commit(t.Context(), store.Put(next), store.Put(made)))
	if landed(t, s, old.Key, 1, "mine") || landed(t, s, made.Key, 0, "mine") {
		t.Error("a commit that never happened is taken for one that did")
	}
	isStored(t, s, "nothing was changed", old)
	commit(t, s, store.Put(next), store.Put(made))
	if !landed(t, s, old.Key, 1, "mine") || !landed(t, s, made.Key, 0, "mine") {
		t.Error("trying it again is not recognised")
	}
}

func testLostToAnother(t *testing.T, h *Harness) {
	s := &Faulty{Store: h.Store, Before: Nth(2, ErrLost)}
	old := put(t, s, written(fixture(key("partition", "old")), "first"))
	isUnknown(t, s.Commit(t.Context(), store.Put(written(changed(old), "mine"))))
	put(t, s, written(changed(old), "another"))
	if landed(t, s, old.Key, 1, "mine") {
		t.Error("another's commit of the same version is taken for mine")
	}
}
