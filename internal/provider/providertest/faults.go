package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/longshore/longshore/internal/provider"
)

func testFailures(t *testing.T, open stage) {
	for _, c := range []struct {
		kind   provider.Kind
		reason string
		after  func(s *scene, in, b, failed request)
	}{
		{provider.KindProvision, "what is half made can be found and removed", func(s *scene, in, _, _ request) {
			d := s.deprovision(in)
			s.must(d)
			s.none(d)
		}},
		{provider.KindUpdate, "the instance is as before and works", func(s *scene, in, _, _ request) {
			look := s.Look(s.t, in.tags())
			s.must(s.bind(in, "binding-2"))
			s.must(s.update(in))
			if s.Look(s.t, in.tags()) == look {
				s.t.Error("updated, but nothing has changed")
			}
		}},
		{provider.KindDeprovision, "the instance can still be found, and deleted by a later operation", func(s *scene, in, _, _ request) {
			s.one(in)
			d := s.deprovision(in)
			s.must(d)
			s.none(d)
		}},
		{provider.KindBind, "the binding can be removed, and made anew", func(s *scene, in, b, _ request) {
			u := s.unbind(b)
			s.must(u)
			s.none(u)
			anew := s.bind(in, "binding-1")
			if !s.Opens(s.t, s.must(anew).Grant) {
				s.t.Error("bound anew, but the credentials are not accepted")
			}
			s.one(anew)
		}},
		{provider.KindUnbind, "the binding can still be found, and removed by a later operation", func(s *scene, in, b, _ request) {
			s.one(b)
			u := s.unbind(b)
			s.must(u)
			s.none(u)
		}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			s := open(t)
			in := s.provision(platform, "instance-1")
			b := s.bind(in, "binding-1")
			r := map[provider.Kind]func() request{
				provider.KindProvision:   func() request { in = s.failing(in); return in },
				provider.KindUpdate:      func() request { return s.failing(s.update(in)) },
				provider.KindDeprovision: func() request { return s.failing(s.deprovision(in)) },
				provider.KindBind:        func() request { b = s.failing(b); return b },
				provider.KindUnbind:      func() request { return s.failing(s.unbind(b)) },
			}[c.kind]
			if c.kind != provider.KindProvision {
				s.must(in)
			}
			if c.kind == provider.KindUnbind {
				s.must(b)
			}
			look := s.Look(t, in.tags())
			failed := r()
			first := s.mustFail(failed)
			for _, p := range []provider.Provider{s.p, s.p, s.reopened()} {
				_, err := failed.step(p)(t.Context())
				again, ok := errors.AsType[*provider.Failure](err)
				if !ok || again.Message != first.Message {
					t.Errorf("%s, repeated after it had failed: %v, want the failure %q", c.kind, err, first.Message)
				}
			}
			if c.kind != provider.KindProvision {
				if diff := cmp.Diff(look, s.Look(t, in.tags())); diff != "" {
					t.Errorf("the failed %s changed the instance (-before +after):\n%s", c.kind, diff)
				}
			}
			c.after(s, in, b, failed)
			if t.Failed() {
				t.Log("reason:", c.reason)
			}
			s.finish()
		})
	}
}

// Each step is made, its answer lost, and the step repeated, so that whatever
// a step has done, done or begun, it has to recognise.
func testLostAnswers(t *testing.T, open stage) {
	s := open(t)
	for _, r := range s.life("instance-1") {
		var lost provider.Status
		_, f := Drive(t, s.Clock, func(ctx context.Context) (provider.Status, error) {
			st, err := r.step(s.p)(ctx)
			if err == nil && st.Done {
				lost = st
			}
			return r.step(s.reopened())(ctx)
		})
		if f != nil {
			t.Fatalf("%s, with answers lost, failed: %s", r.kind(), f.Message)
		}
		sameGrant(t, lost.Grant, s.must(r).Grant)
		s.stands(r)
	}
	s.finish()
}

