package broker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
)

var errOutage = errors.New("the records cannot be had")

// A client that hangs up while it waits for work takes nothing back: what was
// committed goes on, and is not taken for too slow.
func TestWorkGoesOnWithoutItsClient(t *testing.T) {
	d := newDesk(t)
	ctx, hangUp := context.WithCancel(t.Context())
	d.ctx, d.finishing = ctx, hangUp
	expect.Fails(t, "answered", context.Canceled, expect.Err(d.put("sync", d.caller(false), "")))
	if i := d.instance(); i.State != lifecycle.Creating || !i.InProgress() {
		t.Errorf("the instance is %s, want it being created", i.State)
	}
	d.ctx, d.finishing = t.Context(), nil
	d.gives(broker.Done, "PROV-31: the repetition waits for the same work")(d.put("sync", d.caller(false), ""))
}

// ERR-12: while the records cannot be had, from any call on, no request is told that it was wrong, that what it asks
// about is unknown, or that it is gone: platforms would believe it.
func TestAnOutageIsNotTheUsersFault(t *testing.T) {
	ctx := t.Context()
	// The first operation of the instance is a past one.
	first := lifecycle.Token{Operation: "operation-000000000001", Key: sourceKey}.String()
	for name, tc := range map[string]struct {
		fresh bool // nothing exists
		ask   func(d *desk) error
	}{
		"Provision":   {true, func(d *desk) error { return expect.Err(d.put("sync", d.caller(true), "")) }},
		"Update":      {false, func(d *desk) error { return expect.Err(d.change(d.caller(true), "", `{"a":2}`)) }},
		"Deprovision": {false, func(d *desk) error { return expect.Err(d.delete(d.caller(true))) }},
		"Bind":        {false, func(d *desk) error { return expect.Err(d.bind("i", "c", "sync", d.caller(true))) }},
		"Unbind":      {false, func(d *desk) error { return expect.Err(d.unbind("b", d.caller(true))) }},
		"Instance":    {false, func(d *desk) error { return expect.Err(d.Instance(ctx, d.caller(true), "i")) }},
		"Binding":     {false, func(d *desk) error { return expect.Err(d.Binding(ctx, d.caller(true), "i", "b")) }},
		"Poll":        {false, func(d *desk) error { return expect.Err(d.LastOperation(ctx, sourceKey, "")) }},
		"PollByToken": {false, func(d *desk) error { return expect.Err(d.LastOperation(ctx, sourceKey, first)) }},
		"Status":      {false, func(d *desk) error { return expect.Err(d.Operation(ctx, d.caller(true), first)) }},
		"PollBinding": {false, func(d *desk) error { return expect.Err(d.LastOperation(ctx, boundKey, "")) }},
	} {
		t.Run(name, func(t *testing.T) {
			for calls := 0; ; calls++ {
				d := newDesk(t)
				if !tc.fresh {
					expect.Get(d.put("sync", d.caller(false), ""))(t)
					expect.Get(d.change(d.caller(false), "", `{"a":1}`))(t)
					expect.Get(d.bind("i", "b", "sync", d.caller(false)))(t)
				}
				left := calls
				d.Records = &watched{Records: d.records, before: func() error {
					if left--; left < 0 {
						return errOutage
					}
					return nil
				}}
				err := tc.ask(d)
				if left >= 0 {
					if err != nil {
						t.Errorf("without an outage: %v", err)
					}
					if calls == 0 {
						t.Error("no record was asked for: the test proves nothing")
					}
					return
				}
				if why := reason(err); err == nil || why > lifecycle.OperationFailed {
					t.Errorf("after %d calls it was answered with reason %d: %v", calls, why, err)
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
	d := newDesk(t)
	expect.Get(d.put("sync", d.caller(false), ""))(t)
	b := broker.New(d.Options)
	b.Vault, b.RecordsTimeout = mute{b.Vault}, 500*time.Millisecond
	c := d.caller(true)
	c.Identity = raw(`{"user_id":"u"}`)
	r, err := b.Delete(t.Context(), broker.DeleteRequest{Caller: c, InstanceID: "i", ServiceID: "s", PlanID: "p"})
	if err != nil || r.Effect == 0 {
		t.Errorf("answered %+v %v", r, err)
	}
}
