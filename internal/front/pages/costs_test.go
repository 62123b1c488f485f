package pages_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
)

// The console adds list prices up by organization and space, and knows who has no space.
func TestCosts(t *testing.T) {
	d := newDesk(t)
	d.signInTo(pages.Scope{Console: true})
	d.sees(d.console("costs"), http.StatusOK, "There is no instance.")
	for i, space := range []string{"live", "live", "test", "nameless", ""} {
		r := d.ready()
		r.Key = lifecycle.Key{Platform: "cf", Instance: fmt.Sprint("i", i)}
		names, err := json.Marshal(map[string]string{
			"platform": "cloudfoundry", "space_name": space, "organization_name": "shop <b>",
		})
		if err != nil {
			t.Fatal(err)
		}
		r.Attributes.Names = nil
		if space != "" {
			r.Attributes.OrganizationGUID, r.Attributes.SpaceGUID = "o&1", "s-"+space
		}
		if space == "live" || space == "test" {
			r.Attributes.Names, err = d.data.Seal(t.Context(), vault.Label{Key: r.Key, Member: vault.Names}, names)
		}
		if err != nil {
			t.Fatal(err)
		}
		if space == "test" {
			r.Attributes.PlanID = "gone"
		}
		d.put(r)
	}
	w := d.console("costs")
	d.sees(w, http.StatusOK, "instances?organization=o%261&amp;space=s-live", "shop &lt;b&gt; / live",
		"shop &lt;b&gt; / test", "o&amp;1 / s-nameless", "not known, cf",
		"EUR 22.00 or USD 25.00 monthly", "EUR 11.00 or USD 12.50 monthly", "no invoice",
		`data-head="No price">1<`)
	d.lacks(w.Body.String(), "are counted")
}

// A page that cannot count all says so.
func TestCostsOfTheLatest(t *testing.T) {
	d := newDesk(t)
	d.signInTo(pages.Scope{Console: true})
	for i := range 2020 {
		d.put(lifecycle.Record{Key: lifecycle.Key{Platform: "cf", Instance: fmt.Sprintf("i-%04d", i)}, State: lifecycle.Ready,
			Created: epoch, Attributes: lifecycle.Attributes{ServiceID: "s-pg", PlanID: "p-small"}})
	}
	d.sees(d.console("costs"), http.StatusOK, "Only the latest 2000 instances are counted", "USD 25000.00 monthly")
}
