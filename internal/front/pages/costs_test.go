package pages_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
)

// The console adds list prices up by organization and space, and knows who has no space.
func TestCosts(t *testing.T) {
	d := newDesk(t)
	d.signInTo(reads)
	d.sees(d.console("costs"), http.StatusOK, "There is no instance.")
	for i, space := range []string{"live", "live", "test", "nameless", ""} {
		r := d.ready()
		r.Key = lifecycle.Key{Platform: "cf", Instance: fmt.Sprint("i", i)}
		r.Attributes.Names = nil
		if space != "" {
			r.Attributes.OrganizationGUID, r.Attributes.SpaceGUID = "o&1", "s-"+space
		}
		if space == "live" || space == "test" {
			r.Attributes.Names = d.seal(r.Key, vault.Names,
				`{"platform":"cloudfoundry","space_name":"`+space+`","organization_name":"shop <b>"}`)
		}
		if space == "test" {
			r.Attributes.PlanID = "gone"
		}
		d.put(r)
	}
	w := d.console("costs")
	d.sees(w, http.StatusOK, "instances?organization=o%261&amp;space=s-live", "shop &lt;b&gt; / live", "shop &lt;b&gt; / test",
		"o&amp;1 / s-nameless", "not known, cf", "EUR 22.00 or USD 25.00 monthly", "EUR 11.00 or USD 12.50 monthly", "no invoice",
		`data-head="No price">1<`)
	d.lacks(w, "are counted")
}

// A page that cannot count all says so.
func TestCostsOfTheLatest(t *testing.T) {
	d := newDesk(t)
	d.signInTo(reads)
	for i := range 2020 {
		d.put(lifecycle.Record{Key: lifecycle.Key{Platform: "cf", Instance: fmt.Sprintf("i-%04d", i)}, State: lifecycle.Ready,
			Created: epoch, Attributes: lifecycle.Attributes{ServiceID: "s-pg", PlanID: "p-small"}})
	}
	d.sees(d.console("costs"), http.StatusOK, "Only the latest 2000 instances are counted", "USD 25000.00 monthly")
}

// A binding whose credentials expire says until when they are valid and when to rotate them; other bindings say
// nothing of that.
func TestBindingsThatExpire(t *testing.T) {
	d := open(t)
	bind := func(id string, renew, expires time.Duration) {
		r := lifecycle.Record{Key: own.BindingKey(id), State: lifecycle.Ready, Created: epoch}
		if expires != 0 {
			r.RenewBefore, r.ExpiresAt = epoch.Add(renew), epoch.Add(expires)
		}
		d.put(r)
	}
	bind("for-good", 0, 0)
	d.lacks(d.page(own), "Expires")
	bind("young", 48*time.Hour, 72*time.Hour)
	bind("old", -2*time.Hour, 5*time.Hour)
	bind("late", -96*time.Hour, 0-24*time.Hour)
	w := d.page(own)
	d.sees(w, http.StatusOK, "in 2 days", "in 3 days", "To be rotated", "in 5 hours", "Expired", "4 days ago")
	d.sees(w, http.StatusOK,
		`<code>for-good</code></td><td role="cell" data-head="Rotate by"></td><td role="cell" data-head="Expires"></td>`)
}
