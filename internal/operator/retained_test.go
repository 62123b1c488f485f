package operator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// An operator allows that what is retained is given back, and learns what is to be
// ordered for it: that works.
func TestUndelete(t *testing.T) {
	s := newSite(t)
	service, plan := s.plan("retained")
	order := func(id, parameters string) error {
		c := s.caller()
		c.AcceptsIncomplete = false
		_, err := s.broker.Provision(t.Context(), broker.ProvisionRequest{
			Caller: c, InstanceID: id, ServiceID: service, PlanID: plan, OrganizationGUID: "o", SpaceGUID: "s", Parameters: []byte(parameters),
		})
		return err
	}
	remove := func(id string) error {
		c := s.caller()
		c.AcceptsIncomplete = false
		_, err := s.broker.Delete(t.Context(), broker.DeleteRequest{Caller: c, InstanceID: id, ServiceID: service, PlanID: plan})
		return err
	}
	if err := errors.Join(order("i", `{}`), remove("i")); err != nil {
		t.Fatal(err)
	}
	for name, u := range map[string]operator.Undeletion{
		"Unknown": {ID: "x"}, "OtherPlatform": {ID: "i", Platform: "other"}, "NoID": {},
	} {
		if _, err := s.console.Undelete(t.Context(), u); !refused(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	out, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: "i"})
	if err != nil || out.Service != "demo" || out.Plan != "retained" || out.Parameter != "restore_from" || out.Retained.SpaceGUID != "s" {
		t.Fatalf("%+v %v", out, err)
	}
	if again, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: out.Handle}); err != nil || again.Handle != out.Handle {
		t.Errorf("allowed again: %+v %v", again, err)
	}
	if err := order("new", `{"`+out.Parameter+`":"`+out.Handle+`"}`); err != nil {
		t.Fatal(err)
	}
	if page, _, err := s.console.Retained(t.Context(), ""); err != nil || len(page) != 0 {
		t.Errorf("given back, and on record: %+v %v", page, err)
	}
	if _, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: "i"}); !refused(err) {
		t.Errorf("it was given back twice: %v", err)
	}
}

// What is not to be given back is refused, and says why.
func TestUndeleteIsRefused(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newSite(t)
	service, plan := s.plan("retained")
	put := func(id, incarnation string, change func(*lifecycle.Retained)) {
		t.Helper()
		r := lifecycle.Record{Key: lifecycle.Key{Platform: "p", Instance: id}, Incarnation: incarnation, Provider: "demo",
			Attributes: lifecycle.Attributes{ServiceID: service, PlanID: plan, OrganizationGUID: "o", SpaceGUID: "s"}}.Retain("kept", now, now)
		change(&r)
		if err := s.console.Records.Commit(t.Context(), ledger.Put(r)); err != nil {
			t.Fatal(err)
		}
	}
	same := func(*lifecycle.Retained) {}
	put("twice", "1", same)
	put("twice", "2", same)
	put("taken", "1", func(r *lifecycle.Retained) { *r = r.Taken(lifecycle.Key{Platform: "p", Instance: "n"}, "op", now) })
	put("removed", "1", func(r *lifecycle.Retained) { *r = r.BeginRemoval("op", now) })
	put("nowhere", "1", func(r *lifecycle.Retained) { r.OrganizationGUID, r.SpaceGUID = "", "" })
	put("unoffered", "1", func(r *lifecycle.Retained) { r.ServiceID = "gone" })
	for id, why := range map[string]string{
		"twice": "twice@1", "taken": `"n"`, "removed": "no way back", "nowhere": "name the organization", "unoffered": "restore_parameter",
	} {
		_, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: id})
		if !refused(err) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", id, err)
		}
	}
	out, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: "nowhere", Organization: "o2", Space: "s2"})
	if err != nil || out.Retained.SpaceGUID != "s2" || out.Retained.OrganizationGUID != "o2" {
		t.Errorf("%+v %v", out, err)
	}
	if _, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: "twice@2"}); err != nil {
		t.Error(err)
	}
}

