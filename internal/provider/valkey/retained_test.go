package valkey_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/valkey"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// keeping is the instance of a plan that retains what is deleted for a week.
func (w *world) keeping(id string) provider.Instance {
	w.t.Helper()
	snapshot, err := valkey.Check(provider.Checked{Settings: map[string]any{"retain_days": 7}})
	if err != nil {
		w.t.Fatal(err)
	}
	in := w.instance(id)
	in.Snapshot = snapshot
	return in
}

// retain deletes an instance, and gives what the inventory then lists of it.
func (w *world) retain(in provider.Instance) provider.Holding {
	w.t.Helper()
	st := w.drive(&in, func() (provider.Status, error) { return w.p.Deprovision(w.t.Context(), in) })
	for _, h := range w.held() {
		if st.Retained != nil && h.Name == st.Retained.Name && h.RetainedUntil.Equal(st.Retained.Until) && h.Tags == provider.TagsOf(in) {
			return h
		}
	}
	w.t.Fatalf("retained as %+v, and it lists %+v", st.Retained, w.held())
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

// from has an instance be made of what is retained.
func from(in provider.Instance, h provider.Holding) provider.Instance {
	in.Source = &provider.Source{Platform: h.Tags.Platform, ID: h.Tags.Instance, Incarnation: h.Tags.Incarnation, Target: h.Target,
		Retained: &provider.Retained{Name: h.Name, Until: h.RetainedUntil}}
	return in
}

// removed removes what is retained.
func (w *world) removed(h provider.Holding) {
	w.t.Helper()
	in := w.instance("of a removal")
	w.drive(&in, func() (provider.Status, error) {
		h.State = in.State
		return w.p.RemoveRetained(w.t.Context(), h)
	})
}

// What is deleted opens to nobody, stays when other lives of its id end, is given back
// with all keys, also twice, and goes with whoever has it in the end.
func TestDeletedKeysAreRetained(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	root := w.server.Root(t)
	w.provision("i")
	a := w.bind("i", "b", "")
	open := w.login(a)
	must(t, open, "SET", a.prefix+"key", "value")
	held := w.retain(w.keeping("i")) // with a binding that was left
	if _, err := open.Do("GET", a.prefix+"key"); err == nil {
		t.Error("a session outlives the deletion")
	}
	if _, err := w.server.Login(t, a.user, a.password); err == nil {
		t.Error("what is retained opens to a binding")
	}

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
	anew.Unfinished = true
	w.drive(&anew, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), anew) })

	for _, id := range []string{"back", "further", "last"} { // given back, and retained again
		back := from(w.keeping(id), held)
		w.drive(&back, func() (provider.Status, error) { return w.p.Provision(t.Context(), back) })
		again := w.bind(id, "b of "+id, "")
		if got := must(t, w.login(again), "GET", again.prefix+"key"); got != "value" || again.prefix != a.prefix {
			t.Fatalf("given back as %s, the key is %v", id, got)
		}
		late := w.keeping("i") // a deletion that comes late, of the life that had them
		late.Snapshot = nil
		w.drive(&late, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), late) })
		held = w.retain(w.keeping(id))
	}
	if got := must(t, root, "DBSIZE"); got != int64(1) {
		t.Fatalf("%v keys are left", got)
	}
	for range 2 {
		w.removed(held)
	}
	got, all := must(t, root, "DBSIZE"), must(t, root, "ACL", "USERS").([]any)
	if got != int64(0) || len(all) != 4 { // those that it began with
		t.Errorf("in the end %v keys are left, and the users %v", got, all)
	}
}

