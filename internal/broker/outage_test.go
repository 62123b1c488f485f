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
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
)

var errOutage = errors.New("the records cannot be had")

// outage is records whose nth call fails, and each one after it.
type outage struct {
	broker.Records
	left int
}

func (o *outage) fails() bool { o.left--; return o.left < 0 }

func (o *outage) Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error) {
	if o.fails() {
		return lifecycle.Record{}, errOutage
	}
	return o.Records.Record(ctx, key, now)
}

func (o *outage) Pointer(ctx context.Context, platform, binding string) (lifecycle.Pointer, error) {
	if o.fails() {
		return lifecycle.Pointer{}, errOutage
	}
	return o.Records.Pointer(ctx, platform, binding)
}

func (o *outage) PastOperation(ctx context.Context, id string, now time.Time) (lifecycle.PastOperation, error) {
	if o.fails() {
		return lifecycle.PastOperation{}, errOutage
	}
	return o.Records.PastOperation(ctx, id, now)
}

func (o *outage) Commit(ctx context.Context, changes ...ledger.Change) error {
	if o.fails() {
		return errOutage
	}
	return o.Records.Commit(ctx, changes...)
}

// A client that hangs up while it waits for work takes nothing back: what was
// committed goes on, and is not taken for too slow.
func TestWorkGoesOnWithoutItsClient(t *testing.T) {
	d := newDesk(t)
	ctx, hangUp := context.WithCancel(context.Background())
	d.finishing = hangUp
	q := broker.ProvisionRequest{Caller: d.caller(false), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["sync"],
		OrganizationGUID: "o", SpaceGUID: "s"}
	expect.Fails(t, "answered", context.Canceled, expect.Err(d.Provision(ctx, q)))
	i, err := d.records.Record(context.Background(), lifecycle.Key{Platform: "p", Instance: "i"}, d.now())
	if err != nil || i.State != lifecycle.Creating || !i.InProgress() {
		t.Errorf("the instance is %s, want it being created; %v", i.State, err)
	}
	d.finishing = nil
	if r, err := d.Provision(context.Background(), q); err != nil || r.Effect != broker.Done {
		t.Errorf("PROV-31: the repetition waits for the same work: %+v %v", r, err)
	}
}

// ERR-12: while the records cannot be had, from any call on, no request is
// told that it was wrong, that what it asks about is unknown, or that it is
// gone: platforms would believe it.
func TestAnOutageIsNotTheUsersFault(t *testing.T) {
	ctx := context.Background()
	type asked func(d *desk, b *broker.Broker) error
	remove := func(d *desk) broker.DeleteRequest {
		return broker.DeleteRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["sync"]}
	}
	// The first operation of the instance is a past one.
	first := lifecycle.Token{Operation: "operation-000000000001", Key: lifecycle.Key{Platform: "p", Instance: "i"}}
	asks := map[string]struct {
		fresh bool // nothing exists
		ask   asked
	}{
		"Provision": {true, func(d *desk, b *broker.Broker) error {
			_, err := b.Provision(ctx,
				broker.ProvisionRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["sync"],
					OrganizationGUID: "o", SpaceGUID: "s"})
			return err
		}},
		"Update": {false, func(d *desk, b *broker.Broker) error {
			_, err := b.Update(ctx,
				broker.UpdateRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], Parameters: json.RawMessage(`{"a":2}`)})
			return err
		}},
		"Deprovision": {false, func(d *desk, b *broker.Broker) error { _, err := b.Delete(ctx, remove(d)); return err }},
		"Bind": {false, func(d *desk, b *broker.Broker) error {
			_, err := b.Bind(ctx, broker.BindRequest{Caller: d.caller(true), InstanceID: "i", BindingID: "c", ServiceID: d.ids["demo"],
				PlanID: d.ids["sync"]})
			return err
		}},
		"Unbind": {false, func(d *desk, b *broker.Broker) error {
			q := remove(d)
			q.BindingID = "b"
			_, err := b.Delete(ctx, q)
			return err
		}},
		"Instance": {false, func(d *desk, b *broker.Broker) error { _, err := b.Instance(ctx, d.caller(true), "i"); return err }},
		"Binding": {false, func(d *desk, b *broker.Broker) error {
			_, err := b.Binding(ctx, d.caller(true), "i", "b")
			return err
		}},
		"Poll": {false, func(d *desk, b *broker.Broker) error {
			_, err := b.LastOperation(ctx, lifecycle.Key{Platform: "p", Instance: "i"}, "")
			return err
		}},
		"PollByToken": {false, func(d *desk, b *broker.Broker) error {
			_, err := b.LastOperation(ctx, lifecycle.Key{Platform: "p", Instance: "i"}, first.String())
			return err
		}},
		"Status": {false, func(d *desk, b *broker.Broker) error {
			_, err := b.Operation(ctx, d.caller(true), first.String())
			return err
		}},
		"PollBinding": {false, func(d *desk, b *broker.Broker) error {
			_, err := b.LastOperation(ctx, lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}, "")
			return err
		}},
	}
	for name, tc := range asks {
		t.Run(name, func(t *testing.T) {
			for calls := 0; ; calls++ {
				d := newDesk(t)
				if !tc.fresh {
					expect.Get(d.put("sync", d.caller(false), ""))(t)
					expect.Get(d.Update(ctx,
						broker.UpdateRequest{Caller: d.caller(false), InstanceID: "i", ServiceID: d.ids["demo"],
							Parameters: json.RawMessage(`{"a":1}`)}))(t)

					expect.Get(d.bind("i", "b", "sync", d.caller(false)))(t)
				}
				o := d.Options
				broken := &outage{Records: d.records, left: calls}
				o.Records = broken
				err := tc.ask(d, broker.New(o))
				if broken.left >= 0 {
					if err != nil {
						t.Errorf("without an outage: %v", err)
					}
					if calls == 0 {
						t.Error("no record was asked for: the test proves nothing")
					}
					return
				}
				if why := reason(err); why > lifecycle.OperationFailed {
					t.Errorf("after %d calls it was refused with reason %d: %v", calls, why, err)
				}
				if err == nil {
					t.Errorf("after %d calls it was answered well", calls)
				}
			}
		})
	}
}

// mute is a vault that does not answer.
type mute struct{ vault.Vault }

func (mute) Seal(ctx context.Context, _ vault.Label, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A deletion begins also while the vault hangs: who asked for it is not recorded
// then, and leaves the time that the records need.
func TestADeletionDoesNotWaitForTheVault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		expect.Get(d.put("sync", d.caller(false), ""))(t)
		o := d.Options
		o.Vault = mute{o.Vault}
		c := d.caller(true)
		c.Identity = json.RawMessage(`{"user_id":"u"}`)
		q := broker.DeleteRequest{Caller: c, InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["sync"]}
		if r, err := broker.New(o).Delete(context.Background(), q); err != nil || r.Effect == 0 {
			t.Errorf("answered %+v %v", r, err)
		}
	})
}
