package races_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
)

// A ring is an arena in which chosen requests meet.
type ring struct{ *arena }

func (r ring) now(verb verb, v int8, permitted bool) request {
	return request{verb: verb, parameters: v, permitted: permitted, sent: now().UnixNano()}
}

// must asks and waits; it fails unless the effect is this one.
func (r ring) must(verb verb, v int8, about names, effect broker.Effect) raw {
	r.Helper()
	out := r.ask(0, r.now(verb, v, false), about, "")
	if out.err != nil || verb < pollInstance && out.Effect != effect {
		r.Fatalf("%s %v: effect %v, %v", verbs[verb], about, effect, out.err)
	}
	return out
}

// together sends requests at the same moment, each to the next broker.
func together(n int, ask func(n int) raw) []raw {
	out := make([]raw, n)
	var ready, all sync.WaitGroup
	ready.Add(n)
	for k := range out {
		all.Go(func() {
			ready.Done()
			ready.Wait()
			out[k] = ask(k)
		})
	}
	all.Wait()
	return out
}

func (r raw) is(reason lifecycle.Reason) bool {
	got, ok := r.reason()
	return ok && got == reason
}

// settled waits until nothing runs and gives the latest operation.
func (r ring) settled(about names) lifecycle.Operation {
	r.Helper()
	v := pollInstance
	if about.binding != "" {
		v = pollBinding
	}
	for end := time.Now().Add(r.patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if out := r.ask(0, r.now(v, 0, false), about, ""); out.poll == nil || out.poll.Operation.Phase != lifecycle.InProgress {
			if out.poll == nil {
				return lifecycle.Operation{}
			}
			return out.poll.Operation
		}
	}
	r.Fatalf("%v never settles", about)
	return lifecycle.Operation{}
}

// races are run on every store, several times each.
var races = map[string]struct {
	reason string
	run    func(r ring, in names)
}{
	"IdenticalPuts":         {"IDEM-03: one resource, one operation", identicalPuts},
	"IdenticalWaitingPuts":  {"IDEM-03: of those who wait, one has made it", identicalWaitingPuts},
	"DifferentPuts":         {"PROV-08: one wins, the others are refused as what they are", differentPuts},
	"DifferentPatches":      {"CONC-07: one winner, one ConcurrencyError", differentPatches},
	"IdenticalPatches":      {"UPD-21: one operation", identicalPatches},
	"BindAndDeprovision":    {"a bind never outlives its instance", bindAndDeprovision},
	"DeleteAndEarlierPut":   {"ORB-03: what was sent before a deletion begins nothing after it", deleteAndEarlierPut},
	"AClockBehind":          {"ORB-01: what exists is deleted, whenever the DELETE seems to have arrived", aClockBehind},
	"RepeatedDeletes":       {"DEPR-07: one operation, and the last of them counts", repeatedDeletes},
	"OneIDForTwoInstances":  {"BIND-19: the id is given once", oneIDForTwoInstances},
	"IdenticalBinds":        {"BIND-02: the same credentials for all", identicalBinds},
	"UnbindAndDeprovision":  {"both end, and nothing is left", unbindAndDeprovision},
	"OthersAreNotDisturbed": {"CONC-06: instances never block one another", othersAreNotDisturbed},
}

// repetitions are how often each race is run.
const repetitions = 3

func TestRaces(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			for name, tc := range races {
				t.Run(name, func(t *testing.T) {
					for n := range repetitions {
						r := ring{newArena(t, s, fault{})}
						tc.run(r, names{instance: fmt.Sprintf("%s-%d", name, n)})
						if t.Failed() {
							t.Fatal(tc.reason)
						}
					}
				})
			}
		})
	}
}

// oneOperation requires that all were given the same token, while nothing ends.
func (r ring) oneOperation(all []raw) {
	r.Helper()
	for _, out := range all {
		if out.err != nil || out.Effect != broker.Accepted || out.Token != all[0].Token {
			r.Errorf("%+v %v, the first was given %+v", out.Result, out.err, all[0].Token)
		}
	}
}

func identicalPuts(r ring, in names) {
	r.cloud.hold(true)
	all := together(16, func(n int) raw { return r.ask(n, r.now(provision, 1, true), in, "") })
	r.oneOperation(all)
	r.cloud.hold(false)
	if op := r.settled(in); op.ID != all[0].Token.Operation || op.Phase != lifecycle.Succeeded || r.cloud.made != 1 {
		r.Errorf("%d things, operation %+v", r.cloud.made, op)
	}
}

