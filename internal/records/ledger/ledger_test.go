package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/storetest"
	"github.com/longshore/longshore/internal/test/testkit"
)

var (
	epoch    = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	instance = lifecycle.Key{Platform: "p", Instance: "i"}
	binding  = lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}
)

func newStore(t *testing.T) store.Store {
	t.Helper()
	s := expect.Get(bolt.Open(filepath.Join(t.TempDir(), "records"), bolt.Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func over(s store.Store) *ledger.Ledger { return ledger.New(s, testkit.IDs()) }

func read(t *testing.T, l *ledger.Ledger, key lifecycle.Key) lifecycle.Record {
	t.Helper()
	return expect.Get(l.Record(t.Context(), key, epoch))(t)
}

// creating is a record whose creation begins at a time.
func creating(t *testing.T, key lifecycle.Key, at time.Time, ordered lifecycle.Record) lifecycle.Record {
	t.Helper()
	start := lifecycle.Start{ID: "operation-000000000001", Now: at, Received: at, Timeout: time.Hour,
		Asker: lifecycle.Asker{Request: "r", IdentityPlatform: "cf", Identity: lifecycle.Sealed("sealed")}}
	r, err := lifecycle.Record{Key: key}.BeginCreate(start, ordered)
	expect.OK(t, err)
	return r
}

// leaves calls set with each value in a record that has no parts, and with the name of its member, so that a new
// member cannot be forgotten. Pointers are set before; of a slice, set says how many there are.
func leaves(name string, v reflect.Value, set func(name string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Map: // members that this program does not know: they have a test of their own
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			set(name, v)
			return
		}
		for i := range v.NumField() {
			leaves(v.Type().Name()+"."+v.Type().Field(i).Name, v.Field(i), set)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		leaves(name, v.Elem(), set)
	case reflect.Slice:
		set(name, v)
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				leaves(name, v.Index(i), set)
			}
		}
	default:
		set(name, v)
	}
}

// filled is a record each of whose members has a value of its own.
func filled[T any]() (record T) {
	n := 0
	leaves("", reflect.ValueOf(&record).Elem(), func(_ string, v reflect.Value) {
		n++
		switch v.Interface().(type) {
		case time.Time:
			v.Set(reflect.ValueOf(epoch.Add(time.Duration(n) * time.Hour)))
		case json.RawMessage:
			v.SetBytes(fmt.Appendf(nil, `{"n":%d}`, n))
		case lifecycle.Sealed, []byte:
			v.SetBytes(fmt.Appendf(nil, "sealed-%d", n))
		case []string:
			v.Set(reflect.ValueOf([]string{fmt.Sprintf("text-%d", n)}))
		case bool:
			v.SetBool(true)
		default:
			switch v.Kind() {
			case reflect.Slice:
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			case reflect.String:
				v.SetString(fmt.Sprintf("text-%d", n))
			default:
				v.SetInt(int64(n))
			}
		}
	})
	return record
}

func TestRecordsKeepEveryField(t *testing.T) {
	ctx, l := context.Background(), over(newStore(t))
	i := filled[lifecycle.Record]()
	i.Key, i.Version = instance, 0
	b := filled[lifecycle.Record]()
	b.Key, b.Version = binding, 0
	p := lifecycle.Pointer{Key: binding}
	past, entry := filled[lifecycle.PastOperation](), filled[lifecycle.Entry]()
	past.Version, entry.Version, entry.Key = 0, 0, binding
	expect.OK(t, l.Commit(ctx, ledger.Put(i), ledger.Put(b), ledger.Put(p), ledger.Put(past), ledger.Put(entry)))
	i.Version, b.Version, p.Version, past.Version, entry.Version = 1, 1, 1, 1, 1

	expect.Same(t, "instance", i, read(t, l, instance))
	expect.Same(t, "binding", b, read(t, l, binding))
	expect.Same(t, "pointer", p, expect.Get(l.Pointer(ctx, "p", "b"))(t))
	logged, _, err := l.History(ctx, instance, "", 0)
	expect.OK(t, err)
	expect.Same(t, "history", []lifecycle.Entry{entry}, logged)
	forgotten := entry.Ended.Add(lifecycle.HistoryKept)
	expect.Same(t, "past operation", past, expect.Get(l.PastOperation(ctx, past.Operation.ID, epoch))(t))
	gotNext, _, err := l.NextBinding(ctx, instance, "")
	expect.OK(t, err)
	expect.Same(t, "next binding", &b, gotNext)
	due, next, err := l.Due(ctx, epoch.AddDate(1, 0, 0), "")
	if err != nil || next != "" || len(due) != 4 {
		t.Errorf("due: %d records, next %q: %v", len(due), next, err)
	}
	if !slices.ContainsFunc(due, func(d ledger.Due) bool { return d.Expires.Equal(forgotten.Truncate(time.Second)) }) {
		t.Errorf("no entry expires at %v: %+v", forgotten, due)
	}
	for _, d := range due {
		expect.OK(t, l.Commit(ctx, d.Drop), "dropping:")
	}
	if gone := read(t, l, instance); gone.Version != 0 || gone.State != lifecycle.Absent {
		t.Errorf("dropped, but reads %+v", gone)
	}
}

// Keys of platforms, instances and bindings never meet.
func TestKeysNeverMeet(t *testing.T) {
	ctx, l := context.Background(), over(newStore(t))
	keys := []lifecycle.Key{{Platform: "p", Instance: "i"}, {Platform: "q", Instance: "i"},
		{Platform: "p", Instance: "i#INSTANCE"}, {Platform: "p", Instance: "I#p#i"}, {Platform: "p", Instance: "BINDING#b"}}
	for n, k := range keys {
		i := lifecycle.Record{Key: k, State: lifecycle.Ready, Provider: fmt.Sprint(n)}
		b := lifecycle.Record{Key: k.BindingKey("INSTANCE"), State: lifecycle.Ready, Provider: fmt.Sprint(n)}
		expect.OK(t, l.Commit(ctx, ledger.Put(i), ledger.Put(b)), k)
	}
	for n, k := range keys {
		if i := read(t, l, k); i.Provider != fmt.Sprint(n) || i.Key != k {
			t.Errorf("%+v reads %+v", k, i)
		}
		b, _, err := l.NextBinding(ctx, k, "")
		if err != nil || b == nil || b.Provider != fmt.Sprint(n) {
			t.Errorf("%+v has the binding %v: %v", k, b, err)
		}
		if b, passed, err := l.NextBinding(ctx, k, "INSTANCE"); b != nil || passed != "INSTANCE" || err != nil {
			t.Errorf("%+v has one more binding %v, passed %q: %v", k, b, passed, err)
		}
	}
}

func TestNextBindingPassesTombstones(t *testing.T) {
	ctx, l := context.Background(), over(newStore(t))
	states := map[string]lifecycle.State{"\x01": lifecycle.Deleted,
		"a": lifecycle.Deleted, "b": lifecycle.Creating, "b#": lifecycle.Ready, "c": lifecycle.CreateFailed,
		"d": lifecycle.Deleted, "e": lifecycle.Deleting, "ü": lifecycle.DeleteFailed, "\U0010ffff": lifecycle.Deleted}
	for id, state := range states {
		b := lifecycle.Record{Key: instance.BindingKey(id), State: state}
		expect.OK(t, l.Commit(ctx, ledger.Put(b)))
	}
	for after, want := range map[string]struct{ next, passed string }{
		"":           {"b", "a"},
		"a":          {"b", "a"},
		"aa":         {"b", "aa"},
		"b":          {"b#", "b"},
		"b#":         {"c", "b#"},
		"c":          {"e", "d"},
		"e":          {"ü", "e"},
		"ü":          {"", "\U0010ffff"},
		"\U0010ffff": {"", "\U0010ffff"},
	} {
		next, passed, err := l.NextBinding(ctx, instance, after)
		expect.OK(t, err)
		got := ""
		if next != nil {
			got = next.Key.Binding
			if next.Version != 1 || next.State != states[got] {
				t.Errorf("%q reads %+v", got, next)
			}
		}
		if got != want.next || passed != want.passed {
			t.Errorf("after %q: %q, passed %q; want %q, passed %q", after, got, passed, want.next, want.passed)
		}
	}
}

// NFR-08: whether a tombstone counts is decided by comparing times.
func TestForgottenTombstonesReadAsAbsent(t *testing.T) {
	ctx, l := context.Background(), over(newStore(t))
	i := expect.Get(lifecycle.Record{Key: instance}.Entomb(epoch, epoch))(t)
	past := lifecycle.PastOperation{Operation: lifecycle.Operation{ID: "o"}, Expires: epoch.Add(lifecycle.Retention)}
	expect.OK(t, l.Commit(ctx, ledger.Put(i), ledger.Put(past)))
	for name, tc := range map[string]struct {
		at    time.Time
		state lifecycle.State
		past  int64
	}{"Before": {epoch.Add(lifecycle.Retention - time.Second), lifecycle.Deleted, 1},
		"After": {epoch.Add(lifecycle.Retention), lifecycle.Absent, 0}} {
		got, err := l.Record(ctx, instance, tc.at)
		if err != nil || got.State != tc.state || got.Version != 1 || got.Key != instance {
			t.Errorf("%s: %+v: %v", name, got, err)
		}
		past := expect.Get(l.PastOperation(ctx, "o", tc.at))(t)
		expect.Same(t, name+": version of the past operation", tc.past, past.Version)
	}
}

func TestCommitsThatGoWrong(t *testing.T) {
	lost, happened := errors.New("connection reset"), 0
	fails := func(err error) func([]store.Change) error {
		return func([]store.Change) error {
			happened++
			return err
		}
	}
	put := func(version int64) ledger.Change {
		return ledger.Put(lifecycle.Record{Key: instance, Version: version, State: lifecycle.Ready})
	}
	for name, tc := range map[string]struct {
		reason  string
		store   storetest.Faulty // without its store
		version int64
		want    error // nil: it has landed
	}{
		"Fine":           {"nothing goes wrong", storetest.Faulty{}, 1, nil},
		"Conflict":       {"another was first", storetest.Faulty{}, 0, ledger.ErrConflict},
		"LostAnswer":     {"it landed, and the answer was lost", storetest.Faulty{After: fails(storetest.ErrLost)}, 1, nil},
		"Refused":        {"it did not land", storetest.Faulty{Before: fails(lost)}, 1, lost},
		"RepeatedInside": {"the store met its own version", storetest.Faulty{After: fails(store.ErrConflict)}, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			expect.OK(t, over(s).Commit(context.Background(), put(0)))
			tc.store.Store = s
			happened = 0
			err := ledger.New(&tc.store, func() string { return "mine" }).Commit(context.Background(), put(tc.version))
			expect.Fails(t, tc.reason, tc.want, err)
			if meant := tc.store.Before != nil || tc.store.After != nil; meant != (happened == 1) {
				t.Errorf("the fault happened %d times", happened)
			}
		})
	}
}

