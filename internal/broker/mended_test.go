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

// A creation that settles after the request has waited, and before it is undone,
// is answered as it ended.
func TestWhatSettlesBeforeItIsUndoneIsReady(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(d *desk, t lifecycle.Token)
		want lifecycle.Reason // -1 for created
	}{
		"Well":  {(*desk).settle, -1},
		"Badly": {(*desk).fail, lifecycle.OperationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.settles = false
			var token lifecycle.Token
			d.during = func(t lifecycle.Token) { token = t }
			o := d.Options
			// The second reading is that of what has not settled.
			o.Records = &reading{Records: d.records, n: 2, do: func() { tc.end(d, token) }}
			r, err := broker.New(o).Provision(t.Context(), broker.ProvisionRequest{
				Caller: d.caller(false), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["sync"], OrganizationGUID: "o", SpaceGUID: "s",
			})
			if tc.want < 0 && (err != nil || r.Effect != broker.Created) || tc.want >= 0 && reason(err) != tc.want {
				t.Errorf("%+v %v", r, err)
			}
			if i, err := d.records.Record(t.Context(), token.Key, d.now()); err != nil || i.State == lifecycle.Deleting {
				t.Errorf("it is %q, %v", i.State, err)
			}
		})
	}
}

// rebuilt gives the desk the record of an instance that was derived again.
func (d *desk) rebuilt(t *testing.T) lifecycle.Record {
	t.Helper()
	key := lifecycle.Key{Platform: "p", Instance: "i"}
	a := lifecycle.Attributes{ServiceID: d.ids["demo"], PlanID: d.ids["sync"]}
	r, err := lifecycle.Record{Key: key}.Rebuild(lifecycle.Thing{Key: key, Incarnation: "made", Provider: "demo"}, a, d.now())
	expect.OK(t, err)
	expect.OK(t, d.records.Commit(t.Context(), ledger.Put(r)))
	r.Version = 1
	return r
}

// PROV-07: the request that made a rebuilt instance is the same also after an
// update has told its context.
func TestARebuiltInstanceIsTheSameAfterAContext(t *testing.T) {
	d := newDesk(t)
	i := d.rebuilt(t)
	context := json.RawMessage(`{"platform":"cloudfoundry","organization_guid":"o"}`)
	i = i.SetContext(lifecycle.Attributes{Context: context}, d.now())
	expect.OK(t, d.records.Commit(t.Context(), ledger.Put(i)))
	q := broker.ProvisionRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["sync"],
		OrganizationGUID: "o", SpaceGUID: "s", Context: context}
	if r, err := d.Provision(t.Context(), q); err != nil || r.Effect != broker.Done {
		t.Errorf("%+v %v", r, err)
	}
	q.Context = json.RawMessage(`{"platform":"cloudfoundry","organization_guid":"other"}`)
	refused(t, lifecycle.Conflict, expect.Err(d.Provision(t.Context(), q)), "of another organization")
}

// An update keeps the parameters that it leaves out. If they were lost it cannot, so the
// broker asks for all of them.
func TestLostParametersAreAskedFor(t *testing.T) {
	d := newDesk(t)
	d.rebuilt(t)
	q := broker.UpdateRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["async"]}
	refused(t, lifecycle.Unprocessable, expect.Err(d.Update(t.Context(), q)), "an update without parameters")
	q.Parameters = json.RawMessage(`{}`)
	if r, err := d.Update(t.Context(), q); err != nil || r.Effect != broker.Accepted {
		t.Errorf("one that says that there are none: %+v %v", r, err)
	}
}

// A record that was rebuilt has no operation: what made it has ended well, and so
// has what removed it with its instance.
func TestPollsOfWhatWasRebuilt(t *testing.T) {
	d := newDesk(t)
	i := d.rebuilt(t)
	key := i.Key.BindingKey("b")
	b, err := lifecycle.Record{Key: key}.Rebuild(lifecycle.Thing{Key: key, Incarnation: "bound", Of: i.Incarnation, Provider: "demo"},
		i.Attributes, d.now())
	expect.OK(t, err)
	removed, err := b.Remove(d.now(), d.now())
	expect.OK(t, err)
	for name, r := range map[string]lifecycle.Record{"Ready": b, "Removed": removed} {
		r.Key.Binding = name
		expect.OK(t, d.records.Commit(t.Context(), ledger.Put(r)))
		if p, err := d.LastOperation(t.Context(), r.Key, ""); err != nil || p.Operation.Phase != lifecycle.Succeeded {
			t.Errorf("%s: %q %v", name, p.Operation.Phase, err)
		}
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

// A provider may have its requests wait for longer, or not so long.
func TestWaitsAreTheProviders(t *testing.T) {
	for name, tc := range map[string]struct {
		waits map[string]time.Duration
		want  time.Duration
	}{
		"Default":    {nil, time.Minute},
		"OfAnother":  {map[string]time.Duration{"other": time.Hour}, time.Minute},
		"Providers'": {map[string]time.Duration{"demo": time.Hour}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := &waiting{desk: newDesk(t)}
			o := w.Options
			o.Engine, o.SynchronousWait, o.Waits = w, time.Minute, tc.waits
			q := broker.ProvisionRequest{
				Caller: w.caller(false), InstanceID: "i", ServiceID: w.ids["demo"], PlanID: w.ids["sync"], OrganizationGUID: "o", SpaceGUID: "s",
			}
			if r, err := broker.New(o).Provision(t.Context(), q); err != nil || r.Effect != broker.Created {
				t.Fatalf("%+v %v", r, err)
			}
			if w.waits > tc.want || w.waits < tc.want-20*time.Second {
				t.Errorf("it waits %v, want %v", w.waits, tc.want)
			}
		})
	}
}

// However long a provider takes, a request that ends soon is answered before.
func TestARequestStopsWaitingBeforeItEnds(t *testing.T) {
	w := &waiting{desk: newDesk(t)}
	o := w.Options
	o.Engine, o.SynchronousWait = w, time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q := broker.ProvisionRequest{
		Caller: w.caller(false), InstanceID: "i", ServiceID: w.ids["demo"], PlanID: w.ids["sync"], OrganizationGUID: "o", SpaceGUID: "s",
	}
	if r, err := broker.New(o).Provision(ctx, q); err != nil || r.Effect != broker.Created {
		t.Fatalf("%+v %v", r, err)
	}
	if most := time.Minute - broker.TimeToAnswer; w.waits > most || w.waits < most-20*time.Second {
		t.Errorf("it waits %v of a minute, want %v", w.waits, most)
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
		return json.RawMessage(`{"platform":"cloudfoundry","organization_guid":"` + guid + `","instance_name":"` + name + `"}`)
	}
	put := broker.ProvisionRequest{Caller: c, InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["async"],
		OrganizationGUID: "o", SpaceGUID: "s", Context: told("o", canary)}
	made, err := d.Provision(t.Context(), put)
	expect.OK(t, err)
	d.settle(made.Token)
	patch := broker.UpdateRequest{
		Caller: c, InstanceID: "i", ServiceID: d.ids["demo"], Parameters: json.RawMessage(`{"a":1}`), Context: told("o", canary+"-2"),
	}
	expect.Get(d.Update(t.Context(), patch))(t)
	i, err := d.records.Record(t.Context(), lifecycle.Key{Platform: "p", Instance: "i"}, d.now())
	expect.OK(t, err)
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
	// The members that are compared are stored in clear, so another space is told apart
	// without the vault.
	put.Context = told("other", canary)
	refused(t, lifecycle.Conflict, expect.Err(d.Provision(t.Context(), put)), "PROV-09: of another organization")
}
