package races_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/store"
	"github.com/longshore/longshore/internal/store/memory"
)

// crowd is how many identical requests meet.
const crowd = 64

// tallied counts commits.
type tallied struct {
	store.Store
	tried, done *atomic.Int64
}

func (s tallied) Commit(ctx context.Context, changes ...store.Change) error {
	s.tried.Add(1)
	err := s.Store.Commit(ctx, changes...)
	if err == nil {
		s.done.Add(1)
	}
	return err
}

// CONC-01, IDEM-03, DEPR-07: of many identical requests at once none is refused,
// and all of them are one operation: who repeats what runs has next to nothing to
// write.
func TestManyIdenticalRequests(t *testing.T) {
	verbs := map[string]struct {
		verb   verb
		before []verb // what exists
	}{
		"Provision":   {provision, nil},
		"Update":      {update, []verb{provision}},
		"Bind":        {bind, []verb{provision}},
		"Unbind":      {unbind, []verb{provision, bind}},
		"Deprovision": {deprovision, []verb{provision, bind}},
	}
	for name, open := range map[string]func(*testing.T) store.Store{
		"Bolt": newBolt, "Memory": func(*testing.T) store.Store { return unsteady{memory.New()} },
	} {
		for what, tc := range verbs {
			for _, permitted := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s%sPermitted%v", name, what, permitted), func(t *testing.T) {
					counted := tallied{open(t), new(atomic.Int64), new(atomic.Int64)}
					r := ring{newArena(t, counted, fault{})}
					on := names{"i", "b"}
					for _, v := range tc.before {
						r.must(v, 1, on, broker.Created)
					}
					v := int8(1)
					if tc.verb == update {
						v = 2
					}
					r.cloud.hold(permitted) // a token is one while its operation runs
					tried, done := counted.tried.Load(), counted.done.Load()
					all := together(crowd, func(n int) raw { return r.ask(n, r.now(tc.verb, v, permitted), on, "") })
					t.Logf("%d commits, %d of them landed", counted.tried.Load()-tried, counted.done.Load()-done)
					r.cloud.hold(false)
					if permitted {
						r.oneOperation(all)
						return
					}
					for _, out := range all {
						if gone := out.is(lifecycle.Gone) && (tc.verb == unbind || tc.verb == deprovision); out.err != nil && !gone {
							t.Errorf("%+v %v", out.Result, out.err)
						}
					}
				})
			}
		}
		t.Run(name+"DeleteOfNothing", func(t *testing.T) {
			counted := tallied{open(t), new(atomic.Int64), new(atomic.Int64)}
			r := ring{newArena(t, counted, fault{})}
			for _, out := range together(crowd, func(n int) raw { return r.ask(n, r.now(deprovision, 0, true), names{instance: "i"}, "") }) {
				if !out.is(lifecycle.Gone) {
					t.Errorf("%+v %v", out.Result, out.err)
				}
			}
			t.Logf("%d commits, %d of them landed", counted.tried.Load(), counted.done.Load())
		})
	}
}