// A commit writes what follows from the change of its record, whatever its ledger remembers of that: the life that another
// one set aside, the operation that another one replaced, and the entry of one that ended or was cancelled.
func TestWhatFollowsFromAChange(t *testing.T) {
	for _, key := range []lifecycle.Key{instance, binding} {
		s, now := newStore(t), epoch
		next := func(change func(lifecycle.Record) (lifecycle.Record, error)) {
			t.Helper()
			now = now.Add(time.Minute)
			r := expect.Get(change(read(t, over(s), key)))(t)
			expect.OK(t, over(s).Commit(t.Context(), ledger.Put(r)))
		}
		start := func(id string) lifecycle.Start { return lifecycle.Start{ID: id, Now: now, Timeout: time.Hour} }
		create := func(id string) {
			next(func(r lifecycle.Record) (lifecycle.Record, error) {
				return r.BeginCreate(start(id), lifecycle.Record{})
			})
		}
		create("one")
		next(func(r lifecycle.Record) (lifecycle.Record, error) {
			return r.Fail(now, lifecycle.Failure{Message: "no room"})
		})
		create("two")
		next(func(r lifecycle.Record) (lifecycle.Record, error) { return r.BeginDelete(start("three")) })
		expect.Same(t, "the former life", lifecycle.CreateFailed, read(t, over(s), key.Former("one")).State)
		for id, cancelled := range map[string]bool{"one": false, "two": true} {
			past := expect.Get(over(s).PastOperation(t.Context(), id, now))(t)
			expect.Same(t, id+" is remembered", lifecycle.Failed, past.Operation.Phase)
			expect.Same(t, id+" was cancelled", cancelled, past.Operation.Cancelled)
		}
		next(func(r lifecycle.Record) (lifecycle.Record, error) { return r.Succeed(now, nil) }) // has a late look
		now = now.Add(lifecycle.Retention)
		create("four")
		expect.Same(t, "what a tombstone that is over leaves", lifecycle.Absent, read(t, over(s), key.Former("two")).State)
		past, err := over(s).PastOperation(t.Context(), "three", now)
		expect.OK(t, err)
		expect.Same(t, "the version of its operation", int64(0), past.Version)
		entries, _, err := over(s).History(t.Context(), key, "", 0)
		expect.OK(t, err)
		var logged []string
		for _, e := range entries {
			logged = append(logged, fmt.Sprint(e.ID, " ", e.Cancelled))
		}
		expect.Same(t, "the history", []string{"three false", "two true", "one false"}, logged)
	}
}