// Whatever command of a deletion, of a giving back or of a removal is the last of its
// process: the keys are where they are to be in the end, once.
func TestRetainingIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	calls := &providertest.Calls{}
	w.p.Through(t, calls)
	killed := func(n int, in *provider.Instance, step func() (provider.Status, error)) (provider.Status, bool) {
		t.Helper()
		struck, disarm := calls.Arm(n, providertest.Killed)
		st, err := step()
		disarm()
		if err == nil && st.Done && !struck() {
			return st, false
		}
		return w.drive(in, step), true
	}
	for n, struck := 1, true; struck; n++ {
		id := fmt.Sprintf("i%d", n)
		w.provision(id)
		a := w.bind(id, "b of "+id, "")
		must(t, w.login(a), "SET", a.prefix+"key", id)
		w.unbind(id, "b of "+id)
		in := w.keeping(id)
		var any [4]bool
		var st provider.Status
		st, any[0] = killed(n, &in, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), in) })
		held := w.held()
		if len(held) != 1 || st.Retained == nil || held[0].Name != st.Retained.Name {
			t.Fatalf("after command %d: retained as %+v, it lists %+v", n, st.Retained, held)
		}
		half := from(w.keeping("half"+id), held[0])
		_, any[1] = killed(n, &half, func() (provider.Status, error) { return w.p.Provision(t.Context(), half) })
		half.Unfinished = true
		_, any[2] = killed(n, &half, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), half) })
		if diff := cmp.Diff(held, w.held()); diff != "" {
			t.Fatalf("given back after command %d (-before +after):\n%s", n, diff)
		}
		back := from(w.keeping("back"+id), held[0])
		w.drive(&back, func() (provider.Status, error) { return w.p.Provision(t.Context(), back) })
		again := w.bind("back"+id, "b of back"+id, "")
		if got := must(t, w.login(again), "GET", again.prefix+"key"); got != id {
			t.Fatalf("after command %d the key is %v", n, got)
		}
		final := w.retain(w.keeping("back" + id))
		last := w.instance("of a removal")
		_, any[3] = killed(n, &last, func() (provider.Status, error) {
			final.State = last.State
			return w.p.RemoveRetained(t.Context(), final)
		})
		if held, keys := w.held(), must(t, w.server.Root(t), "DBSIZE"); len(held) != 0 || keys != int64(0) {
			t.Fatalf("removed after command %d, it lists %+v, and %v keys are left", n, held, keys)
		}
		if struck = any != [4]bool{}; n > providertest.MaxSteps {
			t.Fatal("it never ends")
		}
	}
}

// What is retained, or was taken by half by an instance that nobody knows any more, is
// not removed with that, nor opened by a call that comes late.
func TestLateCallsLeaveWhatIsRetained(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.provision("i")
	a := w.bind("i", "b", "")
	must(t, w.login(a), "SET", a.prefix+"key", "value")
	held := w.retain(w.keeping("i"))
	in, wrong, other := w.instance("i"), held, held
	wrong.Tags.Incarnation, other.Tags.Instance = "another", "another"
	for what, step := range map[string]func(context.Context) (provider.Status, error){
		"Provision":            func(ctx context.Context) (provider.Status, error) { return w.p.Provision(ctx, in) },
		"Update":               func(ctx context.Context) (provider.Status, error) { return w.p.Update(ctx, in) },
		"Bind":                 func(ctx context.Context) (provider.Status, error) { return w.p.Bind(ctx, w.binding("i", "b")) },
		"RemovalOfAnotherLife": func(ctx context.Context) (provider.Status, error) { return w.p.RemoveRetained(ctx, wrong) },
		"RemovalOfAnother":     func(ctx context.Context) (provider.Status, error) { return w.p.RemoveRetained(ctx, other) },
	} {
		if _, err := step(t.Context()); !isFailure(err) {
			t.Errorf("%s: %v, want a failure", what, err)
		}
	}
	root := w.server.Root(t)
	must(t, root, "ACL", "SETUSER", valkey.Name(provider.TagsOf(in)), "reset", "off", valkey.LabelRule(provider.TagsOf(in))) // it lands late
	orphan := in
	orphan.PlanID = ""
	w.drive(&orphan, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), orphan) })

	calls := &providertest.Calls{}
	w.p.Through(t, calls)
	half := from(w.keeping("half"), held)
	for n := 1; ; n++ { // until it was taken by half
		_, disarm := calls.Arm(n, providertest.Killed)
		_, err := w.p.Provision(t.Context(), half)
		disarm()
		if err == nil {
			t.Fatal("it was never taken by half")
		}
		if users := must(t, root, "ACL", "GETUSER", valkey.Name(provider.TagsOf(half))); users != nil {
			break
		}
	}
	half.Source, half.PlanID, half.Snapshot = nil, "", nil
	w.drive(&half, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), half) })
	if diff := cmp.Diff([]provider.Holding{held}, w.held()); diff != "" || must(t, root, "DBSIZE") != int64(1) {
		t.Errorf("what is retained (-before +after):\n%s", diff)
	}
}

