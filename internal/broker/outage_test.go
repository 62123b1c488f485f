package broker_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"

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

// firstToken is of the first operation that a desk begins; after another one it is a past operation.
var firstToken = lifecycle.Token{Operation: "operation-000000000001", Key: sourceKey}.String()

// questions are the requests that only read.
var questions = map[string]func(d *desk) error{
	"Instance":    func(d *desk) error { return expect.Err(d.View(d.ctx, d.caller(true), "i", "")) },
	"Binding":     func(d *desk) error { return expect.Err(d.View(d.ctx, d.caller(true), "i", "b")) },
	"Poll":        func(d *desk) error { return expect.Err(d.LastOperation(d.ctx, sourceKey, "")) },
	"PollByToken": func(d *desk) error { return expect.Err(d.LastOperation(d.ctx, sourceKey, firstToken)) },
	"PollBinding": func(d *desk) error { return expect.Err(d.LastOperation(d.ctx, boundKey, "")) },
	"Status":      func(d *desk) error { return expect.Err(d.Operation(d.ctx, d.caller(true), firstToken)) },
}

// ERR-12: while the records cannot be had, from any call on, no request is told that it was wrong, that what it asks
// about is unknown, or that it is gone: platforms would believe it.
func TestAnOutageIsNotTheUsersFault(t *testing.T) {
	asks := maps.Clone(questions)
	asks["Provision"] = func(d *desk) error { return expect.Err(d.put("sync", d.caller(true), "")) }
	asks["Update"] = func(d *desk) error { return expect.Err(d.change(d.caller(true), "", `{"a":2}`)) }
	asks["Deprovision"] = func(d *desk) error { return expect.Err(d.delete(d.caller(true))) }
	asks["Bind"] = func(d *desk) error { return expect.Err(d.bind("i", "c", "sync", d.caller(true))) }
	asks["Unbind"] = func(d *desk) error { return expect.Err(d.unbind("b", d.caller(true))) }
	for name, ask := range asks {
		t.Run(name, func(t *testing.T) {
			for calls := 0; ; calls++ {
				d := newDesk(t)
				if name != "Provision" {
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
				err := ask(d)
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
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		expect.Get(d.put("sync", d.caller(false), ""))(t)
		b := broker.New(d.Options)
		b.Vault = mute{b.Vault}
		c := d.caller(true)
		c.Identity = raw(`{"user_id":"u"}`)
		r, err := b.Delete(t.Context(), broker.DeleteRequest{Caller: c, InstanceID: "i", ServiceID: "s", PlanID: "p"})
		if err != nil || r.Effect == 0 {
			t.Errorf("answered %+v %v", r, err)
		}
	})
}