// Every single call by which a verb reaches its world answers with a fault
// once, having done its work or not.
func testFaults(t *testing.T, open stage) {
	verbs := map[string]func(s *scene, id string) (before []request, r request){
		"Provision": func(s *scene, id string) ([]request, request) { return nil, s.provision(platform, id) },
		"ProvisionAnew": func(s *scene, id string) ([]request, request) {
			return []request{s.provision(platform, id)}, s.provision(platform, id)
		},
		"Update": func(s *scene, id string) ([]request, request) {
			in := s.provision(platform, id)
			return []request{in}, s.update(in)
		},
		"Deprovision": func(s *scene, id string) ([]request, request) {
			in := s.provision(platform, id)
			return []request{in}, s.deprovision(in)
		},
		"Bind": func(s *scene, id string) ([]request, request) {
			in := s.provision(platform, id)
			return []request{in}, s.bind(in, id+"-binding")
		},
		"BindAnew": func(s *scene, id string) ([]request, request) {
			in := s.provision(platform, id)
			return []request{in, s.bind(in, id+"-binding")}, s.bind(in, id+"-binding")
		},
		"Unbind": func(s *scene, id string) ([]request, request) {
			in := s.provision(platform, id)
			b := s.bind(in, id+"-binding")
			return []request{in, b}, s.unbind(b)
		},
	}
	for name, verb := range verbs {
		for _, worked := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/Worked=%v", name, worked), func(t *testing.T) {
				s := open(t)
				for n := 1; ; n++ {
					before, r := verb(s, fmt.Sprintf("instance-%d", n))
					for _, b := range before {
						s.must(b)
					}
					disarm := s.Falter(n, worked)
					st := s.must(r)
					struck := disarm()
					sameGrant(t, st.Grant, s.must(r).Grant)
					s.stands(r)
					if !struck {
						break
					}
					if n > MaxSteps {
						t.Fatalf("%s still reaches its world after %d calls", r.kind(), n)
					}
				}
				s.finish()
			})
		}
	}
}

// Every step is made by a provider that knows nothing of the last one.
func testRestarts(t *testing.T, open stage) {
	s := open(t)
	for _, r := range s.life("instance-1") {
		_, f := Drive(t, s.Clock, func(ctx context.Context) (provider.Status, error) {
			return r.step(s.reopened())(ctx)
		})
		if f != nil {
			t.Fatalf("%s, with restarts, failed: %s", r.kind(), f.Message)
		}
		s.stands(r)
	}
	s.finish()
}

// An ending is how a caller's operation ended.
type ending struct {
	status  provider.Status
	failure *provider.Failure
}

// together drives the requests at once, each by its own caller: in every round
// all those that have not ended make one step at the same time.
func (s *scene) together(requests ...request) []ending {
	s.t.Helper()
	endings := make([]ending, len(requests))
	ended := make([]bool, len(requests))
	steps := make([]Step, len(requests))
	for i, r := range requests {
		steps[i] = r.step(s.reopened())
	}
	for range MaxSteps {
		var wg sync.WaitGroup
		start := make(chan struct{})
		pauses := make([]time.Duration, len(requests))
		for i := range requests {
			if ended[i] {
				continue
			}
			wg.Go(func() {
				<-start
				st, err := steps[i](s.t.Context())
				f, failed := errors.AsType[*provider.Failure](err)
				endings[i], ended[i] = ending{st, f}, failed || (err == nil && st.Done)
				pauses[i] = pause(st, err)
			})
		}
		close(start)
		wg.Wait()
		var next time.Duration
		for i := range requests {
			if !ended[i] && (next == 0 || pauses[i] < next) {
				next = pauses[i]
			}
		}
		if next == 0 {
			return endings
		}
		s.Clock.Advance(next)
	}
	s.t.Fatalf("operations of two callers did not end within %d steps", MaxSteps)
	return nil
}

