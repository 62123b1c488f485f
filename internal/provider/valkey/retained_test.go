package valkey_test

import (
	"encoding/json"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/valkey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// newKeeper is a world on a server of its own, whose plan retains what is deleted for a week.
func newKeeper(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, valkeytest.New(t))
	w.Plan = string(expect.Get(valkey.Check(check.Plan{Settings: map[string]any{"retain_days": 7}}))(t))
	return w
}

// empty requires that no keys are left on the server, and no users but those that it began with.
func (w *world) empty() {
	w.t.Helper()
	root := w.server.Root(w.t)
	expect.Same(w.t, "keys that are left", any(int64(0)), must(w.t, root, "DBSIZE"))
	if all := must(w.t, root, "ACL", "USERS").([]any); len(all) != 4 {
		w.t.Errorf("in the end the users are %v", all)
	}
}

// A retained instance opens to nobody, stays when other lives of its id end, is given back with all keys, also
// twice, and is removed with its last owner.
func TestDeletedKeysAreRetained(t *testing.T) {
	t.Parallel()
	w := newKeeper(t)
	in := w.Provisioned("i")
	a := w.bound(in, "b", "")
	open := w.login(a)
	must(t, open, "SET", a.prefix+"key", "value")
	held := w.Retained(in) // with a binding that was left
	shut := func(when string) {
		t.Helper()
		if _, err := open.Do("GET", a.prefix+"key"); err == nil {
			t.Errorf("%s: a session outlives the deletion", when)
		}
		w.shut(when, a)
	}
	shut("retained")

	anew := w.Instance("i")
	anew.Incarnation = "its next life"
	w.Provision(anew)
	next := w.bound(anew, "b", "")
	if got := refusedFor(w.login(next), "GET", a.prefix+"key"); got != "NOPERM" || next.prefix == a.prefix {
		t.Errorf("the next life of the id reaches what is retained: answered %q", got)
	}
	w.Deprovision(anew)

	last := in
	for _, id := range []string{"back", "further", "last"} { // given back, and retained again
		last = w.Undeleted(last, held, id)
		shut("given back as " + id)
		again := w.bound(last, "b of "+id, "")
		if got := must(t, w.login(again), "GET", again.prefix+"key"); got != "value" || again.prefix != a.prefix {
			t.Fatalf("given back as %s, the key is %v", id, got)
		}
		w.Deprovision(in) // which comes late, of the life that had them
		held = w.Retained(last)
	}
	expect.Same(t, "keys that are left", any(int64(1)), must(t, w.server.Root(t), "DBSIZE"))
	for range 2 {
		w.Deprovision(last)
	}
	w.empty()
}

// Keys that were given back are an instance's, also where a label of who had them comes late: they neither go with that one,
// nor does it open them; and they go with whoever is the last.
func TestLateLabelsLeaveWhatWasGivenBack(t *testing.T) {
	t.Parallel()
	w := newKeeper(t)
	root := w.server.Root(t)
	old := w.Provisioned("i")
	a := w.bound(old, "b", "")
	must(t, w.login(a), "SET", a.prefix+"key", "value")
	back := w.Undeleted(old, w.Retained(old), "back")
	tags := provider.TagsOf(old)
	late := func() { must(t, root, "ACL", "SETUSER", valkey.Name(tags), "reset", "off", valkey.LabelRule(tags)) }
	late()
	w.Fails(w.P.Provision, old)
	w.Deprovision(old)
	expect.Same(t, "keys, after the label that came late is gone", any(int64(1)), must(t, root, "DBSIZE"))
	late()
	w.Deprovision(back)
	if held := w.Held(); len(held) != 1 || held[0].Tags != tags {
		t.Fatalf("it lists %+v, want the label that came late", held)
	}
	w.Deprovision(old)
	w.empty()
}

// An undeleted instance is known by the keys of its origin, too, which it keeps.
func TestNamesOfAnUndeletedInstance(t *testing.T) {
	made := provider.Tags{Broker: "b", Platform: "p", Instance: "i", Incarnation: "1"}
	back := made
	back.Instance, back.Incarnation = "j", "2"
	back.Origin = provider.Origin{Instance: made.Instance, Incarnation: made.Incarnation}
	keys := valkey.Names(made)
	if names := valkey.Names(back); len(keys) != 1 || len(names) != 2 || names[1] != keys[0] || names[0] == keys[0] {
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
		"Keep":   {map[string]any{"on_delete": "keep"}, ""},
		"NoDays": {map[string]any{"retain_days": 0}, ""},
		"Many":   {map[string]any{"retain_days": 3651}, ""},
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
