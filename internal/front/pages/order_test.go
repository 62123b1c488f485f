package pages_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/front/rates"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// ordered is a broker that notes what it is told, and answers as a test says.
type ordered struct {
	updates []broker.UpdateRequest
	deletes []broker.DeleteRequest
	err     error
}

func (o *ordered) Update(_ context.Context, q broker.UpdateRequest) (broker.Result, error) {
	o.updates = append(o.updates, q)
	return broker.Result{}, o.err
}

func (o *ordered) Delete(_ context.Context, q broker.DeleteRequest) (broker.Result, error) {
	o.deletes = append(o.deletes, q)
	return broker.Result{}, o.err
}

// order is the form by which a person orders something, or the question of whether to.
func (d *desk) order(method, do string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	d.Helper()
	query := url.Values{"platform": {own.Platform}, "id": {own.Instance}, "do": {do}}.Encode()
	return d.ask(method, "/dashboard/order?"+query, url.Values{}, change...)
}

// acting is the page of an instance for who may order something.
func acting(k lifecycle.Key) pages.Scope {
	s := pages.ScopeOf(k)
	s.Acts = true
	return s
}

// orderly is a desk with an instance that can be used, a broker that takes orders, and a session that acts.
func orderly(t *testing.T) (*desk, *ordered) {
	t.Helper()
	d, to := stocked(t), &ordered{}
	d.server.Broker = to
	d.signInTo(acting(own))
	return d, to
}

// A session that acts has the broker upgrade an instance, and delete again what could not be deleted; each is asked about first.
func TestOrders(t *testing.T) {
	d, to := orderly(t)
	d.sees(d.page(own), http.StatusOK, "order?do=upgrade&amp;id=orders-db&amp;platform=cf")
	d.sees(d.order("GET", "upgrade"), http.StatusOK, "Upgrade this instance?", "Version 2.0.0", "What may go wrong")
	expect.Same(t, "updates by looking at the question", 0, len(to.updates))
	for range 2 { // the same order
		d.leads(d.order("POST", "upgrade"), pages.InstancePath(own))
	}
	if len(to.updates) != 2 {
		t.Fatalf("%d updates", len(to.updates))
	}
	if q := to.updates[0]; q.Platform != "cf" || q.InstanceID != own.Instance || q.ServiceID != "s-pg" || q.PlanID != "" ||
		q.Parameters != nil || !q.AcceptsIncomplete || *q.MaintenanceVersion != "2.0.0" {
		t.Errorf("the update is %+v", q)
	}
	d.sees(d.order("POST", "delete"), http.StatusConflict, "Nothing was done")

	failed := d.ready()
	failed.Version, failed.State = 1, lifecycle.DeleteFailed
	failed.Operation = &lifecycle.Operation{ID: "op", Kind: "deprovision", Phase: lifecycle.Failed, Description: "It is in use."}
	d.put(failed)
	d.sees(d.page(own), http.StatusOK, "order?do=delete&amp;", "Delete it again")
	d.sees(d.order("GET", "delete"), http.StatusOK, "Delete this instance again?")
	d.sees(d.order("POST", "delete"), http.StatusSeeOther)
	if len(to.deletes) != 1 || to.deletes[0].InstanceID != own.Instance || to.deletes[0].Platform != "cf" ||
		to.deletes[0].ServiceID == "" || to.deletes[0].PlanID == "" || to.deletes[0].BindingID != "" {
		t.Errorf("the deletions are %+v", to.deletes)
	}
	d.sees(d.order("POST", "upgrade"), http.StatusConflict, "Nothing was done")
	d.sees(d.order("POST", "settle"), http.StatusConflict, "Nothing was done")
}

// A broker's refusal is shown in its words; an outage is not, and what has failed is on the instance's page.
func TestOrdersThatAreRefused(t *testing.T) {
	d, to := orderly(t)
	to.err = lifecycle.Refuse(lifecycle.ConcurrencyError, "Another operation runs.")
	d.sees(d.order("POST", "upgrade"), http.StatusConflict, "Nothing was done", "Another operation runs.")
	to.err = errors.New("canary of the table")
	w := d.order("POST", "upgrade")
	d.sees(w, http.StatusServiceUnavailable, "cannot be shown now")
	d.lacks(w, "canary")
	to.err = lifecycle.Refuse(lifecycle.OperationFailed, "It has no room.")
	d.sees(d.order("POST", "upgrade"), http.StatusSeeOther) // it fails at once

	// Orders count with the requests of the instance's platform: one that is repeated without end takes nothing from others.
	to.err, to.updates = nil, nil
	d.server.Throttle = rates.New(1, func() time.Time { return d.now })
	for range 2 {
		d.sees(d.order("POST", "upgrade"), http.StatusSeeOther)
	}
	d.sees(d.order("POST", "upgrade"), http.StatusTooManyRequests, "Nothing was done", "in a few seconds")
	expect.Same(t, "updates", 2, len(to.updates))
	d.now = d.now.Add(time.Second)
	d.sees(d.order("POST", "upgrade"), http.StatusSeeOther)
	expect.Same(t, "at other platforms, a wait of", 0, d.server.Throttle.Take("other"))
}

// A session that reads, another instance's session, and another site's page order nothing.
func TestOrdersNeedASessionThatActs(t *testing.T) {
	d, to := open(t), &ordered{}
	d.server.Broker = to
	d.signInTo(acting(lifecycle.Key{Platform: own.Platform, Instance: "other"}))
	d.signInTo(pages.Scope{Console: true, Acts: true})
	d.lacks(d.page(own), "order?")
	d.sees(d.order("GET", "upgrade"), http.StatusForbidden)
	d.sees(d.order("POST", "upgrade"), http.StatusForbidden)
	d.signInTo(acting(own))
	d.sees(d.order("POST", "upgrade", foreign), http.StatusForbidden)
	d.now = d.now.Add(pages.SessionTime)
	d.sees(d.order("POST", "upgrade"), http.StatusForbidden)
	d.now = epoch
	d.sees(d.ask("POST", strings.Replace(pages.InstancePath(own), "instance", "leave", 1), url.Values{}), http.StatusOK)
	d.sees(d.order("POST", "upgrade"), http.StatusForbidden)
	expect.Same(t, "updates", nil, to.updates)
}
