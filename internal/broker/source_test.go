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

var restoredKey = lifecycle.Key{Platform: "p", Instance: "r"}

// restore is a request for "r" to be restored from "i".
func (d *desk) restore(change func(*broker.ProvisionRequest)) (broker.Result, error) {
	q := d.order("restorable", d.caller(false))
	q.InstanceID, q.Parameters = "r", raw(`{"restore_from":"i"}`)
	if change != nil {
		change(&q)
	}
	return d.Provision(d.Context(), q)
}

// edit changes the record of the source as something else would.
func (d *desk) edit(change func(*lifecycle.Record)) {
	d.Helper()
	r := d.instance()
	change(&r)
	d.commit(ledger.Put(r))
}

func newSource(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	expect.Get(d.put("sync", d.caller(false), ""))(t)
	d.edit(func(r *lifecycle.Record) { r.Made.Target = lifecycle.Target{Name: "east", Identity: "account"} })
	return d
}

// A restored instance records its source and is made on the source's target. A repeated
// request is still the same one after the source has gone.
func TestRestore(t *testing.T) {
	d := newSource(t)
	source := d.instance()
	d.gives(broker.Created, "the restore")(d.restore(nil))
	r := d.record(restoredKey)
	want := &lifecycle.Source{Instance: "i", Incarnation: source.Incarnation, Operation: source.Operation.ID}
	expect.Same(t, "the source", want, r.Operation.Source)
	expect.Same(t, "the target", source.Made.Target, r.Made.Target)
	expect.Get(d.delete(d.caller(false)))(t)
	d.gives(broker.Done, "the request is repeated without the source")(d.restore(nil))
	for given, reasonWanted := range map[string]lifecycle.Reason{
		`{"restore_from":"i"}`: -1, `{"a":1}`: -1,
		`{"restore_from":"x"}`: lifecycle.BadRequest, `{"restore_from":null}`: lifecycle.BadRequest,
	} {
		_, err := d.Update(t.Context(), broker.UpdateRequest{
			Caller: d.caller(false), InstanceID: "r", ServiceID: d.ids["demo"], Parameters: raw(given),
		})
		if reason(err) != reasonWanted {
			t.Errorf("an update with %s: %v", given, err)
		}
	}
}

// The broker refuses every unusable source in the same words and records nothing, so a
// developer learns nothing about another space.
func TestWhatIsNoSource(t *testing.T) {
	names := func(value string) func(*broker.ProvisionRequest) {
		return func(q *broker.ProvisionRequest) { q.Parameters = raw(`{"restore_from":` + value + `}`) }
	}
	state := func(s lifecycle.State) func(*lifecycle.Record) { return func(r *lifecycle.Record) { r.State = s } }
	cases := map[string]struct {
		edit func(*lifecycle.Record)
		ask  func(*broker.ProvisionRequest)
	}{
		"Absent":            {ask: names(`"absent"`)},
		"Empty":             {ask: names(`""`)},
		"Itself":            {ask: names(`"r"`)},
		"OtherOrganization": {ask: func(q *broker.ProvisionRequest) { q.OrganizationGUID = "other" }},
		"OtherSpace":        {ask: func(q *broker.ProvisionRequest) { q.SpaceGUID = "other" }},
		"OtherPlatform":     {ask: func(q *broker.ProvisionRequest) { q.Platform = "other" }},
		"OtherProvider":     {edit: func(r *lifecycle.Record) { r.Provider = "other" }},
		"Creating":          {edit: state(lifecycle.Creating)},
		"CreateFailed":      {edit: state(lifecycle.CreateFailed)},
		"Updating":          {edit: state(lifecycle.Updating)},
		"Deleting":          {edit: state(lifecycle.Deleting)},
		"DeleteFailed":      {edit: state(lifecycle.DeleteFailed)},
		"Deleted":           {edit: state(lifecycle.Deleted)},
		"Unusable":          {edit: func(r *lifecycle.Record) { r.Unusable = true }},
		"PlaceLost": {edit: func(r *lifecycle.Record) { r.Attributes.OrganizationGUID, r.Attributes.SpaceGUID = "", "" },
			ask: func(q *broker.ProvisionRequest) { q.OrganizationGUID, q.SpaceGUID = "", "" }},
	}
	want := lifecycle.RefuseSource("restore_from").Error()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := newSource(t)
			if tc.edit != nil {
				d.edit(tc.edit)
			}
			_, err := d.restore(tc.ask)
			if reason(err) != lifecycle.BadRequest || err.Error() != want {
				t.Errorf("%v", err)
			}
			for _, platform := range []string{"p", "other"} {
				r := d.record(lifecycle.Key{Platform: platform, Instance: "r"})
				expect.Same(t, "the record of what was refused", int64(0), r.Version)
			}
		})
	}
}

// A developer gets a kept instance back by its handle, in the space where it was ordered, once an operator has allowed
// it. Everybody else gets one and the same refusal, whether or not the instance exists.
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
		"BeingDeleted": {func(r *lifecycle.Record) { *r, _ = r.BeginDelete(lifecycle.Start{ID: "op", Now: r.Due}) }, nil, ""},
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