func identicalWaitingPuts(r ring, in names) {
	created := 0
	for _, out := range together(16, func(n int) raw { return r.ask(n, r.now(provision, 1, false), in, "") }) {
		if out.err != nil {
			r.Errorf("%+v %v", out.Result, out.err)
		}
		if out.Effect == broker.Created {
			created++
		}
	}
	if created != 1 || r.cloud.made != 1 {
		r.Errorf("created %d times, %d things", created, r.cloud.made)
	}
}

func differentPuts(r ring, in names) {
	all := together(2, func(n int) raw { return r.ask(n, r.now(provision, int8(n+1), true), in, "") })
	one, two := all[0], all[1]
	if one.err != nil {
		one, two = two, one
	}
	if one.Effect != broker.Accepted || !two.is(lifecycle.Conflict) {
		r.Errorf("%+v %v, %+v %v", one.Result, one.err, two.Result, two.err)
	}
	r.settled(in)
}

func differentPatches(r ring, in names) {
	r.must(provision, 1, in, broker.Created)
	r.cloud.hold(true)
	all := together(2, func(n int) raw { return r.ask(n, r.now(update, int8(n+2), true), in, "") })
	r.cloud.hold(false)
	one, two, winner := all[0], all[1], int8(2)
	if one.err != nil {
		one, two, winner = two, one, 3
	}
	if one.Effect != broker.Accepted || !two.is(lifecycle.ConcurrencyError) {
		r.Errorf("%+v %v, %+v %v", one.Result, one.err, two.Result, two.err)
	}
	r.settled(in)
	if v := decoded(r.must(getInstance, 0, in, 0).parameters); v != winner {
		r.Errorf("it is v%d, the winner's is v%d", v, winner)
	}
}

func identicalPatches(r ring, in names) {
	r.must(provision, 1, in, broker.Created)
	r.cloud.hold(true)
	r.oneOperation(together(8, func(n int) raw { return r.ask(n, r.now(update, 2, true), in, "") }))
	r.cloud.hold(false)
	r.settled(in)
}

func bindAndDeprovision(r ring, in names) {
	r.must(provision, 1, in, broker.Created)
	on, other := names{in.instance, "b-" + in.instance}, names{in.instance, "other-" + in.instance}
	early := r.now(bind, 1, true)
	all := together(4, func(n int) raw {
		if n == 1 {
			return r.ask(n, r.now(deprovision, 0, true), in, "")
		}
		return r.ask(n, r.now(bind, 1, n == 0), on, "")
	})
	if all[1].Effect != broker.Accepted {
		r.Errorf("the deletion: %+v %v", all[1].Result, all[1].err)
	}
	r.settled(in)
	r.settled(on)
	for _, v := range []verb{getInstance, getBinding} {
		if out := r.ask(0, r.now(v, 0, false), on, ""); !out.is(lifecycle.NotFound) {
			r.Errorf("%s: %v", verbs[v], out.err)
		}
	}
	if r.cloud.holds(on.instance) || r.cloud.holds(on.instance+"/"+on.binding) {
		r.Error("something was left behind")
	}
	// The id is free again.
	r.must(provision, 1, in, broker.Created)
	r.must(bind, 2, on, broker.Created)
	// But what was meant for the instance before binds nothing to this one.
	if out := r.ask(1, early, other, ""); !out.is(lifecycle.ConcurrencyError) {
		r.Errorf("a bind from before the deletion: %+v %v", out.Result, out.err)
	}
}

func deleteAndEarlierPut(r ring, in names) {
	early := r.now(provision, 1, true)
	time.Sleep(time.Millisecond)
	removal := r.now(deprovision, 0, true)
	all := together(2, func(n int) raw { return r.ask(n, []request{early, removal}[n], in, "") })
	op := r.settled(in)
	switch put, gone := all[0], all[1]; {
	case gone.is(lifecycle.Gone) && put.is(lifecycle.ConcurrencyError): // the deletion overtook it
		if op.ID != "" || r.cloud.made != 0 {
			r.Errorf("an overtaken PUT made %d things: %+v", r.cloud.made, op)
		}
	case gone.Effect == broker.Accepted && put.Effect == broker.Accepted: // it cancelled it
		if op.ID != gone.Token.Operation || op.Phase != lifecycle.Succeeded {
			r.Errorf("the deletion ended as %+v", op)
		}
	default:
		r.Errorf("%+v %v, %+v %v", put.Result, put.err, gone.Result, gone.err)
	}
	if r.cloud.holds(in.instance) {
		r.Error("something was left behind")
	}
	// Whatever came first: what was sent before the deletion begins nothing.
	if out := r.ask(1, early, in, ""); !out.is(lifecycle.ConcurrencyError) {
		r.Errorf("the PUT once more: %+v %v", out.Result, out.err)
	}
	r.must(provision, 1, in, broker.Created)
}

