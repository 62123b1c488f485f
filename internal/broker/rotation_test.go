package broker_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
)

// rotate binds id as the successor of predecessor, naming nothing else.
func (d *desk) rotate(id, predecessor string) (broker.Result, error) {
	return d.Bind(d.Context(), broker.BindRequest{Caller: d.caller(false), InstanceID: "i", BindingID: id, Predecessor: predecessor})
}

// rotatable is a desk with a ready instance and a binding "a" of an application.
func rotatable(t *testing.T, plan string) *desk {
	t.Helper()
	d := newDesk(t)
	expect.Get(d.put(plan, d.caller(false), ""))(t)
	expect.Get(d.Bind(t.Context(), broker.BindRequest{Caller: d.caller(false), InstanceID: "i", BindingID: "a",
		ServiceID: d.ids["demo"], PlanID: d.ids[plan], AppGUID: "app", Parameters: raw(`{"delay_seconds":0}`)}))(t)
	return d
}

func TestRotation(t *testing.T) {
	d := rotatable(t, "rotatable")
	rotate := func(want broker.Effect, rule, id, predecessor string) any {
		t.Helper()
		r, err := d.rotate(id, predecessor)
		d.gives(want, rule)(r, err)
		return r.Grant.Credentials["password"]
	}
	first := expect.Get(d.View(t.Context(), d.caller(false), "i", "a"))(t).Grant.Credentials["password"]
	next := rotate(broker.Created, "ROT-01", "b", "a")
	if next == first {
		t.Error("ROT-01: the successor has the predecessor's credentials")
	}
	if r := d.record(boundKey); r.AppGUID != "app" || r.Predecessor != "a" || r.Attributes.PlanID != d.ids["rotatable"] {
		t.Errorf("ROT-01: recorded %q %q %q", r.AppGUID, r.Predecessor, r.Attributes.PlanID)
	}
	for id, want := range map[string]any{"a": first, "b": next} { // side by side
		v, err := d.View(t.Context(), d.caller(false), "i", id)
		if err != nil || v.Grant.Credentials["password"] != want || string(v.Parameters) != `{"delay_seconds":0}` {
			t.Errorf("ROT-03: %s: %v %s", id, err, v.Parameters)
		}
	}
	if rotate(broker.Done, "ROT-07", "b", "a") != next {
		t.Error("ROT-07: the repetition has other credentials")
	}
	refused(t, lifecycle.Conflict, expect.Err(d.rotate("b", "other")), "ROT-07")
	// A successor can be rotated too, and after its predecessor has gone.
	expect.Get(d.unbind("a", d.caller(false)))(t)
	rotate(broker.Done, "ROT-07", "b", "a")
	rotate(broker.Created, "ROT-01", "c", "b")
}

func TestRotationIsRefused(t *testing.T) {
	d := rotatable(t, "rotatable")
	type request = broker.BindRequest
	const bad = lifecycle.BadRequest
	rotate := func(change func(*request)) (broker.Result, error) {
		q := request{Caller: d.caller(false), InstanceID: "i", BindingID: "b", Predecessor: "a"}
		change(&q)
		r, err := d.Bind(t.Context(), q)
		return r, err
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*request)
		want   lifecycle.Reason
	}{
		"Unknown":    {"ROT-04: there is no such binding", func(q *request) { q.Predecessor = "none" }, bad},
		"Itself":     {"ROT-04: nor is it its own predecessor", func(q *request) { q.Predecessor = "b" }, bad},
		"NoInstance": {"there is nothing to bind", func(q *request) { q.InstanceID = "none" }, lifecycle.NotFound},
		"Service":    {"ROT-02: it must match", func(q *request) { q.ServiceID = "other" }, bad},
		"Plan":       {"ROT-02: it must match", func(q *request) { q.PlanID = d.ids["sync"] }, bad},
		"App":        {"ROT-01: it is taken over", func(q *request) { q.AppGUID = "other" }, bad},
		"Route":      {"ROT-01: so is the route", func(q *request) { q.Route = "r.example" }, bad},
		"Parameters": {"ROT-01: and the parameters", func(q *request) { q.Parameters = raw(`{"delay_seconds":1}`) }, bad},
		"Existing": {"ROT-07: the id is a first binding's", func(q *request) { q.BindingID, q.Predecessor = "a", "c" },
			lifecycle.Conflict},
	} {
		t.Run(name, func(t *testing.T) { refused(t, tc.want, expect.Err(rotate(tc.change)), "%s", tc.reason) })
	}
	expect.Same(t, "the record of what was refused", int64(0), d.record(boundKey).Version)
	// A rotation may repeat its predecessor's members.
	d.gives(broker.Created, "ROT-02")(rotate(func(q *request) {
		q.ServiceID, q.PlanID, q.AppGUID, q.Parameters = d.ids["demo"], d.ids["rotatable"], "app", raw(`{"delay_seconds":0.0}`)
	}))
}

func TestOnlyRotatablePlansRotate(t *testing.T) {
	d := rotatable(t, "sync")
	refused(t, lifecycle.BadRequest, expect.Err(d.rotate("b", "a")), "ROT-05")
}

// ROT-04, ROT-06: a predecessor that is not there yet, or no more.
func TestPredecessorsInEveryState(t *testing.T) {
	expiring := func(after time.Duration) func(d *desk, b *lifecycle.Record) {
		return func(d *desk, b *lifecycle.Record) {
			grant := `{"expires_at":"` + d.now().Add(after).Format(time.RFC3339) + `"}`
			b.Grant = expect.Get(d.Vault.Seal(d.Context(), vault.Label{Key: b.Key, Member: vault.Grant}, []byte(grant)))(d.T)
		}
	}
	state := func(s lifecycle.State) func(*desk, *lifecycle.Record) {
		return func(_ *desk, b *lifecycle.Record) { b.State = s }
	}
	for name, tc := range map[string]struct {
		change func(d *desk, b *lifecycle.Record)
		want   lifecycle.Reason
	}{
		"Creating":     {state(lifecycle.Creating), lifecycle.ConcurrencyError},
		"Deleting":     {state(lifecycle.Deleting), lifecycle.ConcurrencyError},
		"CreateFailed": {state(lifecycle.CreateFailed), lifecycle.BadRequest},
		"DeleteFailed": {state(lifecycle.DeleteFailed), lifecycle.BadRequest},
		"Deleted":      {state(lifecycle.Deleted), lifecycle.BadRequest},
		"OfAnother":    {func(_ *desk, b *lifecycle.Record) { b.InstanceIncarnation = "other" }, lifecycle.BadRequest},
		"Expired":      {expiring(-time.Second), lifecycle.BadRequest},
		"NotExpired":   {expiring(time.Hour), -1},
	} {
		t.Run(name, func(t *testing.T) {
			d := rotatable(t, "rotatable")
			b := d.record(sourceKey.BindingKey("a"))
			tc.change(d, &b)
			d.commit(ledger.Put(b))
			refused(t, tc.want, expect.Err(d.rotate("b", "a")), "a rotation")
		})
	}
}
