package pages

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"

	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/lifecycle"
)

// mostCounted bounds the number of instances whose prices are added up for one page.
const mostCounted = 2000

// A currency is the unit of a price: a code such as usd, and a period such as monthly.
type currency struct{ code, unit string }

// Prices are amounts by currency; amounts in different currencies are not added up.
type prices map[currency]float64

// pricesOf returns the list prices of a plan. It reads the metadata member costs, which platforms
// know: amounts by currency, and a unit. Several amounts in the same currency and unit are added
// up.
func pricesOf(metadata json.RawMessage) prices {
	var m struct {
		Costs []struct {
			Amount map[string]float64 `json:"amount"`
			Unit   string             `json:"unit"`
		} `json:"costs"`
	}
	_ = json.Unmarshal(metadata, &m) // an operator may put any members there
	all := prices{}
	for _, c := range m.Costs {
		for code, amount := range c.Amount {
			all[currency{code, strings.ToLower(c.Unit)}] += amount
		}
	}
	return all
}

// String joins the prices of each unit: EUR 11.00 or USD 12.50 monthly.
func (p prices) String() string {
	units := map[string][]string{}
	for c, amount := range p {
		units[c.unit] = append(units[c.unit], fmt.Sprintf("%s %.2f", strings.ToUpper(c.code), amount))
	}
	var all []string
	for unit, amounts := range sorted.Map(units) {
		slices.Sort(amounts)
		all = append(all, strings.TrimSpace(strings.Join(amounts, " or ")+" "+unit))
	}
	return strings.Join(all, ", ")
}

// A bill is what the instances of one space cost by the list prices of their plans.
type bill struct {
	latest    lifecycle.Record // its latest instance, which has the current name of the space
	instances int
	unpriced  int
	prices    prices
}

// bills adds up the instances that exist, by organization and space, and reports whether it read
// all of them.
func (v *visit) bills() (all []bill, whole bool) {
	by := map[string]*bill{}
	whole = upTo(v, mostCounted, v.existing, func(r lifecycle.Record) {
		key := fmt.Sprintf("%q %q %q", r.Key.Platform, r.Attributes.OrganizationGUID, r.Attributes.SpaceGUID)
		if by[key] == nil {
			by[key] = &bill{latest: r, prices: prices{}}
		}
		b := by[key]
		b.instances++
		_, p := v.planned(r)
		price := pricesOf(p.Metadata)
		if len(price) == 0 {
			b.unpriced++
		}
		for c, amount := range price {
			b.prices[c] += amount
		}
	})
	for _, b := range sorted.Map(by) {
		all = append(all, *b)
	}
	return all, whole
}

func (v *visit) costs() g.Node {
	bills, whole := v.bills()
	list := listed(v, once(bills), nil, []string{"Where", "Instances", "No price", "List prices"},
		"There is no instance.", func(b bill) []g.Node {
			is := b.latest.Attributes
			in := text("not known, " + short(b.latest.Key.Platform)) // a record that was rebuilt may not know it
			if is.OrganizationGUID+is.SpaceGUID != "" {
				name := first(where(v.namesOf(b.latest)), short(is.OrganizationGUID)+" / "+short(is.SpaceGUID))
				q := url.Values{"organization": {is.OrganizationGUID}, "space": {is.SpaceGUID}}
				in = link("instances?"+q.Encode(), name)
			}
			return []g.Node{in, g.Textf("%d", b.instances), g.Textf("%d", b.unpriced), text(short(b.prices.String()))}
		})
	said := "These are sums of the plans' list prices, not an invoice: AWS bills what is used."
	if !whole {
		said += fmt.Sprintf(" Only the latest %d instances are counted; longshore instances -o json has all.", mostCounted)
	}
	return v.page("Costs", false, hint(said), list)
}
