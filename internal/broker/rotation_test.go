package broker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
)

// rotate binds id as the successor of predecessor, naming nothing else.
func (d *desk) rotate(id, predecessor string) (broker.BindResult, error) {
	return d.Bind(d.Context(), broker.BindRequest{Caller: d.caller(false), InstanceID: "i", BindingID: id, Predecessor: predecessor})
}

// rotatable is a desk with a ready instance and a binding "a" of an application.
func rotatable(t *testing.T, plan string) *desk {
	t.Helper()
	d := newDesk(t)
	expect.Get(d.put(plan, d.caller(false), ""))(t)
	_, err := d.Bind(t.Context(), broker.BindRequest{Caller: d.caller(false), InstanceID: "i", BindingID: "a",
		ServiceID: d.ids["demo"], PlanID: d.ids[plan], AppGUID: "app", Parameters: json.RawMessage(`{"delay_seconds":0}`)})
	expect.OK(t, err)
	return d
}

func TestRotation(t *testing.T) {
	d := rotatable(t, "rotatable")
	first, err := d.Binding(t.Context(), d.caller(false), "i", "a")
	expect.OK(t, err)
	next, err := d.rotate("b", "a")
	if err != nil || next.Effect != broker.Created {
		t.Fatalf("ROT-01: %v %v", next.Effect, err)
	}
	if next.Grant.Credentials["password"] == first.Grant.Credentials["password"] {
		t.Error("ROT-01: the successor has the predecessor's credentials")
	}
	record, err := d.records.Record(t.Context(), lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}, d.now())
	if err != nil || record.AppGUID != "app" || record.Predecessor != "a" || record.Attributes.PlanID != d.ids["rotatable"] {
		t.Errorf("ROT-01: recorded %q %q %q %v", record.AppGUID, record.Predecessor, record.Attributes.PlanID, err)
	}
	// Side by side.
	for id, want := range map[string]any{"a": first.Grant.Credentials["password"], "b": next.Grant.Credentials["password"]} {
		v, err := d.Binding(t.Context(), d.caller(false), "i", id)
		if err != nil || v.Grant.Credentials["password"] != want || string(v.Parameters) != `{"delay_seconds":0}` {
			t.Errorf("ROT-03: %s: %v %s", id, err, v.Parameters)
		}
	}
	// Again.
	if again, err := d.rotate("b", "a"); err != nil || again.Effect != broker.Done ||
		again.Grant.Credentials["password"] != next.Grant.Credentials["password"] {
		t.Errorf("ROT-07: %v %v", again.Effect, err)
	}
	refused(t, lifecycle.Conflict, expect.Err(d.rotate("b", "other")), "ROT-07")
	// A successor can be rotated too, and after its predecessor has gone.
	expect.Get(d.Delete(t.Context(),
		broker.DeleteRequest{Caller: d.caller(false), InstanceID: "i", BindingID: "a", ServiceID: "x", PlanID: "y"}))(t)

	if again, err := d.rotate("b", "a"); err != nil || again.Effect != broker.Done {
		t.Errorf("ROT-07: %v %v", again.Effect, err)
	}
	if r, err := d.rotate("c", "b"); err != nil || r.Effect != broker.Created {
		t.Errorf("ROT-01: %v %v", r.Effect, err)
	}
}

