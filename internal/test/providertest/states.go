package providertest

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An expectation is how a verb ends.
type expectation int

const (
	// settles: well or badly, as the provider likes; but it ends.
	settles expectation = iota
	ends
	fails
)

func (s *scene) expect(r request, want expectation) {
	s.t.Helper()
	_, f := s.run(r)
	switch {
	case want == ends && f != nil:
		s.t.Errorf("%s failed: %s", r.kind(), f.Message)
	case want == fails && f == nil:
		s.t.Errorf("%s succeeded, want a failure", r.kind())
	}
}

// testInstanceStates tries every verb in every state of an instance.
func testInstanceStates(t *testing.T, open stage) {
	// Each state is reached from the provision of the instance.
	states := map[string]struct {
		reach func(s *scene, in request) request // the provision as it was made
		want  map[string]expectation             // of the verbs that differ from state to state
	}{
		"Absent": {
			reach: func(s *scene, in request) request { return in },
			want:  map[string]expectation{"ProvisionAgain": ends, "Update": fails, "Bind": fails},
		},
		"Provisioning": {
			reach: func(s *scene, in request) request { s.once(in); return in },
			want:  map[string]expectation{"ProvisionAgain": ends},
		},
		"Ready": {
			reach: func(s *scene, in request) request { s.must(in); return in },
			want:  map[string]expectation{"ProvisionAgain": ends, "Update": ends, "Bind": ends},
		},
		"ProvisionFailed": {
			reach: func(s *scene, in request) request { in = s.failing(in); s.mustFail(in); return in },
			want:  map[string]expectation{"ProvisionAgain": fails},
		},
		"Updating": {
			reach: func(s *scene, in request) request { s.must(in); s.once(s.update(in)); return in },
			want:  map[string]expectation{"ProvisionAgain": ends},
		},
		"UpdateFailed": {
			reach: func(s *scene, in request) request {
				s.must(in)
				s.mustFail(s.failing(s.update(in)))
				return in
			},
			want: map[string]expectation{"ProvisionAgain": ends, "Update": ends, "Bind": ends},
		},
		"Deprovisioning": {
			reach: func(s *scene, in request) request { s.must(in); s.once(s.deprovision(in)); return in },
		},
		"DeprovisionFailed": {
			reach: func(s *scene, in request) request {
				s.must(in)
				s.mustFail(s.failing(s.deprovision(in)))
				return in
			},
		},
		"Deleted": {
			reach: func(s *scene, in request) request { s.must(in); s.must(s.deprovision(in)); return in },
			want:  map[string]expectation{"Update": fails, "Bind": fails},
		},
	}
	verbs := map[string]func(s *scene, in request, want expectation){
		"ProvisionAgain": func(s *scene, in request, want expectation) { s.expect(in, want) },
		"ProvisionAnew": func(s *scene, in request, _ expectation) {
			anew := s.provision(platform, in.instance.ID)
			s.expect(anew, ends)
			s.one(anew)
		},
		"Update": func(s *scene, in request, want expectation) { s.expect(s.update(in), want) },
		"UpdateOfAnother": func(s *scene, in request, _ expectation) {
			look := s.Look(s.t, in.tags())
			s.expect(s.ofAnother(s.update(in)), fails)
			if diff := cmp.Diff(look, s.Look(s.t, in.tags())); diff != "" {
				s.t.Errorf("an update of another incarnation changed the instance (-before +after):\n%s", diff)
			}
		},
		"Deprovision": func(s *scene, in request, _ expectation) {
			d := s.deprovision(in)
			s.expect(d, ends)
			s.none(d)
		},
		"Bind": func(s *scene, in request, want expectation) {
			b := s.bind(in, "binding-1")
			s.expect(b, want)
			switch want {
			case ends:
				s.one(b)
			case fails:
				s.none(b)
			}
		},
		"Unbind": func(s *scene, in request, _ expectation) {
			u := s.unbind(s.bind(in, "binding-1"))
			s.expect(u, ends)
			s.none(u)
		},
	}
	for state, at := range states {
		for verb, try := range verbs {
			t.Run(state+"/"+verb, func(t *testing.T) {
				s := open(t)
				in := at.reach(s, s.provision(platform, "instance-1"))
				s.findable(in)
				before := len(s.held(in.tags()))
				try(s, in, at.want[verb])
				s.findable(in)
				held := len(s.held(in.tags()))
				if held > 1 {
					t.Errorf("inventory holds %d of one instance", held)
				}
				if making := verb == "ProvisionAgain" || verb == "ProvisionAnew"; held > before && !making {
					t.Error("an instance was made by what is not a provision")
				}
				s.finish()
			})
		}
	}
}

// testBindingStates tries every verb in every state of a binding.
func testBindingStates(t *testing.T, open stage) {
	states := map[string]struct {
		reach func(s *scene, b request) request
		again expectation // of the same bind, repeated
	}{
		"Absent":     {func(s *scene, b request) request { return b }, ends},
		"Binding":    {func(s *scene, b request) request { s.once(b); return b }, ends},
		"Bound":      {func(s *scene, b request) request { s.must(b); return b }, ends},
		"BindFailed": {func(s *scene, b request) request { b = s.failing(b); s.mustFail(b); return b }, fails},
		"Unbinding":  {func(s *scene, b request) request { s.must(b); s.once(s.unbind(b)); return b }, settles},
		"UnbindFailed": {func(s *scene, b request) request {
			s.must(b)
			s.mustFail(s.failing(s.unbind(b)))
			return b
		}, settles},
		"Unbound": {func(s *scene, b request) request { s.must(b); s.must(s.unbind(b)); return b }, settles},
	}
	verbs := map[string]func(s *scene, b request, again expectation){
		"BindAgain": func(s *scene, b request, again expectation) { s.expect(b, again) },
		"BindAnew": func(s *scene, b request, _ expectation) {
			anew := s.bind(request{instance: b.instance}, b.binding.ID)
			if !s.Opens(s.t, s.must(anew).Grant) {
				s.t.Error("bound anew, but the credentials are not accepted")
			}
			s.one(anew)
		},
		"Unbind": func(s *scene, b request, _ expectation) {
			u := s.unbind(b)
			s.expect(u, ends)
			s.none(u)
		},
		"UnbindOfAnother": func(s *scene, b request, _ expectation) {
			look := s.Look(s.t, b.tags())
			s.expect(s.ofAnother(s.unbind(b)), ends)
			if diff := cmp.Diff(look, s.Look(s.t, b.tags())); diff != "" {
				s.t.Errorf("an unbind of another incarnation changed the binding (-before +after):\n%s", diff)
			}
		},
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		for _, verb := range slices.Sorted(maps.Keys(verbs)) {
			t.Run(state+"/"+verb, func(t *testing.T) {
				s := open(t)
				in := s.provision(platform, "instance-1")
				s.must(in)
				other := s.bind(in, "binding-other")
				s.must(other)
				b := states[state].reach(s, s.bind(in, "binding-1"))
				s.findable(b)
				verbs[verb](s, b, states[state].again)
				s.findable(b)
				if held := s.held(b.tags()); len(held) > 1 {
					t.Errorf("inventory holds %d of one binding", len(held))
				}
				s.one(in)
				s.one(other)
				s.finish()
			})
		}
	}
}
