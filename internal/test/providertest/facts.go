package providertest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider"
)

// describes asks for facts as a worker does.
func (s *scene) describes(r request) (facts provider.Facts, err error) {
	s.t.Helper()
	describer, can := s.Provider.(provider.Describer)
	if !can {
		s.t.Skip("this provider tells no facts")
	}
	in := s.watch.records.instance(r.instance)
	in.Parameters, in.Operation = nil, provider.Operation{}
	before, input := s.Look(s.t, r.tags()), snapshot(in)
	_, err = watchCall(s.watch, proven(s.Provider, in, func(ctx context.Context, in provider.Instance) (provider.Status, error) {
		facts, err = describer.Describe(ctx, in)
		return provider.Status{}, err
	}), s.t.Context(), in, "describe")
	s.watch.safe("a fact", snapshot(facts))
	if diff := cmp.Diff(before, s.Look(s.t, r.tags())); diff != "" || snapshot(in) != input {
		s.t.Errorf("describing changed the thing, or its input (-before +after):\n%s", diff)
	}
	return facts, err
}

// Facts are of an instance that is there and ours, and of no other one.
func testDescribes(t *testing.T, open stage) {
	s := open(t)
	in, other := s.provision(platform, "instance-1"), s.provision("platform-2", "instance-1")
	s.must(other)
	if _, err := s.describes(in); err == nil {
		t.Error("an instance that was never made is described")
	}
	s.must(in)
	s.must(s.bind(in, "binding-1"))
	facts, err := s.describes(in)
	if err != nil || facts == (provider.Facts{}) {
		t.Errorf("a ready instance is described as %+v, error %v", facts, err)
	}
	for what, amount := range map[string]*int64{"size": facts.Size, "connections": facts.Connections} {
		if amount != nil && *amount < 0 {
			t.Errorf("its %s is %d", what, *amount)
		}
	}
	if facts.SizeLimit < 0 || facts.ConnectionLimit < 0 {
		t.Errorf("a limit is negative: %+v", facts)
	}
	s.must(s.deprovision(in))
	if _, err := s.describes(in); err == nil {
		t.Error("an instance that is gone is described")
	}
	foreign := s.provision(platform, "instance-2")
	s.Plant(t, foreign.tags(), other.tags())
	s.planted = append(s.planted, other.tags())
	facts, err = s.describes(foreign)
	if err == nil || facts != (provider.Facts{}) {
		t.Errorf("what is another one's is described: %+v, error %v", facts, err)
	}
	s.watch.records.copied(other.tags(), foreign.tags()) // now its target is known
	if facts, err := s.describes(foreign); err == nil {
		t.Errorf("what is another one's, at a known target, is described: %+v", facts)
	}
	s.finish()
}