// late has the server get a label of another life of the id, of a caller that died long ago.
func (w *world) late(in provider.Instance) {
	w.t.Helper()
	in.Incarnation = "long over"
	tags := provider.TagsOf(in)
	must(w.t, w.server.Root(w.t), "ACL", "SETUSER", valkey.Name(tags), "reset", "off", valkey.LabelRule(tags))
}

// Keys that were given back are an instance's, also where something of another life of its
// id comes late: they neither go with that, nor when they are retained again beside it.
func TestLateLivesLeaveWhatWasGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	root := w.server.Root(t)
	w.provision("i")
	a := w.bind("i", "b", "")
	must(t, w.login(a), "SET", a.prefix+"key", "value")
	back := from(w.keeping("back"), w.retain(w.keeping("i")))
	for range 2 {
		w.drive(&back, func() (provider.Status, error) { return w.p.Provision(t.Context(), back) })
		w.late(back)
	}
	late := must(t, root, "ACL", "GETUSER", valkey.Name(provider.TagsOf(back)))
	if late == nil || must(t, root, "DBSIZE") != int64(1) {
		t.Fatal("the keys are gone with a label that came late")
	}
	held := w.retain(w.keeping("back"))
	if must(t, root, "DBSIZE") != int64(1) {
		t.Error("the keys that were to be retained are gone")
	}
	must(t, root, "ACL", "SETUSER", valkey.Name(provider.TagsOf(back)), "reset", "off", labelOf(t, late)) // it lands late
	for _, incarnation := range []string{w.instance("back").Incarnation, "long over"} {
		orphan := w.instance("back")
		orphan.PlanID, orphan.Incarnation = "", incarnation
		w.drive(&orphan, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), orphan) })
	}
	if diff := cmp.Diff([]provider.Holding{held}, w.held()); diff != "" || must(t, root, "DBSIZE") != int64(1) {
		t.Errorf("what is retained (-before +after):\n%s", diff)
	}
}

// That keys are an instance's may be said by a call that comes when it was given up: they
// are had back all the same, and removed.
func TestGivenUpAndTakenLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	root := w.server.Root(t)
	w.provision("i")
	a := w.bind("i", "b", "")
	must(t, w.login(a), "SET", a.prefix+"key", "value")
	held := w.retain(w.keeping("i"))
	given := func(id string) provider.Instance {
		in := from(w.keeping(id), held)
		w.drive(&in, func() (provider.Status, error) { return w.p.Provision(t.Context(), in) })
		return in
	}
	giveUp := func(in provider.Instance) {
		late := must(t, root, "ACL", "GETUSER", held.Name)
		in.Unfinished = true
		w.drive(&in, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), in) })
		must(t, root, "ACL", "SETUSER", held.Name, "reset", "off", labelOf(t, late))
	}
	giveUp(given("one"))
	back := given("another")
	if again := w.bind("another", "b of it", ""); must(t, w.login(again), "GET", again.prefix+"key") != "value" {
		t.Error("what was given up is not had back")
	}
	giveUp(back)
	w.removed(held)
	if got, all := must(t, root, "DBSIZE"), must(t, root, "ACL", "USERS").([]any); got != int64(0) || len(all) != 4 {
		t.Errorf("in the end %v keys are left, and the users %v", got, all)
	}
}

// labelOf is the rule of a user's label.
func labelOf(t *testing.T, user any) string {
	t.Helper()
	for channel := range strings.FieldsSeq(strings.Trim(fmt.Sprint(user), "[]")) {
		if strings.HasPrefix(channel, "&longshore:") {
			return channel
		}
	}
	t.Fatalf("a user without a label: %v", user)
	return ""
}

func isFailure(err error) bool {
	_, is := errors.AsType[*provider.Failure](err)
	return is
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings map[string]any
		want     string // the snapshot; empty for refused
	}{
		"None":   {nil, "null"},
		"Drop":   {map[string]any{hosted.OnDelete: "drop"}, "null"},
		"Retain": {map[string]any{"retain_days": 7}, `{"retain_days":7}`},
		"Both":   {map[string]any{hosted.OnDelete: "drop", "retain_days": 7}, ""},
		"Limit":  {map[string]any{"connection_limit": 7}, ""},
	} {
		got, err := valkey.Check(provider.Checked{Settings: tc.settings})
		said, _ := json.Marshal(got)
		if err != nil {
			said = nil
		}
		if string(said) != tc.want {
			t.Errorf("%s: %s %v, want %q", name, got, err, tc.want)
		}
	}
}