// A rebuild from what exists alone finds what is retained, and never takes it for the
// instance, which is deleted.
func TestRebuildOfWhatIsRetained(t *testing.T) {
	before := newSite(t)
	service, plan := before.plan("retained")
	c := before.caller()
	c.AcceptsIncomplete = false
	_, err := before.broker.Provision(t.Context(), broker.ProvisionRequest{
		Caller: c, InstanceID: "i", ServiceID: service, PlanID: plan, OrganizationGUID: "o", SpaceGUID: "s",
	})
	if err == nil {
		_, err = before.broker.Delete(t.Context(), broker.DeleteRequest{Caller: c, InstanceID: "i", ServiceID: service, PlanID: plan})
	}
	if err != nil {
		t.Fatal(err)
	}
	was, _, err := before.console.Retained(t.Context(), "")
	if err != nil || len(was) != 1 {
		t.Fatal(was, err)
	}
	s := before.over()
	s.clock = before.clock.Add(time.Hour)
	out, err := s.console.Rebuild(t.Context())
	if err != nil || len(out.Retained) != 1 || len(out.Instances)+len(out.Unknown)+len(out.Gone)+out.Restless != 0 {
		t.Fatalf("%+v %v", out, err)
	}
	is, _, err := s.console.Retained(t.Context(), "")
	if err != nil || len(is) != 1 || is[0].Key != was[0].Key || is[0].Incarnation != was[0].Incarnation || is[0].Name != was[0].Name ||
		is[0].PlanID != plan || is[0].Until.Before(s.clock.Add(lifecycle.QuarantineTime)) {
		t.Errorf("%+v, and was %+v: %v", is, was, err)
	}
	if _, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: "i"}); !refused(err) {
		t.Errorf("nobody knows where it was ordered: %v", err)
	}
	if again, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: "i", Organization: "o", Space: "s"}); err != nil ||
		again.Plan != "retained" {
		t.Errorf("%+v %v", again, err)
	}
	if out, err := s.console.Rebuild(t.Context()); err != nil || out.Kept != 1 || len(out.Retained) != 0 {
		t.Errorf("again: %+v %v", out, err)
	}
}

// With the key, the state of what is retained is lost: it is what the thing says, so that
// another instance can still be made of it.
func TestRebuildOfARetainedStateThatIsLost(t *testing.T) {
	for name, opens := range map[string]bool{"Opens": true, "Lost": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			service, plan := s.plan("retained")
			c := s.caller()
			c.AcceptsIncomplete = false
			_, err := s.broker.Provision(t.Context(), broker.ProvisionRequest{
				Caller: c, InstanceID: "i", ServiceID: service, PlanID: plan, OrganizationGUID: "o", SpaceGUID: "s",
			})
			if err == nil {
				_, err = s.broker.Delete(t.Context(), broker.DeleteRequest{Caller: c, InstanceID: "i", ServiceID: service, PlanID: plan})
			}
			was, _, err2 := s.ledger.AllRetained(t.Context(), "")
			if err := errors.Join(err, err2); err != nil || len(was) != 1 {
				t.Fatal(was, err)
			}
			sealed, err := s.console.Vault.Seal(t.Context(), vault.Label{Key: was[0].Key, Member: vault.State}, []byte(`{"format":1}`))
			was[0].Made.State = sealed
			if err := errors.Join(err, s.ledger.Commit(t.Context(), ledger.Put(was[0]))); err != nil {
				t.Fatal(err)
			}
			if !opens {
				s.sealsWith(local(t, 1))
			}
			if _, err := s.console.Rebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
			is, _, err := s.ledger.AllRetained(t.Context(), "")
			if err != nil || len(is) != 1 || (is[0].Made.State != nil) != opens || is[0].Until != was[0].Until {
				t.Errorf("%+v %v", is, err)
			}
		})
	}
}
