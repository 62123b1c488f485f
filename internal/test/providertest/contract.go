package providertest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/longshore/longshore/internal/base/provider"
)

// Two brokers in one account use the same ids: the default platform's, say.
// Neither lists or touches what the other has made.
func testBrokers(t *testing.T, open stage) {
	s := open(t)
	o := s.another()
	mine, theirs := s.provision(platform, "instance-1"), o.provision(platform, "instance-1")
	theirs.instance.Incarnation = mine.instance.Incarnation // nothing but the broker differs
	myBinding, theirBinding := s.bind(mine, "binding-1"), o.bind(theirs, "binding-1")
	theirBinding.binding.Incarnation = myBinding.binding.Incarnation
	s.must(mine)
	o.must(theirs)
	myGrant, theirGrant := s.must(myBinding).Grant, o.must(theirBinding).Grant
	look := func() []string { return []string{o.Look(t, theirs.tags()), o.Look(t, theirBinding.tags())} }
	before := look()
	s.must(s.update(mine))
	for _, c := range []struct {
		s    *scene
		mine []request
	}{{s, []request{mine, myBinding}}, {o, []request{theirs, theirBinding}}} {
		if held := c.s.list(); len(held) != len(c.mine) {
			t.Errorf("broker %s lists %+v, want its own two things", c.s.Broker, held)
		}
		for _, r := range c.mine {
			c.s.one(r)
		}
	}
	if cmp.Equal(myGrant.Credentials, theirGrant.Credentials) {
		t.Error("two brokers got the same credentials")
	}
	for _, r := range []request{s.unbind(myBinding), s.deprovision(mine)} {
		s.must(r)
		s.none(r)
	}
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Errorf("one broker changed what the other has made (-before +after):\n%s", diff)
	}
	if s.Opens(t, myGrant) || !s.Opens(t, theirGrant) {
		t.Error("after one broker's deletion: want its credentials refused, and the other's accepted")
	}
	s.finish()
	o.one(theirs)
	o.one(theirBinding)
	o.finish()
}

// At another place under the target's name, everything looks absent. That is
// never believed: each step meets a passing fault until the way is right again.
func testWrongTarget(t *testing.T, open stage) {
	s := open(t)
	if s.Elsewhere == nil {
		t.Skip("this provider makes all things in one place")
	}
	in := s.provision(platform, "instance-1")
	b := s.bind(in, "binding-1")
	s.must(in)
	grant := s.must(b).Grant
	p, inventory := s.Elsewhere(t)
	elsewhere := s.watch.over(p)
	look := s.Look(t, in.tags()) + s.Look(t, b.tags())
	half := s.provision(platform, "instance-2")
	s.once(half)
	requests := []request{in, half, s.update(in), b, s.bind(in, "binding-2"), s.unbind(b), s.deprovision(in), s.deprovision(half)}
	for _, r := range requests {
		for range 3 {
			st, err := r.step(elsewhere)(t.Context())
			if _, failed := errors.AsType[*provider.Failure](err); err == nil || failed {
				t.Errorf("%s at the wrong target: done %v, error %v; want a passing error", r.kind(), st.Done, err)
			}
			s.Clock.Advance(10 * time.Second)
		}
	}
	if held, next, err := inventory.List(t.Context(), ""); err == nil && (len(held) > 0 || next != "") {
		t.Errorf("another place lists %v", held)
	}
	if diff := cmp.Diff(look, s.Look(t, in.tags())+s.Look(t, b.tags())); diff != "" || !s.Opens(t, grant) {
		t.Errorf("steps at the wrong target changed something (-before +after):\n%s", diff)
	}
	for _, r := range []request{half, s.update(in), s.unbind(b), s.deprovision(in)} {
		s.must(r)
		s.stands(r)
	}
	s.finish()
}

// An orphan is deleted by its entry in the inventory alone, however far its operation came.
func testOrphans(t *testing.T, open stage) {
	for name, lose := range map[string]func(s *scene, in, b request){
		"Provisioning": func(s *scene, in, _ request) { s.once(in) },
		"Ready":        func(s *scene, in, _ request) { s.must(in) },
		"Binding":      func(s *scene, in, b request) { s.must(in); s.once(b) },
		"Bound":        func(s *scene, in, b request) { s.must(in); s.must(b) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			in := s.provision(platform, "instance-1")
			b := s.bind(in, "binding-1")
			lose(s, in, b)
			s.finish()
			for _, r := range []request{in, b} {
				s.none(r)
				if n := s.Secrets(t, r.tags()); n != 0 {
					t.Errorf("%d secrets are accepted of what is deleted", n)
				}
			}
		})
	}
}

// A thing in quarantine opens to nobody, is listed, and can be deleted.
func testQuarantine(t *testing.T, open stage) {
	s := open(t)
	q, ok := s.Inventory.(provider.Quarantiner)
	if !ok {
		t.Skip("this provider has no quarantine")
	}
	in := s.provision(platform, "instance-1")
	b, other := s.bind(in, "binding-1"), s.bind(in, "binding-2")
	s.must(in)
	grant, free := s.must(b).Grant, s.must(other).Grant
	held := append(s.held(b.tags()), s.held(in.tags())...)
	for range 2 {
		if err := q.Quarantine(t.Context(), held[0]); err != nil {
			t.Fatalf("quarantine of a binding: %v", err)
		}
	}
	if s.Opens(t, grant) || !s.Opens(t, free) {
		t.Error("in quarantine: want the credentials refused, and the others accepted")
	}
	for range 2 {
		if err := q.Release(t.Context(), held[0]); err != nil {
			t.Fatalf("release of a binding: %v", err)
		}
	}
	if !s.Opens(t, grant) || !s.Opens(t, free) {
		t.Error("released: want the same credentials accepted again, and the others still")
	}
	for _, h := range held {
		if err := q.Quarantine(t.Context(), h); err != nil {
			t.Fatalf("quarantine once more, and of an instance: %v", err)
		}
	}
	for _, r := range []request{b, in} {
		if held := s.held(r.tags()); len(held) != 1 {
			t.Errorf("in quarantine, the inventory holds %+v, want one", held)
		}
	}
	for _, r := range []request{s.unbind(b), s.unbind(other), s.deprovision(in)} {
		s.must(r)
		s.none(r)
	}
	for _, h := range held {
		if err := errors.Join(q.Quarantine(t.Context(), h), q.Release(t.Context(), h)); err != nil {
			t.Errorf("quarantine and release of what is gone: %v", err)
		}
	}
	s.finish()
}

// An instance made of another one ends well or badly; the other one stays as it
// is, and nothing is left.
func testRestores(t *testing.T, open stage) {
	s := open(t)
	source := s.provision(platform, "instance-1")
	s.must(source)
	look := s.Look(t, source.tags())
	r := s.restore(source, "instance-2")
	s.expect(r, settles)
	d := s.deprovision(r)
	s.must(d)
	s.none(d)
	if diff := cmp.Diff(look, s.Look(t, source.tags())); diff != "" {
		t.Errorf("a restore changed its source (-before +after):\n%s", diff)
	}
	s.one(source)
	s.finish()
}
