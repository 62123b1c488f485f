package broker_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/workflow"
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
	r, err := lifecycle.Record{Key: key}.Rebuild(lifecycle.Orphan{Key: key, Incarnation: "made", Provider: "demo"}, a, "", d.now())
	if err == nil {
		err = d.records.Commit(t.Context(), ledger.Put(r))
	}
	if err != nil {
		t.Fatal(err)
	}
	r.Version = 1
	return r
}

// PROV-07: the request that made a rebuilt instance is the same also after an
// update has told its context.
func TestARebuiltInstanceIsTheSameAfterAContext(t *testing.T) {
	d := newDesk(t)
	i := d.rebuilt(t)
	context := json.RawMessage(`{"platform":"cloudfoundry","organization_guid":"o"}`)
	if err := d.records.Commit(t.Context(), ledger.Put(i.SetContext(context, d.now()))); err != nil {
		t.Fatal(err)
	}
	q := broker.ProvisionRequest{
		Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["sync"], OrganizationGUID: "o", SpaceGUID: "s", Context: context,
	}
	if r, err := d.Provision(t.Context(), q); err != nil || r.Effect != broker.Done {
		t.Errorf("%+v %v", r, err)
	}
	q.Context = json.RawMessage(`{"platform":"cloudfoundry","organization_guid":"other"}`)
	if _, err := d.Provision(t.Context(), q); reason(err) != lifecycle.Conflict {
		t.Errorf("of another organization: %v", err)
	}
}

// What an update leaves out stays: of parameters that were lost, that cannot be.
func TestLostParametersAreAskedFor(t *testing.T) {
	d := newDesk(t)
	d.rebuilt(t)
	q := broker.UpdateRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["async"]}
	if _, err := d.Update(t.Context(), q); reason(err) != lifecycle.Unprocessable {
		t.Errorf("an update without parameters: %v", err)
	}
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
	b, err := lifecycle.Record{Key: key}.Rebuild(lifecycle.Orphan{Key: key, Incarnation: "bound", Provider: "demo"}, i.Attributes, i.Incarnation, d.now())
	if err != nil {
		t.Fatal(err)
	}
	removed, err := b.Remove(d.now(), d.now())
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]lifecycle.Record{"Ready": b, "Removed": removed} {
		r.Key.Binding = name
		if err := d.records.Commit(t.Context(), ledger.Put(r)); err != nil {
			t.Fatal(err)
		}
		if p, err := d.LastOperation(t.Context(), r.Key, ""); err != nil || p.Operation.Phase != lifecycle.Succeeded {
			t.Errorf("%s: %q %v", name, p.Operation.Phase, err)
		}
	}
	if _, err := d.LastOperation(t.Context(), i.Key.BindingKey("never"), ""); reason(err) != lifecycle.NotFound {
		t.Errorf("of what never was: %v", err)
	}
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
