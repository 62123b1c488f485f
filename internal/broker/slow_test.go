package broker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
	requests := map[string]func(ctx context.Context, d *desk) (broker.Result, error){
		"Provision": func(ctx context.Context, d *desk) (broker.Result, error) {
			q := d.order("async", d.caller(true))
			q.InstanceID = "new"
			return d.Provision(ctx, q)
		},
		"Update": func(ctx context.Context, d *desk) (broker.Result, error) {
			return d.Update(ctx, broker.UpdateRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"],
				Parameters: raw(`{"a":2}`)})
		},
		"Bind": func(ctx context.Context, d *desk) (broker.Result, error) {
			r, err := d.Bind(ctx, broker.BindRequest{Caller: d.caller(true), InstanceID: "i", BindingID: "b", ServiceID: d.ids["demo"],
				PlanID: d.ids["async-bind"]})
			return r.Result, err
		},
		"Deprovision": func(ctx context.Context, d *desk) (broker.Result, error) {
			return d.Delete(ctx,
				broker.DeleteRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["async-bind"]})
		},
	}
	for name, ask := range requests {
		for how, gone := range map[string]bool{"": false, "ClientGone": true} {
			t.Run(name+how, func(t *testing.T) {
				d := newDesk(t)
				kinds["Binding"].before(d)
				engine := hanging{make(chan lifecycle.Token, 1)}
				d.Engine, d.StartTimeout = engine, time.Millisecond
				ctx, hangUp := context.WithCancel(t.Context())
				defer hangUp()
				if gone { // as soon as the intent is durable
					d.Records = &committing{d.records, hangUp}
				}
				r := d.gives(broker.Accepted, "the request")(ask(ctx, d))
				select {
				case token := <-engine.started:
					expect.Same(t, "started", r.Token, token)
				default:
					t.Error("nothing was asked of the engine")
				}
			})
		}
	}
}

// committing does something after each commit.
type committing struct {
	broker.Records
	do func()
}

func (c *committing) Commit(ctx context.Context, changes ...ledger.Change) error {
	defer c.do()
	return c.Records.Commit(ctx, changes...)
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

// slowed gives the desk a store that is stuck, and for which it does not wait long.
func (d *desk) slowed(s *stuck) {
	s.Store = d.store
	d.Records, d.RecordsTimeout = ledger.New(s, d.id), 300*time.Millisecond
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
			d := newDesk(t)
			d.slowed(&tc.store)
			r, err := d.put("async", d.caller(true), "")
			if tc.accepted {
				d.gives(broker.Accepted, tc.reason)(r, err)
				expect.Same(t, "started", 1, d.started)
				return
			}
			expect.Fails(t, tc.reason, context.DeadlineExceeded, err)
			expect.Same(t, tc.reason+": the instance", lifecycle.Absent, d.instance().State)
		})
	}
}

// Reading requests have the same time limit as writing ones.
func TestReadingASlowStoreEnds(t *testing.T) {
	ctx, token := t.Context(), lifecycle.Token{Operation: "operation-000000000001", Key: sourceKey}.String()
	for name, ask := range map[string]func(d *desk) error{
		"Instance": func(d *desk) error { return expect.Err(d.Instance(ctx, d.caller(true), "i")) },
		"Binding":  func(d *desk) error { return expect.Err(d.Binding(ctx, d.caller(true), "i", "b")) },
		"Poll":     func(d *desk) error { return expect.Err(d.LastOperation(ctx, sourceKey, "")) },
		"Status":   func(d *desk) error { return expect.Err(d.Operation(ctx, d.caller(true), token)) },
		"Cancel": func(d *desk) error {
			_, _, err := d.Cancel(ctx, d.caller(true), token)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.slowed(&stuck{})
			expect.Fails(t, "the error", context.DeadlineExceeded, ask(d))
		})
	}
}

// late are records that change once, right after a request has read that its operation
// still runs.
type late struct {
	broker.Records
	waited bool
	change func()
}

func (l *late) Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error) {
	r, err := l.Records.Record(ctx, key, now)
	if change := l.change; l.waited && r.InProgress() && change != nil {
		l.change = nil
		change()
	}
	return r, err
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
			records := &late{Records: d.records}
			d.finishing = func() { records.waited = true } // and it still runs
			records.change = func() {
				d.settle(d.instance().Token())
				if tc.reused {
					d.gives(broker.Accepted, "the next instance")(d.put("async", d.caller(true), ""))
				}
			}
			d.Records = records
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
