package broker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
)

// rebuilt gives the desk the record of an instance that was derived again.
func (d *desk) rebuilt() lifecycle.Record {
	d.Helper()
	a := lifecycle.Attributes{ServiceID: d.ids["demo"], PlanID: d.ids["sync"]}
	r, err := lifecycle.Record{Key: sourceKey}.Rebuild(lifecycle.Thing{Key: sourceKey, Incarnation: "made", Provider: "demo"}, a, d.now())
	expect.OK(d.T, err)
	d.commit(ledger.Put(r))
	return d.instance()
}

// PROV-07: the request that made a rebuilt instance is the same also after an update has told its context.
func TestARebuiltInstanceIsTheSameAfterAContext(t *testing.T) {
	d := newDesk(t)
	q := d.order("sync", d.caller(true))
	q.Context = raw(`{"platform":"cloudfoundry","organization_guid":"o"}`)
	d.commit(ledger.Put(d.rebuilt().SetContext(lifecycle.Attributes{Context: q.Context}, d.now())))
	d.gives(broker.Done, "the same request")(d.Provision(t.Context(), q))
	q.Context = raw(`{"platform":"cloudfoundry","organization_guid":"other"}`)
	refused(t, lifecycle.Conflict, expect.Err(d.Provision(t.Context(), q)), "of another organization")
}

// An update keeps the parameters that it leaves out. If they were lost it cannot, so the broker asks for all of them.
func TestLostParametersAreAskedFor(t *testing.T) {
	d := newDesk(t)
	d.rebuilt()
	refused(t, lifecycle.Unprocessable, expect.Err(d.change(d.caller(true), "async", "")), "an update without parameters")
	d.gives(broker.Accepted, "one that says that there are none")(d.change(d.caller(true), "async", `{}`))
}

// A record that was rebuilt has no operation: what made it has ended well, and so
// has what removed it with its instance.
func TestPollsOfWhatWasRebuilt(t *testing.T) {
	d := newDesk(t)
	i := d.rebuilt()
	key := i.Key.BindingKey("b")
	b, err := lifecycle.Record{Key: key}.Rebuild(lifecycle.Thing{Key: key, Incarnation: "bound", Of: i.Incarnation, Provider: "demo"},
		i.Attributes, d.now())
	expect.OK(t, err)
	for name, r := range map[string]lifecycle.Record{"Ready": b, "Removed": expect.Get(b.Remove(d.now(), d.now()))(t)} {
		r.Key.Binding = name
		d.commit(ledger.Put(r))
		d.reads(lifecycle.Succeeded, name)(d.LastOperation(t.Context(), r.Key, ""))
	}
	refused(t, lifecycle.NotFound, expect.Err(d.LastOperation(t.Context(), i.Key.BindingKey("never"), "")), "of what never was")
}

// waiting notes how long a request is ready to wait.
type waiting struct {
	*desk
	waits time.Duration
}

func (w *waiting) Finish(ctx context.Context, ref workflow.Ref) error {
	deadline, _ := ctx.Deadline()
	w.waits = time.Until(deadline)
	return w.desk.Finish(ctx, ref)
}

// A provider may have its requests wait for longer, or not so long; and a request that ends soon
// is answered before, however long its provider takes.
func TestWaitsAreTheProviders(t *testing.T) {
	for name, tc := range map[string]struct {
		waits map[string]time.Duration
		ends  time.Duration // the request's own time
		want  time.Duration
	}{
		"Default":    {nil, 0, time.Minute},
		"OfAnother":  {map[string]time.Duration{"other": time.Hour}, 0, time.Minute},
		"Providers'": {map[string]time.Duration{"demo": time.Hour}, 0, time.Hour},
		"EndsSoon":   {map[string]time.Duration{"demo": time.Hour}, time.Minute, time.Minute - broker.TimeToAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			w := &waiting{desk: newDesk(t)}
			w.Engine, w.SynchronousWait, w.Waits = w, time.Minute, tc.waits
			ctx := t.Context()
			if tc.ends > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.ends)
				defer cancel()
			}
			w.gives(broker.Created, "the request")(w.Provision(ctx, w.order("sync", w.caller(false))))
			if w.waits > tc.want || w.waits < tc.want-20*time.Second {
				t.Errorf("it waits %v, want %v", w.waits, tc.want)
			}
		})
	}
}

// A platform's context and who asks are personal data: of them a record holds
// readable only what requests are compared by.
func TestContextAndIdentityAreSealed(t *testing.T) {
	const canary = "canary-5e21"
	d := newDesk(t)
	c := d.caller(true)
	c.Identity = json.RawMessage(`{"user_id":"` + canary + `"}`)
	told := func(guid, name string) json.RawMessage {
		return raw(`{"platform":"cloudfoundry","organization_guid":"` + guid + `","instance_name":"` + name + `"}`)
	}
	put := d.order("async", c)
	put.Context = told("o", canary)
	d.settle(expect.Get(d.Provision(t.Context(), put))(t).Token)
	expect.Get(d.Update(t.Context(), broker.UpdateRequest{Caller: c, InstanceID: "i", ServiceID: d.ids["demo"],
		Parameters: raw(`{"a":1}`), Context: told("o", canary+"-2")}))(t)
	i := d.instance()
	body, err := json.Marshal(i)
	if err != nil || strings.Contains(string(body), canary) {
		t.Errorf("%v: it is in clear in %s", err, body)
	}
	for name, v := range map[string]struct {
		sealed lifecycle.Sealed
		member vault.Member
		by     vault.Vault
	}{
		"Context":    {i.Attributes.SealedContext, vault.Context, d.Vault},
		"Next":       {i.Operation.Target.SealedContext, vault.Context, d.Vault},
		"Names":      {i.Attributes.Names, vault.Names, d.Table},
		"Next names": {i.Operation.Target.Names, vault.Names, d.Table},
		"Identity":   {i.Operation.Asker.Identity, vault.Identity, d.Table},
	} {
		plain, err := v.by.Open(t.Context(), vault.Label{Key: i.Key, Member: v.member}, v.sealed)
		if err != nil || !strings.Contains(string(plain), canary) {
			t.Errorf("%s: %q %v", name, plain, err)
		}
	}
	// The members that are compared are stored in clear, so another space is told apart without the vault.
	put.Context = told("other", canary)
	refused(t, lifecycle.Conflict, expect.Err(d.Provision(t.Context(), put)), "PROV-09: of another organization")
}