func testTwoCallers(t *testing.T, open stage) {
	const rounds = 6
	// twice has r made by two callers, who both have to see it end well.
	twice := func(s *scene, r request) {
		s.t.Helper()
		e := s.together(r, r)
		for _, e := range e {
			if e.failure != nil {
				s.t.Errorf("%s by two callers failed: %s", r.kind(), e.failure.Message)
			}
		}
		sameGrant(s.t, e[0].status.Grant, e[1].status.Grant)
		s.stands(r)
	}

	t.Run("EachVerb", func(t *testing.T) {
		s := open(t)
		for n := range rounds {
			for _, r := range s.life(fmt.Sprintf("instance-%d", n)) {
				twice(s, r)
			}
		}
		s.finish()
	})
	t.Run("Anew", func(t *testing.T) {
		s := open(t)
		for n := range rounds {
			in := s.provision(platform, "instance-1")
			twice(s, in)
			for range 2 {
				twice(s, s.bind(in, "binding-1"))
			}
			if n%2 == 0 {
				twice(s, s.provision(platform, "instance-1"))
			}
		}
		s.finish()
	})
	t.Run("Failing", func(t *testing.T) {
		s := open(t)
		r := s.failing(s.provision(platform, "instance-1"))
		for _, e := range s.together(r, r) {
			if e.failure == nil {
				t.Error("a provision that has to fail succeeded for one of two callers")
			}
		}
		s.finish()
	})
	t.Run("TwoBindings", func(t *testing.T) {
		s := open(t)
		in := s.provision(platform, "instance-1")
		s.must(in)
		for range rounds {
			a, b := s.bind(in, "binding-1"), s.bind(in, "binding-2")
			for _, e := range s.together(a, b) {
				if e.failure != nil {
					t.Fatalf("one of two binds at once failed: %s", e.failure.Message)
				}
			}
			s.one(a)
			s.one(b)
			for _, e := range s.together(s.unbind(a), s.unbind(b)) {
				if e.failure != nil {
					t.Fatalf("one of two unbinds at once failed: %s", e.failure.Message)
				}
			}
			s.none(a)
			s.none(b)
		}
		s.finish()
	})
	t.Run("ProvisionAndDeprovision", func(t *testing.T) {
		// Whoever wins, nothing is left that a deletion does not find.
		s := open(t)
		for range rounds {
			in := s.provision(platform, "instance-1")
			s.together(in, s.deprovision(in))
			d := s.deprovision(in)
			s.must(d)
			s.none(d)
		}
		s.finish()
	})
}

func testIncarnations(t *testing.T, open stage) {
	t.Run("ProvisionReplaces", func(t *testing.T) {
		s := open(t)
		old, anew := s.provision(platform, "instance-1"), s.provision(platform, "instance-1")
		s.must(old)
		s.must(anew)
		s.one(anew)
		s.finish()
	})
	t.Run("DeprovisionRemovesAny", func(t *testing.T) {
		s := open(t)
		in := s.provision(platform, "instance-1")
		s.must(in)
		d := s.ofAnother(s.deprovision(in))
		s.must(d)
		s.none(d)
		s.finish()
	})
	t.Run("UpdateOfAnotherFails", func(t *testing.T) {
		s := open(t)
		in := s.provision(platform, "instance-1")
		s.must(in)
		look := s.Look(t, in.tags())
		s.mustFail(s.ofAnother(s.update(in)))
		if diff := cmp.Diff(look, s.Look(t, in.tags())); diff != "" {
			t.Errorf("an update of another incarnation changed the instance (-before +after):\n%s", diff)
		}
		s.finish()
	})
	t.Run("BindToAnotherFails", func(t *testing.T) {
		s := open(t)
		in := s.provision(platform, "instance-1")
		s.must(in)
		b := s.bind(s.ofAnother(in), "binding-1")
		s.mustFail(b)
		s.must(s.unbind(b))
		s.one(in)
		s.finish()
	})
	t.Run("BindReplaces", func(t *testing.T) {
		s := open(t)
		in := s.provision(platform, "instance-1")
		s.must(in)
		old, anew := s.bind(in, "binding-1"), s.bind(in, "binding-1")
		before, after := s.must(old).Grant, s.must(anew).Grant
		s.one(anew)
		if s.Opens(t, before) || !s.Opens(t, after) {
			t.Error("bound anew: want the new credentials to be accepted, and the old ones no more")
		}
		s.finish()
	})
	t.Run("UnbindRemovesAny", func(t *testing.T) {
		s := open(t)
		in := s.provision(platform, "instance-1")
		b := s.bind(in, "binding-1")
		s.must(in)
		grant := s.must(b).Grant
		u := s.ofAnother(s.unbind(b))
		s.must(u)
		s.none(u)
		if s.Opens(t, grant) {
			t.Error("unbound, but the credentials are still accepted")
		}
		s.finish()
	})
}

func testCancelled(t *testing.T, open stage) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	refuses := func(r request) {
		t.Helper()
		look, held := s.Look(t, r.tags()), s.list()
		if _, err := r.step(s.p)(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: error %v, want %v", r.kind(), err, context.Canceled)
		}
		if diff := cmp.Diff(look, s.Look(t, r.tags())) + cmp.Diff(held, s.list()); diff != "" {
			t.Errorf("%s, cancelled, has changed something (-before +after):\n%s", r.kind(), diff)
		}
	}
	for _, r := range s.life("instance-1") {
		refuses(r)
		s.must(r)
		s.stands(r)
	}
	if _, _, err := s.Inventory.List(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("list, cancelled: error %v, want %v", err, context.Canceled)
	}
	s.finish()
}