func aClockBehind(r ring, in names) {
	on := names{in.instance, "b-" + in.instance}
	r.must(provision, 1, in, broker.Created)
	r.must(bind, 1, on, broker.Created)
	for _, v := range []verb{unbind, deprovision} {
		all := together(4, func(n int) raw {
			q := r.now(v, 0, true)
			q.sent -= int64(n) * int64(20*time.Minute)
			return r.ask(n, q, on, "")
		})
		for _, out := range all {
			if out.Effect != broker.Accepted && !out.is(lifecycle.Gone) {
				r.Errorf("%+v %v", out.Result, out.err)
			}
		}
		r.settled(map[verb]names{unbind: on, deprovision: in}[v])
	}
	if r.cloud.holds(on.instance) || r.cloud.holds(on.instance+"/"+on.binding) {
		r.Error("something was left behind")
	}
}

func repeatedDeletes(r ring, in names) {
	r.must(provision, 1, in, broker.Created)
	r.cloud.hold(true)
	late := r.now(provision, 1, true)
	r.oneOperation(together(8, func(n int) raw { return r.ask(n, r.now(deprovision, 0, true), in, "") }))
	r.cloud.hold(false)
	r.settled(in)
	if r.cloud.holds(in.instance) {
		r.Error("something was left behind")
	}
	if out := r.ask(0, late, in, ""); !out.is(lifecycle.ConcurrencyError) {
		r.Errorf("a PUT that was sent before: %+v %v", out.Result, out.err)
	}
}

func oneIDForTwoInstances(r ring, in names) {
	on := []names{{in.instance + "-one", "b-" + in.instance}, {in.instance + "-two", "b-" + in.instance}}
	for _, n := range on {
		r.must(provision, 1, n, broker.Created)
	}
	won := map[int]bool{}
	for n, out := range together(8, func(n int) raw { return r.ask(n/2, r.now(bind, 1, n%4 < 2), on[n%2], "") }) {
		switch {
		case out.err == nil:
			won[n%2] = true
		case !out.is(lifecycle.Conflict) && !out.is(lifecycle.AsyncRequired):
			r.Errorf("%+v %v", out.Result, out.err)
		}
	}
	if len(won) != 1 {
		r.Errorf("the id was given to %d instances", len(won))
	}
	for _, n := range on {
		r.settled(n)
	}
}

func identicalBinds(r ring, in names) {
	r.must(provision, 1, in, broker.Created)
	on := names{in.instance, "b-" + in.instance}
	all := together(8, func(n int) raw { return r.ask(n, r.now(bind, 1, false), on, "") })
	for _, out := range all {
		if out.err != nil || out.credentials() == "" || out.credentials() != all[0].credentials() {
			r.Errorf("%+v %v, credentials of %q and %q", out.Result, out.err, out.credentials(), all[0].credentials())
		}
	}
	if r.cloud.made != 2 {
		r.Errorf("%d things for an instance and a binding", r.cloud.made)
	}
}

func unbindAndDeprovision(r ring, in names) {
	on := names{in.instance, "b-" + in.instance}
	r.must(provision, 1, in, broker.Created)
	r.must(bind, 1, on, broker.Created)
	all := together(2, func(n int) raw {
		return r.ask(n, r.now([]verb{unbind, deprovision}[n], 0, true), on, "")
	})
	if out := all[0]; out.err != nil && !out.is(lifecycle.ConcurrencyError) && !out.is(lifecycle.Gone) {
		r.Errorf("the unbind: %v", out.err)
	}
	if out := all[1]; out.Effect != broker.Accepted {
		r.Errorf("the deletion: %+v %v", out.Result, out.err)
	}
	r.settled(in)
	r.settled(on)
	if r.cloud.holds(on.instance) || r.cloud.holds(on.instance+"/"+on.binding) {
		r.Error("something was left behind")
	}
}

func othersAreNotDisturbed(r ring, in names) {
	for n, out := range together(8, func(n int) raw {
		return r.ask(n, r.now(provision, int8(1+n%2), n%3 != 0), names{instance: fmt.Sprintf("%s-%d", in.instance, n)}, "")
	}) {
		if out.err != nil || out.Effect != broker.Accepted && out.Effect != broker.Created {
			r.Errorf("%+v %v", out.Result, out.err)
		}
		r.settled(names{instance: fmt.Sprintf("%s-%d", in.instance, n)})
	}
}
