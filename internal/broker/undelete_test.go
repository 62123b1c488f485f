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

// A developer gets a kept instance back by its handle, in the space where it was ordered,
// once an operator has allowed it. Everybody else gets one and the same refusal, whether or
// not the instance exists.
func TestWhoMayHaveWhatIsKept(t *testing.T) {
	keep := func(t *testing.T, change func(*lifecycle.Record)) (*desk, lifecycle.Record) {
		d := newDesk(t)
		sealed := expect.Get(d.Vault.Seal(t.Context(), vault.Label{Key: sourceKey, Member: vault.State}, []byte("state")))(t)
		r := lifecycle.Record{
			Key: sourceKey.Former("first"), State: lifecycle.Quarantined, Incarnation: "first", Provider: "demo",
			Attributes: lifecycle.Attributes{
				ServiceID: d.ids["demo"], OrganizationGUID: "o", SpaceGUID: "s", Context: raw(`{"namespace":"n"}`)},
			Made:   lifecycle.Made{Broker: "b", Target: lifecycle.Target{Name: "east", Identity: "account"}, State: sealed},
			Leases: []lifecycle.Lease{{Holder: "late", Operation: "deletion", Until: d.now().Add(time.Minute), TimedOut: true}},
			Kept:   &lifecycle.Kept{Since: d.now(), Until: d.now().Add(time.Hour), Freed: d.now()},
			Due:    d.now().Add(time.Hour),
		}
		if change != nil {
			change(&r)
		}
		d.commit(ledger.Put(r))
		return d, d.record(r.Key)
	}
	ask := func(d *desk, handle string, change func(*broker.ProvisionRequest)) error {
		return expect.Err(d.restore(func(q *broker.ProvisionRequest) {
			if q.Parameters = raw(`{"restore_from":"` + handle + `"}`); change != nil {
				change(q)
			}
		}))
	}
	d, _ := keep(t, nil)
	refusal := ask(d, "nothing@first", nil)
	refused(t, lifecycle.BadRequest, refusal, "what there is not")
	for name, tc := range map[string]struct {
		record func(*lifecycle.Record)
		asks   func(*broker.ProvisionRequest)
		handle string
	}{
		"OtherSpace":        {nil, func(q *broker.ProvisionRequest) { q.SpaceGUID = "s2" }, ""},
		"OtherOrganization": {nil, func(q *broker.ProvisionRequest) { q.OrganizationGUID = "o2" }, ""},
		"OtherNamespace":    {nil, func(q *broker.ProvisionRequest) { q.Context = raw(`{"namespace":"n2"}`) }, ""},
		"OtherPlatform":     {nil, func(q *broker.ProvisionRequest) { q.Platform = "p2" }, ""},
		"OtherLife":         {nil, nil, "i@second"},
		"NoLife":            {nil, nil, "i@"},
		"ItsID":             {nil, nil, "i"},
		"OtherProvider":     {func(r *lifecycle.Record) { r.Provider = "postgres" }, nil, ""},
		"NotAllowed":        {func(r *lifecycle.Record) { r.Kept.Freed = time.Time{} }, nil, ""},
		"NoPlace": {func(r *lifecycle.Record) { r.Attributes.SpaceGUID, r.Attributes.OrganizationGUID = "", "" },
			func(q *broker.ProvisionRequest) { q.SpaceGUID, q.OrganizationGUID = "", "" }, ""},
		"BeingDeleted": {func(r *lifecycle.Record) { *r, _, _ = r.BeginDelete(lifecycle.Start{ID: "op", Now: r.Due}) }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := keep(t, tc.record)
			handle := r.Handle()
			if tc.handle != "" {
				handle = tc.handle
			}
			err := ask(d, handle, tc.asks)
			if reason(err) != lifecycle.BadRequest || err.Error() != refusal.Error() {
				t.Errorf("answered %v, want %v", err, refusal)
			}
			expect.Same(t, "what is kept, after a refusal", r, d.record(r.Key))
		})
	}
	d, r := keep(t, nil)
	expect.Get(d.restore(func(q *broker.ProvisionRequest) {
		q.Parameters, q.AcceptsIncomplete = raw(`{"restore_from":"i@first"}`), true
	}))(t)
	i := d.record(restoredKey)
	state, err := d.Vault.Open(t.Context(), vault.Label{Key: restoredKey, Member: vault.State}, i.Made.State)
	if err != nil || string(state) != "state" {
		t.Errorf("its state is %q %v", state, err)
	}
	i.Made.State = nil
	origin := lifecycle.Origin{Instance: "i", Incarnation: "first"}
	expect.Same(t, "where it is made", lifecycle.Made{Broker: "b", Target: r.Made.Target, Origin: origin}, i.Made)
	expect.Same(t, "made of", &lifecycle.Undeletion{Instance: "i", Incarnation: "first", Until: r.Kept.Until,
		Freed: r.Kept.Freed}, i.Undeletes)
	expect.Same(t, "the leases", r.Leases, i.Leases)
	if i.Operation.Source != nil {
		t.Errorf("it is restored from %+v", i.Operation.Source)
	}
	expect.Same(t, "the record of what was kept", int64(0), d.record(r.Key).Version)
}
