package races_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// crowds are how many identical requests meet. On an emulated table each that loses a
// commit reads and tries again, so that the work is the square of it.
var crowds = map[string]int{"Bolt": 64, "Dynamo": 16}

// together sends requests at the same moment, each to the next broker.
func (a *arena) together(n int, q func() request, about names) []raw {
	out := make([]raw, n)
	var ready, all sync.WaitGroup
	ready.Add(n)
	for k := range out {
		all.Go(func() {
			ready.Done()
			ready.Wait()
			out[k] = a.ask(k, q(), about, "")
		})
	}
	all.Wait()
	return out
}

// CONC-01, IDEM-03, DEPR-07: of many identical requests at once none is refused,
// and all of them are one operation, which makes or removes one thing.
func TestManyIdenticalRequests(t *testing.T) {
	t.Parallel()
	const usual, other = 1, 2
	tests := map[string]struct {
		verb       verb
		before     []verb // what exists
		parameters int8
		made       int // in the end, so far
	}{
		"Provision":       {provision, nil, usual, 1},
		"Update":          {update, []verb{provision}, other, 1},
		"Bind":            {bind, []verb{provision}, usual, 2},
		"Unbind":          {unbind, []verb{provision, bind}, usual, 2},
		"Deprovision":     {deprovision, []verb{provision, bind}, usual, 2},
		"DeleteOfNothing": {deprovision, nil, usual, 0},
	}
	on := names{"i", "b"}
	for name, open := range stores {
		for what, tc := range tests {
			for _, permitted := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s%sPermitted%v", name, what, permitted), func(t *testing.T) {
					a := newArena(t, open(t), mutant{})
					q := func(v verb, parameters int8, permitted bool) request {
						return request{verb: v, parameters: parameters, permitted: permitted, sent: now().UnixNano()}
					}
					for _, v := range tc.before {
						if r := a.ask(0, q(v, usual, false), on, ""); r.err != nil || r.Effect != broker.Created {
							t.Fatalf("%s: %+v %v", verbs[v], r.Result, r.err)
						}
					}
					a.cloud.hold(permitted) // a token is one while its operation runs
					all := a.together(crowds[name], func() request { return q(tc.verb, tc.parameters, permitted) }, on)
					a.cloud.hold(false)
					a.one(all, permitted && what != "DeleteOfNothing")
					a.rests(on)
					expect.Same(t, "things that were made", tc.made, a.cloud.made)
				})
			}
		}
	}
}

// one requires that the answers are of one operation; a token is told of where the client permits it.
func (a *arena) one(all []raw, permitted bool) {
	a.Helper()
	created := 0
	for _, out := range all {
		switch {
		case permitted && (out.err != nil || out.Effect != broker.Accepted || out.Token != all[0].Token):
			a.Errorf("%+v %v, the first was given %+v", out.Result, out.err, all[0].Token)
		case out.err != nil && (out.refusal() == nil || out.refusal().Reason != lifecycle.Gone):
			a.Errorf("%+v %v", out.Result, out.err)
		case out.credentials() != all[0].credentials():
			a.Errorf("credentials of %q and %q", out.credentials(), all[0].credentials())
		}
		if out.Effect == broker.Created {
			created++
		}
	}
	if created > 1 {
		a.Errorf("created %d times", created)
	}
}

// rests waits until no operation of the instance or the binding runs.
func (a *arena) rests(on names) {
	a.Helper()
	for _, v := range []verb{pollInstance, pollBinding} {
		if _, settles := a.latest(0, v, on); !settles {
			a.Fatalf("%v never settles", on)
		}
	}
}
