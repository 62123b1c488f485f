package valkey_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/valkey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// keeping is the instance of a plan that retains what is deleted for a week.
func (w *world) keeping(id string) provider.Instance {
	w.t.Helper()
	snapshot := expect.Get(valkey.Check(check.Plan{Settings: map[string]any{"retain_days": 7}}))(w.t)
	in := w.instance(id)
	in.Snapshot = snapshot
	return in
}

// retain deletes an instance as the worker does, and gives what the inventory then lists of it.
func (w *world) retain(in provider.Instance) provider.Holding {
	w.t.Helper()
	h := provider.Holding{Tags: provider.TagsOf(in), Target: w.target, RetainedUntil: w.clock.Now().Add(7 * 24 * time.Hour)}
	expect.OK(w.t, w.p.Quarantine(w.t.Context(), h))
	for _, listed := range w.held() {
		if listed.Tags == h.Tags && listed.RetainedUntil.Equal(h.RetainedUntil) {
			return listed
		}
	}
	w.t.Fatalf("retained, it lists %+v", w.held())
	panic("unreachable")
}

func (w *world) held() []provider.Holding {
	w.t.Helper()
	held, next, err := w.p.List(w.t.Context(), "")
	if err != nil || next != "" {
		w.t.Fatal(next, err)
	}
	return held
}

// back is the instance that is to have what is retained.
func (w *world) back(h provider.Holding, id string) provider.Instance {
	in := w.keeping(id)
	in.Origin = h.Tags.Origin
	if in.Origin == (provider.Origin{}) {
		in.Origin = provider.Origin{Instance: h.Tags.Instance, Incarnation: h.Tags.Incarnation}
	}
	return in
}

// undelete makes an instance of what is retained.
func (w *world) undelete(h provider.Holding, id string) provider.Instance {
	w.t.Helper()
	in, former := w.back(h, id), h.Tags
	h.Tags = provider.TagsOf(in)
	expect.OK(w.t, w.p.Adopt(w.t.Context(), h, former))
	expect.OK(w.t, w.p.Release(w.t.Context(), h))
	w.drive(&in, func() (provider.Status, error) { return w.p.Provision(w.t.Context(), in) })
	return in
}

// bound binds an instance that was undeleted.
func (w *world) bound(in provider.Instance, id string) app {
	w.t.Helper()
	b := w.binding(in.ID, id)
	b.Instance.Origin, b.Instance.Target = in.Origin, in.Target
	st := w.drive(&b.Instance, func() (provider.Status, error) { return w.p.Bind(w.t.Context(), b) })
	c := st.Grant.Credentials
	return app{user: c["username"].(string), password: c["password"].(string), prefix: c["prefix"].(string)}
}

// A retained instance opens to nobody, stays when other lives of its id end, is given back with all keys, also
// twice, and is removed with its last owner.
func TestDeletedKeysAreRetained(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	root := w.server.Root(t)
	w.provision("i")
	a := w.bind("i", "b", "")
	open := w.login(a)
	must(t, open, "SET", a.prefix+"key", "value")
	held := w.retain(w.keeping("i")) // with a binding that was left
	shut := func(when string) {
		t.Helper()
		if _, err := open.Do("GET", a.prefix+"key"); err == nil {
			t.Errorf("%s: a session outlives the deletion", when)
		}
		if _, err := w.server.Login(t, a.user, a.password); err == nil {
			t.Errorf("%s: it opens to a binding of the deleted instance", when)
		}
	}
	shut("retained")

	anew := w.instance("i")
	anew.Incarnation = "its next life"
	w.drive(&anew, func() (provider.Status, error) { return w.p.Provision(t.Context(), anew) })
	b := w.binding("i", "b")
	b.Instance.Incarnation, b.Incarnation = anew.Incarnation, "of its next life"
	next := w.drive(&b.Instance, func() (provider.Status, error) { return w.p.Bind(t.Context(), b) }).Grant.Credentials
	if session, err := w.server.Login(t, fmt.Sprint(next["username"]), fmt.Sprint(next["password"])); err != nil ||
		refusedFor(session, "GET", a.prefix+"key") != "NOPERM" || next["prefix"] == a.prefix {
		t.Errorf("the next life of the id reaches what is retained: %v", err)
	}
	w.drive(&anew, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), anew) })

	var last provider.Instance
	for _, id := range []string{"back", "further", "last"} { // given back, and retained again
		last = w.undelete(held, id)
		shut("given back as " + id)
		again := w.bound(last, "b of "+id)
		if got := must(t, w.login(again), "GET", again.prefix+"key"); got != "value" || again.prefix != a.prefix {
			t.Fatalf("given back as %s, the key is %v", id, got)
		}
		late := w.keeping("i") // a deletion that comes late, of the life that had them
		w.drive(&late, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), late) })
		held = w.retain(last)
	}
	if got := must(t, root, "DBSIZE"); got != int64(1) {
		t.Fatalf("%v keys are left", got)
	}
	for range 2 {
		w.drive(&last, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), last) })
	}
	got, all := must(t, root, "DBSIZE"), must(t, root, "ACL", "USERS").([]any)
	if got != int64(0) || len(all) != 4 { // those that it began with
		t.Errorf("in the end %v keys are left, and the users %v", got, all)
	}
}

