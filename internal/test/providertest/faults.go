package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
)

func testFailures(t *testing.T, open stage) {
	for _, c := range []struct {
		kind   operation.Kind
		reason string
		after  func(s *scene, in, b, failed request)
	}{
		{operation.Provision, "what is half made can be found and removed", func(s *scene, in, _, _ request) {
			d := s.deprovision(in)
			s.must(d)
			s.none(d)
		}},
		{operation.Update, "the instance is as before and works", func(s *scene, in, _, _ request) {
			look := s.Look(s.t, in.tags())
			s.must(s.bind(in, "binding-2"))
			s.must(s.update(in))
			if s.Look(s.t, in.tags()) == look {
				s.t.Error("updated, but nothing has changed")
			}
		}},
		{operation.Deprovision, "the instance can still be found, and deleted by a later operation", func(s *scene, in, _, _ request) {
			s.one(in)
			d := s.deprovision(in)
			s.must(d)
			s.none(d)
		}},
		{operation.Bind, "the binding can be removed, and made anew", func(s *scene, in, b, _ request) {
			u := s.unbind(b)
			s.must(u)
			s.none(u)
			anew := s.bind(in, "binding-1")
			if !s.Opens(s.t, s.must(anew).Grant) {
				s.t.Error("bound anew, but the credentials are not accepted")
			}
			s.one(anew)
		}},
		{operation.Unbind, "the binding can still be found, and removed by a later operation", func(s *scene, in, b, _ request) {
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
			r := map[operation.Kind]func() request{
				operation.Provision:   func() request { in = s.failing(in); return in },
				operation.Update:      func() request { return s.failing(s.update(in)) },
				operation.Deprovision: func() request { return s.failing(s.deprovision(in)) },
				operation.Bind:        func() request { b = s.failing(b); return b },
				operation.Unbind:      func() request { return s.failing(s.unbind(b)) },
			}[c.kind]
			if c.kind != operation.Provision {
				s.must(in)
			}
			if c.kind == operation.Unbind {
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
			if c.kind != operation.Provision {
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
		lossy := s.watch.losing(s.Provider, func() bool { return true })
		_, f := Drive(t, s.Clock, func(ctx context.Context) (provider.Status, error) {
			st, err := r.step(lossy)(ctx)
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

// Each verb, with what comes before it.
var verbs = map[string]func(s *scene, id string) (before []request, r request){
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

// Every single call by which a verb reaches its world goes wrong once, in each
// way. What is late lands before the operation goes on.
func testFaults(t *testing.T, open stage) {
	for _, fault := range []Fault{Refused, Lost, Late, Killed} {
		everyCall(t, open, fault, 0, wentOn)
	}
}

// wentOn requires that an operation has ended well, and that nothing else opens.
func wentOn(s *scene, r request, st provider.Status) {
	s.t.Helper()
	sameGrant(s.t, st.Grant, s.must(r).Grant)
	s.stands(r)
	s.opensOnly(r, st.Grant)
}

// A late call lands after the step that goes on, or after the last one: the operation's grant
// is the recorded one, and a deletion finds and removes all that landed.
func testLateCalls(t *testing.T, open stage) {
	for _, steps := range []int{1, MaxSteps} {
		everyCall(t, open, Late, steps, func(s *scene, r request, st provider.Status) {
			switch r.kind() {
			case operation.Deprovision, operation.Unbind:
				s.must(r) // an absence is looked at twice
				s.none(r)
			case operation.Bind:
				if !s.Opens(s.t, st.Grant) {
					s.t.Error("a late call ended the grant that was recorded")
				}
				s.one(r)
				u := s.unbind(r)
				s.must(u)
				s.none(u)
				s.opensOnly(u, nil)
			default:
				s.one(r)
			}
		})
	}
}

// everyCall drives every verb, with a fault at its first call, its second, and
// so on, disarmed so many steps after the one that met it; then it looks.
func everyCall(t *testing.T, open stage, fault Fault, steps int, look func(*scene, request, provider.Status)) {
	for name, verb := range verbs {
		t.Run(fmt.Sprintf("%s/%v/%d", name, fault, steps), func(t *testing.T) {
			s := open(t)
			for n, struck := 1, true; struck; n++ {
				before, r := verb(s, fmt.Sprintf("instance-%d", n))
				for _, b := range before {
					s.must(b)
				}
				var st provider.Status
				st, struck = s.faulted(r, n, fault, steps)
				look(s, r, st)
				if n > MaxSteps {
					t.Fatalf("%s still reaches its world after %d calls", r.kind(), n)
				}
			}
			s.finish()
		})
	}
}

// faulted drives r, whose nth call goes wrong. From the step after that on,
// others go on with it, and the fault is disarmed so many steps later. What a
// killed process would have answered is recorded by nobody.
func (s *scene) faulted(r request, n int, fault Fault, steps int) (provider.Status, bool) {
	s.t.Helper()
	struck, disarm := s.Falter(n, fault)
	defer disarm()
	dies := func() bool { return fault == Killed && struck() }
	first := s.watch.losing(s.Provider, dies)
	st, f := Drive(s.t, s.Clock, func(ctx context.Context) (provider.Status, error) {
		if struck() {
			if steps == 0 {
				disarm()
			}
			steps--
			return r.step(s.reopened())(ctx)
		}
		st, err := r.step(first)(ctx)
		if dies() {
			return provider.Status{}, ErrFault
		}
		return st, err
	})
	if f != nil {
		s.t.Fatalf("%s, with a fault at call %d, failed: %s", r.kind(), n, f.Message)
	}
	return st, struck()
}

// opensOnly requires that what is recorded of a binding opens, and nothing else
// of it: a secret that was made and not recorded is revoked.
func (s *scene) opensOnly(r request, g *provider.Grant) {
	s.t.Helper()
	want := 0
	switch r.kind() {
	case operation.Bind:
		want = 1
		if !s.Opens(s.t, g) {
			s.t.Error("bound, and the grant is not accepted")
		}
	case operation.Unbind:
	default:
		return
	}
	if got := s.Secrets(s.t, r.tags()); got != want {
		s.t.Errorf("after %s, %d secrets are accepted, want %d", r.kind(), got, want)
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

// One caller makes the steps of an operation, but operations on two bindings of
// one instance run at once.
func testTwoCallers(t *testing.T, open stage) {
	s := open(t)
	in := s.provision(platform, "instance-1")
	s.must(in)
	// both has two operations made at once, which both end well.
	both := func(a, b request) []ending {
		t.Helper()
		endings := s.together(a, b)
		for _, e := range endings {
			if e.failure != nil {
				t.Fatalf("one of two operations at once (%s) failed: %s", a.kind(), e.failure.Message)
			}
		}
		return endings
	}
	for range 6 {
		a, b := s.bind(in, "binding-1"), s.bind(in, "binding-2")
		grants := both(a, b)
		for i, r := range []request{a, b} {
			s.one(r)
			s.opensOnly(r, grants[i].status.Grant)
		}
		both(s.unbind(a), s.unbind(b))
		s.none(a)
		s.none(b)
	}
	s.finish()
}

// Two lives of one id have nothing in common: each has its own things, and a step of
// the one leaves those of the other as they are.
func testIncarnations(t *testing.T, open stage) {
	t.Run("Instances", func(t *testing.T) {
		s := open(t)
		old, anew := s.provision(platform, "instance-1"), s.provision(platform, "instance-1")
		s.must(old)
		s.must(anew)
		a, b := s.bind(old, "binding-1"), s.bind(anew, "binding-1")
		before, after := s.must(a).Grant, s.must(b).Grant
		look := s.Look(t, old.tags())
		s.must(s.update(anew))
		if diff := cmp.Diff(look, s.Look(t, old.tags())); diff != "" {
			t.Errorf("an update of one life changed the other (-before +after):\n%s", diff)
		}
		for _, r := range []request{old, anew, a, b} {
			s.one(r)
		}
		look = s.Look(t, anew.tags())
		for _, r := range []request{s.unbind(a), s.deprovision(old)} {
			s.must(r)
			s.none(r)
		}
		s.one(anew)
		s.one(b)
		if diff := cmp.Diff(look, s.Look(t, anew.tags())); diff != "" {
			t.Errorf("the deletion of one life changed the other (-before +after):\n%s", diff)
		}
		if s.Opens(t, before) || !s.Opens(t, after) {
			t.Error("one life is deleted: want its credentials refused, and the other's accepted")
		}
		s.finish()
	})
	t.Run("Bindings", func(t *testing.T) {
		s := open(t)
		in := s.provision(platform, "instance-1")
		s.must(in)
		old, anew := s.bind(in, "binding-1"), s.bind(in, "binding-1")
		before, after := s.must(old).Grant, s.must(anew).Grant
		s.one(old)
		s.one(anew)
		u := s.unbind(old)
		s.must(u)
		s.none(u)
		s.one(anew)
		if s.Opens(t, before) || !s.Opens(t, after) {
			t.Error("one life is unbound: want its credentials refused, and the other's accepted")
		}
		s.finish()
	})
	t.Run("OfAnother", func(t *testing.T) {
		s := open(t)
		in := s.provision(platform, "instance-1")
		b := s.bind(in, "binding-1")
		s.must(in)
		grant := s.must(b).Grant
		s.mustFail(s.ofAnother(s.update(in)))
		s.must(s.ofAnother(s.deprovision(in)))
		s.must(s.ofAnother(s.unbind(b)))
		stray := s.bind(s.ofAnother(in), "binding-2")
		s.mustFail(stray)
		s.must(s.unbind(stray))
		s.none(stray)
		s.one(in)
		s.one(b)
		if !s.Opens(t, grant) {
			t.Error("steps of a life that never was have changed another")
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