// Two commits of one process that race never both believe to have won.
func TestRacingCommitsHaveOneWinner(t *testing.T) {
	l := over(newStore(t))
	for version := range int64(20) {
		var all sync.WaitGroup
		errs := make([]error, 4)
		for n := range errs {
			all.Go(func() {
				errs[n] = l.Commit(context.Background(), ledger.Put(lifecycle.Record{Key: instance, Version: version}))
			})
		}
		all.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, ledger.ErrConflict) {
				t.Fatal(err)
			}
		}
		expect.Same(t, "commits of 4 that won", 1, won)
	}
}

// One record that cannot be read never hides the others.
func TestDamagedRecordsDoNotHideOthers(t *testing.T) {
	ctx, s := context.Background(), newStore(t)
	for n, r := range []store.Record{
		{Key: store.Key{Partition: "I#p#a", Sort: "INSTANCE"}, Body: []byte(`{"platform":"p","instance":"a"}`), Schema: 1},
		{Key: store.Key{Partition: "I#p#b", Sort: "INSTANCE"}, Body: []byte(`{`), Schema: 1},
		{Key: store.Key{Partition: "I#p#c", Sort: "INSTANCE"}, Body: []byte(`{}`), Schema: ledger.Schema + 1},
	} {
		r.Writer, r.Due = "w", epoch.Add(time.Duration(n)*time.Second)
		expect.OK(t, s.Commit(ctx, store.Put(r)))
	}
	l := over(s)
	due, _, err := l.Due(ctx, epoch.Add(time.Hour), "")
	if len(due) != 1 || due[0].Record.Key.Instance != "a" || err == nil || !strings.Contains(err.Error(), "run a newer one") {
		t.Errorf("due %v: %v", due, err)
	}
	_, err = l.Record(ctx, lifecycle.Key{Platform: "p", Instance: "c"}, epoch)
	expect.Says(t, "a record of a newer program", fmt.Sprint(err), "encoding 2")
	// One that a version before the first release wrote is refused with one sentence.
	old := store.Record{Key: store.Key{Partition: "I#p#i", Sort: "INSTANCE"}, Body: []byte(`{"state":"ready"}`)}
	expect.OK(t, s.Commit(ctx, store.Put(old)))
	_, err = l.Record(ctx, instance, epoch)
	says := `record "I#p#i" "INSTANCE" was written by a version before the first release, which this program does not read: give it a new table`
	if !errors.Is(err, ledger.ErrUnreadable) || !strings.HasPrefix(err.Error(), says) {
		t.Errorf("%v", err)
	}
}

