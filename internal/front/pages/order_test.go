package pages_test

import (
	"context"
	"errors"
	"net/http"
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

func orderOf(k lifecycle.Key, do string) string {
	return "/dashboard/order?" + url.Values{"platform": {k.Platform}, "id": {k.Instance}, "do": {do}}.Encode()
}

// acting is the page of an instance for who may order something.
func acting(k lifecycle.Key) pages.Scope {
	s := pages.ScopeOf(k)
	s.Acts = true
	return s
}

// A session that acts has the broker upgrade an instance, and delete again what could not be deleted; each is asked
// about first.
func TestOrders(t *testing.T) {
	d, to := newDesk(t), &ordered{}
	d.server.Broker = to
	d.put(d.ready())
	d.signInTo(acting(own))
	d.sees(d.page(own), http.StatusOK, "order?do=upgrade&amp;id=orders-db&amp;platform=cf")
	d.sees(d.ask("GET", orderOf(own, "upgrade"), nil), http.StatusOK, "Upgrade this instance?", "Version 2.0.0",
		"Why it may hurt")
	if len(to.updates) != 0 {
		t.Fatal("looking at the question upgrades")
	}
	for range 2 { // the same order
		if w := d.ask("POST", orderOf(own, "upgrade"), url.Values{}); w.Code != http.StatusSeeOther ||
			w.Header().Get("Location") != pages.InstancePath(own) {
			t.Errorf("the order is answered %d to %q", w.Code, w.Header().Get("Location"))
		}
	}
	if len(to.updates) != 2 {
		t.Fatalf("%d updates", len(to.updates))
	}
	if q := to.updates[0]; q.Platform != "cf" || q.InstanceID != own.Instance || q.ServiceID != "s-pg" || q.PlanID != "" ||
		q.Parameters != nil || !q.AcceptsIncomplete || *q.MaintenanceVersion != "2.0.0" {
		t.Errorf("the update is %+v", q)
	}
	d.sees(d.ask("POST", orderOf(own, "delete"), url.Values{}), http.StatusConflict, "Nothing was done")

	failed := d.ready()
	failed.Version, failed.State = 1, lifecycle.DeleteFailed
	failed.Operation = &lifecycle.Operation{ID: "op", Kind: "deprovision", Phase: lifecycle.Failed, Description: "It is in use."}
	d.put(failed)
	d.sees(d.page(own), http.StatusOK, "order?do=delete&amp;", "Delete it again")
	d.sees(d.ask("GET", orderOf(own, "delete"), nil), http.StatusOK, "Delete this instance again?")
	d.sees(d.ask("POST", orderOf(own, "delete"), url.Values{}), http.StatusSeeOther)
	if len(to.deletes) != 1 || to.deletes[0].InstanceID != own.Instance || to.deletes[0].Platform != "cf" ||
		to.deletes[0].ServiceID == "" || to.deletes[0].PlanID == "" || to.deletes[0].BindingID != "" {
		t.Errorf("the deletions are %+v", to.deletes)
	}
	d.sees(d.ask("POST", orderOf(own, "upgrade"), url.Values{}), http.StatusConflict, "Nothing was done")
	d.sees(d.ask("POST", orderOf(own, "settle"), url.Values{}), http.StatusConflict, "Nothing was done")
}

// A broker's refusal is shown in its words; an outage is not, and what has failed is on the instance's page.
func TestOrdersThatAreRefused(t *testing.T) {
	d, to := newDesk(t), &ordered{}
	d.server.Broker = to
	d.put(d.ready())
	d.signInTo(acting(own))
	give := func() int { return d.ask("POST", orderOf(own, "upgrade"), url.Values{}).Code }
	to.err = lifecycle.Refuse(lifecycle.ConcurrencyError, "Another operation runs.")
	d.sees(d.ask("POST", orderOf(own, "upgrade"), url.Values{}), http.StatusConflict, "Nothing was done",
		"Another operation runs.")
	to.err = errors.New("canary of the table")
	w := d.ask("POST", orderOf(own, "upgrade"), url.Values{})
	d.sees(w, http.StatusServiceUnavailable, "cannot be shown now")
	d.lacks(w.Body.String(), "canary")
	to.err = lifecycle.Refuse(lifecycle.OperationFailed, "It has no room.")
	expect.Same(t, "an upgrade that fails at once is answered", http.StatusSeeOther, give())
}

// Orders count with the requests of the instance's platform: a person who repeats one without end takes
// nothing from other platforms.
func TestOrdersCountAsRequests(t *testing.T) {
	d, to := newDesk(t), &ordered{}
	d.server.Broker = to
	d.server.Throttle = rates.New(1, func() time.Time { return d.now })
	d.put(d.ready())
	d.signInTo(acting(own))
	for range 2 {
		d.sees(d.ask("POST", orderOf(own, "upgrade"), url.Values{}), http.StatusSeeOther)
	}
	d.sees(d.ask("POST", orderOf(own, "upgrade"), url.Values{}), http.StatusTooManyRequests, "Nothing was done",
		"in a few seconds")
	expect.Same(t, "updates", 2, len(to.updates))
	d.now = d.now.Add(time.Second)
	d.sees(d.ask("POST", orderOf(own, "upgrade"), url.Values{}), http.StatusSeeOther)
	expect.Same(t, "at other platforms, a wait of", 0, d.server.Throttle.Take("other"))
}

// A session that reads, another instance's session, and another site's page order nothing.
func TestOrdersNeedASessionThatActs(t *testing.T) {
	d, to := newDesk(t), &ordered{}
	d.server.Broker = to
	d.put(d.ready())
	other := own
	other.Instance = "other"
	d.signIn(own)
	d.signInTo(acting(other))
	d.signInTo(pages.Scope{Console: true, Acts: true})
	d.lacks(d.page(own).Body.String(), "order?")
	for _, method := range []string{"GET", "POST"} {
		d.sees(d.ask(method, orderOf(own, "upgrade"), url.Values{}), http.StatusForbidden)
	}
	d.signInTo(acting(own))
	foreign := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	d.sees(d.ask("POST", orderOf(own, "upgrade"), url.Values{}, foreign), http.StatusForbidden)
	d.now = d.now.Add(pages.SessionTime)
	d.sees(d.ask("POST", orderOf(own, "upgrade"), url.Values{}), http.StatusForbidden)
	d.now = epoch
	d.sees(d.ask("POST", strings.Replace(pages.InstancePath(own), "instance", "leave", 1), url.Values{}), http.StatusOK)
	d.sees(d.ask("POST", orderOf(own, "upgrade"), url.Values{}), http.StatusForbidden)
	if len(to.updates) != 0 {
		t.Errorf("the broker was told %+v", to.updates)
	}
}

func (d *desk) lacks(page, text string) {
	d.Helper()
	if strings.Contains(page, text) {
		d.Errorf("the page has %q:\n%s", text, page)
	}
}
