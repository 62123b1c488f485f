package broker_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/expect"
)

// hanging is an engine that answers nothing.
type hanging struct{ started chan lifecycle.Token }

func (h hanging) Start(ctx context.Context, ref workflow.Ref) error {
	if !errors.Is(ctx.Err(), context.Canceled) { // its time may be up on a busy machine, but no client has ended it
		h.started <- ref.Token
	}
	<-ctx.Done()
	return ctx.Err()
}

func (hanging) Finish(ctx context.Context, _ workflow.Ref) error {
	<-ctx.Done()
	return nil
}

// NFR-02: once the intent is durable, an engine that hangs does not take the 202
// down, nor a client that goes; the reaper starts the operation.
func TestAHangingEngineIsNoError(t *testing.T) {
	for name, tc := range map[string]struct {
		fresh bool // nothing exists
		ask   func(d *desk) (broker.Result, error)
	}{
		"Provision":   {true, func(d *desk) (broker.Result, error) { return d.put("async", d.caller(true), "") }},
		"Update":      {false, func(d *desk) (broker.Result, error) { return d.change(d.caller(true), "", `{"a":2}`) }},
		"Bind":        {false, func(d *desk) (broker.Result, error) { return d.bind("i", "b", "async-bind", d.caller(true)) }},
		"Deprovision": {false, func(d *desk) (broker.Result, error) { return d.delete(d.caller(true)) }},
	} {
		for how, gone := range map[string]bool{"": false, "ClientGone": true} {
			t.Run(name+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := newDesk(t)
					if !tc.fresh {
						kinds["Binding"].before(d)
					}
					engine := hanging{make(chan lifecycle.Token, 1)}
					d.Engine = engine
					ctx, hangUp := context.WithCancel(t.Context())
					defer hangUp()
					if d.ctx = ctx; gone { // as soon as the intent is durable
						d.Records = &watched{Records: d.records, committed: hangUp}
					}
					r := d.gives(broker.Accepted, "the request")(tc.ask(d))
					select {
					case token := <-engine.started:
						expect.Same(t, "started", r.Token, token)
					default:
						t.Error("nothing was asked of the engine")
					}
				})
			})
		}
	}
}

// stuck is a store whose calls last until their time is over, from some call on.
type stuck struct {
	store.Store
	gets, commits int // that are answered
	lands         bool
}

func (s *stuck) Get(ctx context.Context, k store.Key) (store.Record, error) {
	if s.gets--; s.gets < 0 {
		<-ctx.Done()
		return store.Record{}, ctx.Err()
	}
	return s.Store.Get(ctx, k)
}

func (s *stuck) Commit(ctx context.Context, changes ...store.Change) error {
	if s.commits--; s.commits >= 0 {
		return s.Store.Commit(ctx, changes...)
	}
	if s.lands {
		if err := s.Store.Commit(ctx, changes...); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// slowed runs a test at a desk whose store is stuck, on a clock that moves only while everything waits.
func slowed(t *testing.T, s *stuck, run func(t *testing.T, d *desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		s.Store = d.store
		d.Records = ledger.New(s, d.id)
		run(t, d)
	})
}

// NFR-01: a store that is slow costs a request its own time, not that of whoever
// asks: an error, or what has become of it, comes well before.
func TestASlowStoreIsAnsweredInTime(t *testing.T) {
	const many = 1000
	for name, tc := range map[string]struct {
		reason   string
		store    stuck
		accepted bool
	}{
		"Reading":        {"nothing is known, nothing was begun", stuck{commits: many}, false},
		"Writing":        {"it did not land, and is not accepted", stuck{gets: many}, false},
		"WrittenAndLost": {"it landed, as one more look shows: it is accepted", stuck{gets: many, lands: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			slowed(t, &tc.store, func(t *testing.T, d *desk) {
				r, err := d.put("async", d.caller(true), "")
				if tc.accepted {
					d.gives(broker.Accepted, tc.reason)(r, err)
					expect.Same(t, "started", 1, d.started)
					return
				}
				expect.Fails(t, tc.reason, context.DeadlineExceeded, err)
				expect.Same(t, tc.reason+": the instance", lifecycle.Absent, d.instance().State)
			})
		})
	}
}

// Reading requests have the same time limit as writing ones.
func TestReadingASlowStoreEnds(t *testing.T) {
	asks := maps.Clone(questions)
	asks["Cancel"] = func(d *desk) error {
		_, _, err := d.Cancel(d.ctx, d.caller(true), firstToken)
		return err
	}
	for name, ask := range asks {
		t.Run(name, func(t *testing.T) {
			slowed(t, &stuck{}, func(t *testing.T, d *desk) {
				expect.Fails(t, "the error", context.DeadlineExceeded, ask(d))
			})
		})
	}
}

// A deletion that ends just after its request has seen that it outlasts the wait is
// answered as it was seen, and never with what is done with its id by then.
func TestADeletionThatEndsLate(t *testing.T) {
	for name, tc := range map[string]struct {
		reason            string
		permitted, reused bool
	}{
		"Settled":          {"a repetition says how it has ended", false, false},
		"SettledPermitted": {"its own token says how it has ended", true, false},
		"Reused":           {"the platform would poll a creation", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			expect.Get(d.put("sync", d.caller(false), ""))(t)
			waited := false
			d.finishing = func() { waited = true } // and it still runs
			d.Records = &watched{Records: d.records, read: func(r lifecycle.Record) {
				if !waited || !r.InProgress() {
					return
				}
				waited = false
				d.settle(r.Token())
				if tc.reused {
					d.gives(broker.Accepted, "the next instance")(d.put("async", d.caller(true), ""))
				}
			}}
			r, err := d.Delete(t.Context(), broker.DeleteRequest{
				Caller: d.caller(tc.permitted), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["sync"],
			})
			if !tc.permitted {
				refused(t, lifecycle.OperationFailed, err, "the deletion")
				refused(t, lifecycle.Gone, expect.Err(d.delete(d.caller(false))), "%s", tc.reason)
				return
			}
			d.gives(broker.Accepted, tc.reason)(r, err)
			refused(t, lifecycle.Gone, expect.Err(d.LastOperation(t.Context(), r.Token.Key, r.Token.String())), "%s", tc.reason)
		})
	}
}