// lacking gives its listings beside an error, as a store does that left a record out.
type lacking struct{ store.Store }

func (l lacking) List(ctx context.Context, partition, prefix, after string, limit int) (store.Page, error) {
	page, err := l.Store.List(ctx, partition, prefix, after, limit)
	return page, errors.Join(err, store.ErrUnreadable)
}

// A deprovision stops where a listing has left a record out: the binding that is not listed would be left behind.
func TestADecisionStopsWhereARecordWasLeftOut(t *testing.T) {
	l := ledger.New(lacking{memory.New()}, func() string { return "w" })
	next, _, err := l.NextBinding(t.Context(), lifecycle.Key{Platform: "p", Instance: "i"}, "")
	expect.Fails(t, "the next binding", store.ErrUnreadable, err)
	use, err := l.NextTargetUse(t.Context(), lifecycle.TargetUse{}, false)
	expect.Fails(t, "the next use of a target", store.ErrUnreadable, err)
	if next != nil || use != nil {
		t.Errorf("the next binding is %+v, the next use %+v", next, use)
	}
}

// Conflicts are met again and again until none is met, another error comes, or the time is over.
func TestAgain(t *testing.T) {
	conflict, broken := fmt.Errorf("committing: %w", ledger.ErrConflict), errors.New("broken")
	for name, tc := range map[string]struct {
		reason string
		meets  []error // one at each try; the last for good
		ends   int     // the time is over in this try; 0 for never
		want   error
		tries  int
	}{
		"Once":      {"no conflict, no repetition", []error{nil}, 0, nil, 1},
		"Conflicts": {"as often as there is one", []error{conflict, conflict, conflict, nil}, 0, nil, 4},
		"Error":     {"what is no conflict is final", []error{conflict, broken}, 0, broken, 2},
		"Over":      {"the last conflict is told", []error{conflict}, 3, ledger.ErrConflict, 3},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			tries := 0
			err := ledger.Again(ctx, func() error {
				tries++
				if tries == tc.ends {
					cancel()
				}
				return tc.meets[min(tries, len(tc.meets))-1]
			})
			cancel()
			expect.Fails(t, tc.reason, tc.want, err)
			expect.Same(t, tc.reason+": tries", tc.tries, tries)
		})
	}
}