// A process may die after any command of a retention, an adoption or a removal: in the end the keys are in the
// right place, once.
func TestRetainingIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	calls := &providertest.Calls{}
	w.p.Through(t, calls)
	killed := func(n int, in *provider.Instance, step func() (provider.Status, error)) bool {
		t.Helper()
		struck, disarm := calls.Arm(n, providertest.Killed)
		_, err := step()
		disarm()
		if err == nil && !struck() {
			return false
		}
		w.drive(in, step)
		return true
	}
	for n, struck := 1, true; struck; n++ {
		id := fmt.Sprintf("i%d", n)
		w.provision(id)
		a := w.bind(id, "b of "+id, "") // which is left
		must(t, w.login(a), "SET", a.prefix+"key", id)
		h := provider.Holding{Tags: provider.TagsOf(w.keeping(id)), Target: w.target, RetainedUntil: w.clock.Now().Add(time.Hour)}
		back := w.back(h, "back"+id)
		its := h
		its.Tags = provider.TagsOf(back)
		put := func(err error) (provider.Status, error) { return provider.Status{Done: true}, err }
		struck = false
		for _, step := range []func() (provider.Status, error){
			func() (provider.Status, error) { return put(w.p.Quarantine(t.Context(), h)) },
			func() (provider.Status, error) { return put(w.p.Adopt(t.Context(), its, h.Tags)) },
			func() (provider.Status, error) { return put(w.p.Release(t.Context(), its)) },
			func() (provider.Status, error) { return w.p.Provision(t.Context(), back) },
		} {
			if killed(n, &back, step) {
				struck = true
			}
			if _, err := w.server.Login(t, a.user, a.password); err == nil {
				t.Fatalf("after command %d it opens to a binding of the deleted instance", n)
			}
		}
		again := w.bound(back, "b of back"+id)
		if got := must(t, w.login(again), "GET", again.prefix+"key"); got != id {
			t.Fatalf("after command %d the key is %v", n, got)
		}
		if killed(n, &back, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), back) }) {
			struck = true
		}
		if held, keys := w.held(), must(t, w.server.Root(t), "DBSIZE"); len(held) != 0 || keys != int64(0) {
			t.Fatalf("removed after command %d, it lists %+v, and %v keys are left", n, held, keys)
		}
		if n > providertest.MaxSteps {
			t.Fatal("it never ends")
		}
	}
}

// Keys that were given back are an instance's, also where a label of who had them comes late: they neither go with that one,
// nor does it open them; and they go with whoever is the last.
func TestLateLabelsLeaveWhatWasGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	root := w.server.Root(t)
	w.provision("i")
	a := w.bind("i", "b", "")
	must(t, w.login(a), "SET", a.prefix+"key", "value")
	old := w.keeping("i")
	held := w.retain(old)
	for what, step := range map[string]func() (provider.Status, error){
		"Provision": func() (provider.Status, error) { return w.p.Provision(t.Context(), old) },
		"Update":    func() (provider.Status, error) { return w.p.Update(t.Context(), old) },
		"Bind":      func() (provider.Status, error) { return w.p.Bind(t.Context(), w.binding("i", "b")) },
	} {
		if _, err := step(); !isFailure(err) {
			t.Errorf("%s of what is retained: %v, want a failure", what, err)
		}
	}
	back := w.undelete(held, "back")
	tags := provider.TagsOf(old)
	late := func() {
		must(t, root, "ACL", "SETUSER", valkey.Name(tags), "reset", "off", valkey.LabelRule(tags))
	}
	late()
	if _, err := w.p.Provision(t.Context(), old); !isFailure(err) {
		t.Errorf("a provision beside the owner's label: %v", err)
	}
	w.drive(&old, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), old) })
	if got := must(t, root, "DBSIZE"); got != int64(1) {
		t.Fatal("the keys are gone with a label that came late")
	}
	late()
	w.drive(&back, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), back) })
	if held := w.held(); len(held) != 1 || held[0].Tags != tags {
		t.Fatalf("it lists %+v, want the label that came late", held)
	}
	w.drive(&old, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), old) })
	if got, all := must(t, root, "DBSIZE"), must(t, root, "ACL", "USERS").([]any); got != int64(0) || len(all) != 4 {
		t.Errorf("in the end %v keys are left, and the users %v", got, all)
	}
}

func isFailure(err error) bool {
	_, is := errors.AsType[*provider.Failure](err)
	return is
}

// An undeleted instance is known by the keys of its origin, too, which it keeps.
func TestNamesOfAnUndeletedInstance(t *testing.T) {
	made := provider.Tags{Broker: "b", Platform: "p", Instance: "i", Incarnation: "1"}
	back := made
	back.Instance, back.Incarnation = "j", "2"
	back.Origin = provider.Origin{Instance: made.Instance, Incarnation: made.Incarnation}
	keys := valkey.Names(made)
	if len(keys) != 1 {
		t.Errorf("an instance has the names %q", keys)
	}
	if names := valkey.Names(back); len(names) != 2 || names[1] != keys[0] || names[0] == keys[0] {
		t.Errorf("what was undeleted has the names %q, and its keys are those of %q", names, keys)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings map[string]any
		want     string // the snapshot; empty for refused
	}{
		"None":   {nil, "null"},
		"Drop":   {map[string]any{"on_delete": "drop"}, "null"},
		"Retain": {map[string]any{"retain_days": 7}, `{"retain_days":7}`},
		"Both":   {map[string]any{"on_delete": "drop", "retain_days": 7}, ""},
		"Limit":  {map[string]any{"connection_limit": 7}, ""},
	} {
		got, err := valkey.Check(check.Plan{Settings: tc.settings})
		said, _ := json.Marshal(got)
		if err != nil {
			said = nil
		}
		if string(said) != tc.want {
			t.Errorf("%s: %s %v, want %q", name, got, err, tc.want)
		}
	}
}
