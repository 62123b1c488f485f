package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/longshore/longshore/internal/records/store"
)

// commitTests are about commits of several changes: all of it or none.
var commitTests = map[string]func(*testing.T, *Harness){
	"Whole":     testWholeCommit,
	"AllOrNone": testAllOrNone,
	"CheckOnly": testCheckOnly,
}

// A scene is a commit of every kind of change, with what was before and what
// comes after.
type scene struct {
	changes       []store.Change
	before, after []store.Record
	gone          []store.Key // after
	fresh         []store.Key // absent before
}

func newScene(t *testing.T, s store.Store, partition string) scene {
	t.Helper()
	k := func(sort string) store.Key { return key(partition, sort) }
	updated := put(t, s, fixture(k("updated")))
	checked := put(t, s, changed(put(t, s, fixture(k("checked")))))
	deleted := put(t, s, fixture(k("deleted")))
	moved := put(t, s, fixture(k("moved")))

	next, far := changed(updated), resting(moved.Key)
	far.Version = moved.Version
	sc := scene{
		changes: []store.Change{
			store.Put(fixture(k("made"))),
			store.Put(next),
			store.Check(checked.Key, 2),
			store.Delete(deleted.Key, 1),
			store.Check(k("absent"), 0),
			store.Put(far),
			store.Delete(k("absent too"), 0),
		},
		before: []store.Record{updated, checked, deleted, moved},
		gone:   []store.Key{deleted.Key, k("absent"), k("absent too")},
		fresh:  []store.Key{k("made"), k("absent"), k("absent too")},
	}
	made := fixture(k("made"))
	made.Version, next.Version, far.Version = 1, 2, 2
	sc.after = []store.Record{made, next, checked, far}
	return sc
}

func testWholeCommit(t *testing.T, h *Harness) {
	sc := newScene(t, h.Store, "partition")
	commit(t, h.Store, sc.changes...)
	isStored(t, h.Store, "every change is made", sc.after...)
	isAbsent(t, h.Store, "every change is made", sc.gone...)
	isListed(t, h.Store, "every change is made", "partition", "", sc.after...)
}

func testAllOrNone(t *testing.T, h *Harness) {
	for i := range newScene(t, h.Store, "count").changes {
		t.Run(fmt.Sprintf("ConflictAt%d", i), func(t *testing.T) {
			partition := fmt.Sprintf("conflict at %d", i)
			sc := newScene(t, h.Store, partition)
			changes := slices.Clone(sc.changes)
			changes[i].Record.Version += 3
			isError(t, "one change conflicts", h.Store.Commit(t.Context(), changes...), store.ErrConflict)
			isStored(t, h.Store, "no change is made", sc.before...)
			isAbsent(t, h.Store, "no change is made", sc.fresh...)
			isListed(t, h.Store, "no change is made", partition, "", sc.before...)

			commit(t, h.Store, sc.changes...)
			isStored(t, h.Store, "a conflict is no obstacle to the next commit", sc.after...)
		})
	}
	t.Run("AllConflict", func(t *testing.T) {
		sc := newScene(t, h.Store, "all conflict")
		changes := slices.Clone(sc.changes)
		for i := range changes {
			changes[i].Record.Version += 3
		}
		isError(t, "all changes conflict", h.Store.Commit(t.Context(), changes...), store.ErrConflict)
		isListed(t, h.Store, "no change is made", "all conflict", "", sc.before...)
	})
}

func testCheckOnly(t *testing.T, h *Harness) {
	r := put(t, h.Store, fixture(key("partition", "stored")))
	absent := key("partition", "absent")
	commit(t, h.Store, store.Check(r.Key, 1))
	commit(t, h.Store, store.Check(absent, 0))
	commit(t, h.Store, store.Check(r.Key, 1), store.Check(absent, 0))
	isStored(t, h.Store, "a check changes nothing", r)
	isAbsent(t, h.Store, "a check makes nothing", absent)

	for name, changes := range map[string][]store.Change{
		"Absent":  {store.Check(r.Key, 0), store.Check(absent, 0)},
		"Present": {store.Check(r.Key, 1), store.Check(absent, 1)},
		"Stale":   {store.Check(r.Key, 2)},
	} {
		isError(t, "a check that does not hold: "+name, h.Store.Commit(t.Context(), changes...), store.ErrConflict)
	}
	isStored(t, h.Store, "a check changes nothing", r)
	isAbsent(t, h.Store, "a check makes nothing", absent)
}