// The directory has what exists, the latest first: by pages, of one platform or of all, and
// without the help of what a ledger remembers.
func TestDirectory(t *testing.T) {
	s := newStore(t)
	ctx, now := t.Context(), epoch
	began := func(key lifecycle.Key) {
		t.Helper()
		now = now.Add(time.Second)
		start := lifecycle.Start{ID: now.Format("at150405"), Now: now}
		r, err := lifecycle.Record{Key: key}.BeginCreate(start, lifecycle.Record{})
		bound := lifecycle.Record{Key: key.BindingKey("b"), State: lifecycle.Ready}
		expect.OK(t, errors.Join(err, over(s).Commit(ctx, ledger.Put(r), ledger.Put(bound))))
	}
	listed := func(platform string, limit int) (ids []string) {
		t.Helper()
		for k, err := range paging.All(ctx, func(ctx context.Context, cursor string) ([]lifecycle.Key, string, error) {
			page, next, err := over(s).Instances(ctx, platform, cursor, limit)
			if len(page) > limit && limit > 0 {
				t.Errorf("a page of %d has %d", limit, len(page))
			}
			return page, next, err
		}) {
			expect.OK(t, err)
			ids = append(ids, k.Platform+"/"+k.Instance+k.Life)
		}
		return ids
	}
	for _, k := range []lifecycle.Key{{Platform: "p", Instance: "1"}, {Platform: "q#", Instance: "2"},
		{Platform: "p", Instance: "3#"}} {
		began(k)
	}
	for _, limit := range []int{0, 1, 2, 3} {
		expect.Same(t, fmt.Sprint("all, by ", limit), []string{"p/3#", "q#/2", "p/1"}, listed("", limit))
		expect.Same(t, fmt.Sprint("those of p, by ", limit), []string{"p/3#", "p/1"}, listed("p", limit))
	}
	now = now.Add(time.Second) // a creation fails, and another one takes its id
	r := expect.Get(over(s).Record(ctx, lifecycle.Key{Platform: "p", Instance: "1"}, now))(t)
	r = expect.Get(r.Fail(now, lifecycle.Failure{}))(t)
	former := r.SetAside(now)
	again, err := r.BeginCreate(lifecycle.Start{ID: "again", Now: now}, lifecycle.Record{})
	expect.OK(t, errors.Join(err, over(s).Commit(ctx, ledger.Put(again), ledger.Put(*former))))
	expect.Same(t, "two lives", []string{"p/1", "p/3#", "p/1" + former.Key.Life}, listed("p", 0))
	former.Version, again.Version = 1, 2
	again.State = lifecycle.Deleted
	expect.OK(t, over(s).Commit(ctx, ledger.Put(again), ledger.Delete(*former)))
	expect.Same(t, "none of them", []string{"p/3#", "q#/2"}, listed("", 0))
}

// NextTargetUse finds one use of each target without reading the others.
func TestTargetsInUse(t *testing.T) {
	l := over(memory.New())
	use := func(provider, target, incarnation string) lifecycle.TargetUse {
		r := lifecycle.Record{Key: lifecycle.Key{Platform: "p", Instance: "i-" + incarnation, Binding: "b"},
			Incarnation: incarnation, Provider: provider, Made: lifecycle.Made{Target: lifecycle.Target{Name: target}}}
		return r.TargetUse(epoch)
	}
	all := []lifecycle.TargetUse{use("demo", "east", "1"),
		use("demo", "east", "2"), use("demo", "east#1", "3"), use("demo", "west", "4"), use("other", "east", "5")}
	for i, u := range all {
		expect.OK(t, l.Commit(t.Context(), ledger.Put(u)))
		all[i].Version = 1
	}
	for elsewhere, want := range map[bool][]lifecycle.TargetUse{false: all, true: {all[0], all[2], all[3], all[4]}} {
		var got []lifecycle.TargetUse
		for at := (lifecycle.TargetUse{}); len(got) < 10; {
			next := expect.Get(l.NextTargetUse(t.Context(), at, elsewhere))(t)
			if next == nil {
				break
			}
			at = *next
			got = append(got, at)
		}
		expect.Same(t, fmt.Sprintf("elsewhere %v", elsewhere), want, got)
	}
	expect.Same(t, "its version", 1, expect.Get(l.TargetUse(t.Context(), use("demo", "west", "4")))(t).Version)
	expect.OK(t, l.Commit(t.Context(), ledger.Delete(all[4])))
	due, _, err := l.Due(t.Context(), all[0].Due, "")
	if err != nil || len(due) != 4 || due[0].TargetUse == nil {
		t.Errorf("due: %+v %v", due, err)
	}
}
