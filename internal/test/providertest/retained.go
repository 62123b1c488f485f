package providertest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider"
)

// keeping is the request for an instance of the plan that retains what is deleted.
func (s *scene) keeping(r request) request {
	s.t.Helper()
	if s.Retaining == nil {
		s.t.Skip("this provider retains nothing")
	}
	r.instance.Settings, r.instance.Snapshot = s.Retaining()
	return r
}

// retain deletes an instance that is to be retained, and gives what the inventory
// then lists of it. Repeating the step changes nothing.
func (s *scene) retain(in request) provider.Holding {
	s.t.Helper()
	d := s.keeping(s.deprovision(in))
	first := s.must(d).Retained
	if first == nil || first.Name == "" || !first.Until.After(s.Clock.Now()) {
		s.t.Fatalf("a plan that retains has kept %+v", first)
	}
	for range 3 {
		s.Clock.Advance(time.Minute)
		if again := s.must(d).Retained; again == nil || !cmp.Equal(again, first) {
			s.t.Errorf("retained as %+v, and repeated as %+v", first, again)
		}
	}
	for _, h := range s.held(in.tags()) {
		if h.Name == first.Name && h.Tags == in.tags() && h.RetainedUntil.Equal(first.Until) {
			return h
		}
	}
	s.t.Fatalf("retained as %+v, and the inventory holds %+v", first, s.held(in.tags()))
	panic("unreachable")
}

// removed has what is retained be removed, and reports whether that was done.
func (s *scene) removed(h provider.Holding) bool {
	s.t.Helper()
	_, f := Drive(s.t, s.Clock, bound(s.Provider.(provider.Retainer).RemoveRetained, h))
	return f == nil
}

// kept counts what is retained of lives.
func (s *scene) kept(lives ...request) (n int) {
	for _, life := range lives {
		for _, h := range s.held(life.tags()) {
			if !h.RetainedUntil.IsZero() {
				n++
			}
		}
	}
	return n
}

// What is deleted may be retained: under another name, opening to nobody, one for each
// life of an id, and removed alone.
func testRetains(t *testing.T, open stage) {
	s := open(t)
	first := s.keeping(s.provision(platform, "instance-1"))
	s.must(first)
	b := s.bind(first, "binding-1")
	grant := s.must(b).Grant
	held := s.retain(first) // with a binding that was left
	if left := s.Look(t, first.tags()); left != "" {
		t.Errorf("retained, and left under its name: %s", left)
	}
	if s.Opens(t, grant) {
		t.Error("what is retained opens to a binding")
	}
	u := s.unbind(b)
	s.must(u)
	s.none(u)
	second := s.keeping(s.provision(platform, "instance-1"))
	s.must(second)
	if s.Look(t, second.tags()) == "" {
		t.Error("nothing has the id again")
	}
	again := s.retain(second)
	if again.Name == held.Name || s.kept(first, second) != 2 {
		t.Errorf("of two lives, the inventory holds %+v", s.held(first.tags()))
	}
	third := s.keeping(s.provision(platform, "instance-1"))
	s.must(third)
	wrong := again
	wrong.Name = held.Name
	if s.removed(wrong); s.kept(first, second) != 2 {
		t.Error("what another life has left was removed")
	}
	for range 2 {
		if !s.removed(held) || s.kept(first, second) != 1 || s.Look(t, third.tags()) == "" {
			t.Errorf("one was removed, and the inventory holds %+v", s.held(first.tags()))
		}
	}
	if !s.removed(again) || s.kept(first, second) != 0 {
		t.Errorf("both were removed, and the inventory holds %+v", s.held(first.tags()))
	}
	d := s.keeping(s.deprovision(third))
	d.instance.Unfinished = true
	if st := s.must(d); st.Retained != nil {
		t.Errorf("what never was ready is retained: %+v", st.Retained)
	}
	s.none(d)
	s.finish()
}

// What is retained becomes another instance, once; if that never is ready, it is
// given back as it was. Nothing is made in its place.
func testUndeletes(t *testing.T, open stage) {
	s := open(t)
	old := s.keeping(s.provision(platform, "instance-1"))
	s.must(old)
	held := s.retain(old)
	source := &provider.Source{Platform: platform, ID: old.instance.ID, Incarnation: old.instance.Incarnation, Snapshot: old.instance.Snapshot,
		Target: held.Target, State: held.State, Retained: &provider.Retained{Name: held.Name, Until: held.RetainedUntil}}
	of := func(id string) request {
		r := s.keeping(s.provision(platform, id))
		r.instance.Source = source
		return r
	}
	for name, reach := range map[string]func(request){
		"never begun": func(request) {}, "begun": s.once, "ready": func(r request) { s.must(r) },
	} {
		half := of("half")
		reach(half)
		back := s.keeping(s.deprovision(half))
		back.instance.Unfinished = true
		for range 2 {
			s.must(back)
			s.none(back)
			if now := s.held(old.tags()); len(now) != 1 || now[0].Name != held.Name || now[0].Tags != held.Tags ||
				!now[0].RetainedUntil.Equal(held.RetainedUntil) {
				t.Fatalf("%s, and given back: the inventory holds %+v, want %+v", name, now, held)
			}
		}
	}
	made := of("made")
	for range 2 {
		s.must(made)
		s.one(made)
		if now := s.held(old.tags()); len(now) != 0 {
			t.Errorf("it was given back, and is still there: %+v", now)
		}
	}
	late := of("late")
	s.mustFail(late)
	d := s.keeping(s.deprovision(late))
	d.instance.Unfinished = true
	s.must(d)
	s.none(d)
	s.one(made)
	made.instance.Source = nil
	if !s.Opens(t, s.must(s.bind(made, "binding-1")).Grant) {
		t.Error("given back, and it does not open")
	}
	if !s.removed(held) {
		t.Error("the removal of what was given back is not done")
	}
	s.one(made)
	s.finish()
}