func TestRotationIsRefused(t *testing.T) {
	d := rotatable(t, "rotatable")
	with := func(change func(*broker.BindRequest)) broker.BindRequest {
		q := broker.BindRequest{Caller: d.caller(false), InstanceID: "i", BindingID: "b", Predecessor: "a"}
		change(&q)
		return q
	}
	cases := map[string]struct {
		reason string
		q      broker.BindRequest
		want   lifecycle.Reason
	}{
		"Unknown":    {"ROT-04: there is no such binding", with(func(q *broker.BindRequest) { q.Predecessor = "none" }), lifecycle.BadRequest},
		"Itself":     {"ROT-04: nor is it its own predecessor", with(func(q *broker.BindRequest) { q.Predecessor = "b" }), lifecycle.BadRequest},
		"NoInstance": {"there is nothing to bind", with(func(q *broker.BindRequest) { q.InstanceID = "none" }), lifecycle.NotFound},
		"Service":    {"ROT-02: it must match", with(func(q *broker.BindRequest) { q.ServiceID = "other" }), lifecycle.BadRequest},
		"Plan":       {"ROT-02: it must match", with(func(q *broker.BindRequest) { q.PlanID = d.ids["sync"] }), lifecycle.BadRequest},
		"App":        {"ROT-01: it is taken over", with(func(q *broker.BindRequest) { q.AppGUID = "other" }), lifecycle.BadRequest},
		"Route":      {"ROT-01: so is the route", with(func(q *broker.BindRequest) { q.Route = "r.example" }), lifecycle.BadRequest},
		"Parameters": {"ROT-01: and the parameters",
			with(func(q *broker.BindRequest) { q.Parameters = json.RawMessage(`{"delay_seconds":1}`) }), lifecycle.BadRequest},
		"Existing": {"ROT-07: the id is a first binding's", with(func(q *broker.BindRequest) { q.BindingID, q.Predecessor = "a", "c" }),
			lifecycle.Conflict},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := d.Bind(t.Context(), tc.q); reason(err) != tc.want {
				t.Errorf("%s: %v, want reason %v", tc.reason, err, tc.want)
			}
		})
	}
	if _, err := d.records.Record(t.Context(), lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}, d.now()); err != nil {
		t.Error(err)
	}
	// A rotation may repeat its predecessor's members.
	q := with(func(q *broker.BindRequest) {
		q.ServiceID, q.PlanID, q.AppGUID, q.Parameters = d.ids["demo"], d.ids["rotatable"], "app", json.RawMessage(`{"delay_seconds":0.0}`)
	})
	if r, err := d.Bind(t.Context(), q); err != nil || r.Effect != broker.Created {
		t.Errorf("ROT-02: %v %v", r.Effect, err)
	}
}

func TestOnlyRotatablePlansRotate(t *testing.T) {
	d := rotatable(t, "sync")
	refused(t, lifecycle.BadRequest, expect.Err(d.rotate("b", "a")), "ROT-05")
}

// ROT-04, ROT-06: a predecessor that is not there yet, or no more.
func TestPredecessorsInEveryState(t *testing.T) {
	grant := func(d *desk, b lifecycle.Record, g string) lifecycle.Sealed {
		sealed, err := d.Vault.Seal(d.Context(), vault.Label{Key: b.Key, Member: vault.Grant}, []byte(g))
		expect.OK(d.T, err)
		return sealed
	}
	cases := map[string]struct {
		change func(d *desk, b *lifecycle.Record)
		want   lifecycle.Reason
	}{
		"Creating":     {func(_ *desk, b *lifecycle.Record) { b.State = lifecycle.Creating }, lifecycle.ConcurrencyError},
		"Deleting":     {func(_ *desk, b *lifecycle.Record) { b.State = lifecycle.Deleting }, lifecycle.ConcurrencyError},
		"CreateFailed": {func(_ *desk, b *lifecycle.Record) { b.State = lifecycle.CreateFailed }, lifecycle.BadRequest},
		"DeleteFailed": {func(_ *desk, b *lifecycle.Record) { b.State = lifecycle.DeleteFailed }, lifecycle.BadRequest},
		"Deleted":      {func(_ *desk, b *lifecycle.Record) { b.State = lifecycle.Deleted }, lifecycle.BadRequest},
		"OfAnother":    {func(_ *desk, b *lifecycle.Record) { b.InstanceIncarnation = "other" }, lifecycle.BadRequest},
		"Expired": {func(d *desk, b *lifecycle.Record) {
			b.Grant = grant(d, *b, `{"expires_at":"`+d.now().Add(-time.Second).Format(time.RFC3339)+`"}`)
		}, lifecycle.BadRequest},
		"NotExpired": {func(d *desk, b *lifecycle.Record) {
			b.Grant = grant(d, *b, `{"expires_at":"`+d.now().Add(time.Hour).Format(time.RFC3339)+`"}`)
		}, -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := rotatable(t, "rotatable")
			b, err := d.records.Record(t.Context(), lifecycle.Key{Platform: "p", Instance: "i", Binding: "a"}, d.now())
			expect.OK(t, err)
			tc.change(d, &b)
			expect.OK(t, d.records.Commit(t.Context(), ledger.Put(b)))
			if _, err := d.rotate("b", "a"); reason(err) != tc.want {
				t.Errorf("answered %v, want reason %v", err, tc.want)
			}
		})
	}
}
