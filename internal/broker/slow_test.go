package broker_test

import (
	"context"
	"encoding/json"
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
	requests := map[string]func(ctx context.Context, d *desk, b *broker.Broker) (broker.Result, error){
		"Provision": func(ctx context.Context, d *desk, b *broker.Broker) (broker.Result, error) {
			return b.Provision(ctx,
				broker.ProvisionRequest{Caller: d.caller(true), InstanceID: "new", ServiceID: d.ids["demo"], PlanID: d.ids["async"],
					OrganizationGUID: "o", SpaceGUID: "s"})
		},
		"Update": func(ctx context.Context, d *desk, b *broker.Broker) (broker.Result, error) {
			return b.Update(ctx, broker.UpdateRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"],
				Parameters: json.RawMessage(`{"a":2}`)})
		},
		"Bind": func(ctx context.Context, d *desk, b *broker.Broker) (broker.Result, error) {
			r, err := b.Bind(ctx, broker.BindRequest{Caller: d.caller(true), InstanceID: "i", BindingID: "b", ServiceID: d.ids["demo"],
				PlanID: d.ids["async-bind"]})
			return r.Result, err
		},
		"Deprovision": func(ctx context.Context, d *desk, b *broker.Broker) (broker.Result, error) {
			return b.Delete(ctx,
				broker.DeleteRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["async-bind"]})
		},
	}
	for name, ask := range requests {
		for how, gone := range map[string]bool{"": false, "ClientGone": true} {
			t.Run(name+how, func(t *testing.T) {
				d := newDesk(t)
				kinds["Binding"].before(d)
				engine := hanging{make(chan lifecycle.Token, 1)}
				o := d.Options
				o.Engine, o.StartTimeout = engine, time.Millisecond
				ctx, hangUp := context.WithCancel(t.Context())
				defer hangUp()
				if gone { // as soon as the intent is durable
					o.Records = &committing{d.records, hangUp}
				}
				r, err := ask(ctx, d, broker.New(o))
				if err != nil || r.Effect != broker.Accepted {
					t.Fatalf("%+v %v", r, err)
				}
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

// NFR-01: a store that is slow costs a request its own time, not that of whoever
// asks: an error, or what has become of it, comes well before.
func TestASlowStoreIsAnsweredInTime(t *testing.T) {
	const many = 1000
	tests := map[string]struct {
		reason        string
		gets, commits int
		lands         bool
		accepted      bool
	}{
		"Reading":        {"nothing is known, nothing was begun", 0, many, false, false},
		"Writing":        {"it did not land, and is not accepted", many, 0, false, false},
		"WrittenAndLost": {"it landed, as one more look shows: it is accepted", many, 0, true, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				o := d.Options
				o.Records = ledger.New(&stuck{d.store, tc.gets, tc.commits, tc.lands}, d.id)
				r, err := broker.New(o).Provision(t.Context(), broker.ProvisionRequest{
					Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["async"], OrganizationGUID: "o", SpaceGUID: "s",
				})
				if tc.accepted {
					if err != nil || r.Effect != broker.Accepted || d.started != 1 {
						t.Errorf("%s: %+v %v", tc.reason, r, err)
					}
					return
				}
				if !errors.Is(err, context.DeadlineExceeded) || t.Context().Err() != nil {
					t.Errorf("%s: %+v %v", tc.reason, r, err)
				}
				if i, err := d.records.Record(t.Context(), lifecycle.Key{Platform: "p", Instance: "i"}, d.now()); err != nil ||
					i.State != lifecycle.Absent {
					t.Errorf("%s: the instance is %q %v", tc.reason, i.State, err)
				}
			})
		})
	}
}

// Reading requests have the same time limit as writing ones.
func TestReadingASlowStoreEnds(t *testing.T) {
	key := lifecycle.Key{Platform: "p", Instance: "i"}
	token := lifecycle.Token{Operation: "operation-000000000001", Key: key}
	for name, ask := range map[string]func(ctx context.Context, d *desk, b *broker.Broker) error{
		"Instance": func(ctx context.Context, d *desk, b *broker.Broker) error {
			_, err := b.Instance(ctx, d.caller(true), "i")
			return err
		},
		"Binding": func(ctx context.Context, d *desk, b *broker.Broker) error {
			_, err := b.Binding(ctx, d.caller(true), "i", "b")
			return err
		},
		"Poll": func(ctx context.Context, _ *desk, b *broker.Broker) error {
			_, err := b.LastOperation(ctx, key, "")
			return err
		},
		"Status": func(ctx context.Context, d *desk, b *broker.Broker) error {
			_, err := b.Operation(ctx, d.caller(true), token.String())
			return err
		},
		"Cancel": func(ctx context.Context, d *desk, b *broker.Broker) error {
			_, _, err := b.Cancel(ctx, d.caller(true), token.String())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				o := d.Options
				o.Records = ledger.New(&stuck{Store: d.store}, d.id)
				expect.Fails(t, "the error", context.DeadlineExceeded, ask(t.Context(), d, broker.New(o)))
			})
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
			q := broker.ProvisionRequest{
				Caller: d.caller(false), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["sync"], OrganizationGUID: "o", SpaceGUID: "s",
			}
			expect.Get(d.Provision(t.Context(), q))(t)
			records := &late{Records: d.records}
			d.finishing = func() { records.waited = true } // and it still runs
			records.change = func() {
				i, err := d.records.Record(t.Context(), lifecycle.Key{Platform: "p", Instance: "i"}, d.now())
				expect.OK(t, err)
				d.settle(i.Token())
				if tc.reused {
					q.Caller, q.PlanID = d.caller(true), d.ids["async"]
					if r, err := d.Provision(t.Context(), q); err != nil || r.Effect != broker.Accepted {
						t.Errorf("%+v %v", r, err)
					}
				}
			}
			o := d.Options
			o.Records = records
			r, err := broker.New(o).Delete(t.Context(), broker.DeleteRequest{
				Caller: d.caller(tc.permitted), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["sync"],
			})
			if !tc.permitted {
				if reason(err) != lifecycle.OperationFailed {
					t.Errorf("%+v %v", r, err)
				}
				if r, err = d.delete(d.caller(false)); reason(err) != lifecycle.Gone {
					t.Errorf("%s: %+v %v", tc.reason, r, err)
				}
				return
			}
			if err != nil || r.Effect != broker.Accepted {
				t.Fatalf("%s: %+v %v", tc.reason, r, err)
			}
			refused(t, lifecycle.Gone, expect.Err(d.LastOperation(t.Context(), r.Token.Key, r.Token.String())), "%s", tc.reason)
		})
	}
}
