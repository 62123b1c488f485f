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
	for i, space := range []string{"live", "live", "test", ""} {
		r := d.ready()
		r.Key = lifecycle.Key{Platform: "cf", Instance: fmt.Sprint("i", i)}
		names, err := json.Marshal(map[string]string{"platform": "cloudfoundry", "space_name": space,
			"organization_name": map[bool]string{true: "shop <b>"}[space != ""]})
		if err != nil {
			t.Fatal(err)
		}
		r.Attributes.Names, err = d.data.Seal(t.Context(), vault.Label{Key: r.Key, Member: vault.Names}, names)
		if err != nil {
			t.Fatal(err)
		}
		if space == "test" {
			r.Attributes.PlanID = "gone"
		}
		d.put(r)
	}
	w := d.console("costs")
	d.sees(w, http.StatusOK, "instances?organization=shop+%3Cb%3E&amp;space=live", "shop &lt;b&gt; / live",
		"shop &lt;b&gt; / test", "no space, cf", "EUR 22.00 or USD 25.00 monthly", "EUR 11.00 or USD 12.50 monthly", "no invoice",
		`data-head="No price">1<`)
	d.lacks(w.Body.String(), "are counted")
}
