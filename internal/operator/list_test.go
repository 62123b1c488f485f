package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pagestest"
)

// leafed gives everything in pages of one record, and counts them, and the records that are read by their keys.
type leafed struct {
	store.Store
	leaves int
	gets   atomic.Int64
	fails  error // beside the second page
}

func (l *leafed) Get(ctx context.Context, key store.Key) (store.Record, error) {
	l.gets.Add(1)
	return l.Store.Get(ctx, key)
}

func (l *leafed) Scan(ctx context.Context, cursor string) (store.Page, error) {
	l.leaves++
	all, err := l.Store.Scan(ctx, "")
	if err != nil || all.Next != "" {
		return store.Page{}, errors.Join(err, errors.New("there is more than this test has records"))
	}
	n := 0
	_, _ = fmt.Sscan(cursor, &n)
	page := store.Page{Records: all.Records[n : n+1]}
	if n+1 < len(all.Records) {
		page.Next = fmt.Sprint(n + 1)
	}
	if n == 1 {
		return page, l.fails
	}
	return page, nil
}

// A list is read page by page, and what is named or runs without reading all.
func TestListsAreRead(t *testing.T) {
	s := newSite(t)
	for _, id := range []string{"a", "b"} {
		s.provision(id, "sync")
	}
	expect.OK(t, s.bind("a", "bound", "sync", ""))
	s.stalled = true
	s.provision("slow", "async")
	l := &leafed{Store: s.store}
	s.console.Records = ledger.New(l, s.id)
	all, err := s.store.Scan(t.Context(), "")
	if err != nil || len(all.Records) < 4 {
		t.Fatal(len(all.Records), err)
	}
	list := func(q operator.Query) (names []string, faults int) {
		t.Helper()
		l.leaves = 0
		for r, err := range paging.All(t.Context(), func(ctx context.Context, cursor string) ([]operator.Row, string, error) {
			q.After = cursor
			return s.console.List(ctx, q)
		}) {
			if err != nil {
				faults++
				continue
			}
			names = append(names, r.Instance+r.Binding)
		}
		slices.Sort(names)
		return names, faults
	}
	slow := s.rows(s.console.List, operator.Query{What: operator.Operations, State: "running"})
	if len(slow) != 1 {
		t.Fatal(slow)
	}
	for name, tc := range map[string]struct {
		reason string
		query  operator.Query
		want   []string
		leaves int
	}{
		"Instances": {"instances stand in the directory", operator.Query{What: operator.Instances}, []string{"a", "b", "slow"},
			0},
		"Bindings": {"each page is read once, and may be empty", operator.Query{What: operator.Bindings}, []string{"abound"},
			len(all.Records)},
		"Running": {"what runs stands in an index", operator.Query{What: operator.Instances, State: "running"},
			[]string{"slow"}, 0},
		"Token": {"a token names its record", operator.Query{What: operator.Operations, ID: slow[0].Operation.Token},
			[]string{"slow"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, faults := list(tc.query)
			expect.Same(t, tc.reason, tc.want, got)
			expect.Same(t, tc.reason+": pages", tc.leaves, l.leaves)
			expect.Same(t, tc.reason+": faults", 0, faults)
		})
	}
	l.gets.Store(0)
	got, _ := list(operator.Query{What: operator.Instances, ID: "b"})
	expect.Same(t, "one of several instances", []string{"b"}, got)
	expect.Same(t, "records that were read for it", 1, l.gets.Load())
	l.fails = errors.New("a record is damaged")
	if got, faults := list(operator.Query{What: operator.Bindings}); len(got) != 1 || faults != 1 {
		t.Errorf("beside a damaged record: %q, %d faults", got, faults)
	}
}

// TestUpgrades proves that an instance is listed exactly if an update by its platform, or a
// newer version by the operator, would change it.
func TestUpgrades(t *testing.T) {
	s := newSite(t)
	for id, plan := range map[string]string{"as-it-was": "retained", "left": "async", "gone": "maintenance"} {
		s.provision(id, plan)
	}
	s.provision("behind", "maintenance")
	s.provision("edited", "sync")
	expect.OK(t, s.bind("behind", "bound", "maintenance", ""))
	expect.OK(t, s.delete("gone", ""))
	s.stalled = true
	s.provision("half-made", "async-only")
	is := s.console.Catalog
	s.console.Catalog = func(service, plan string) (catalog.Offering, catalog.Plan, bool) {
		offering, p, ok := is(service, plan)
		switch p.Name {
		case "maintenance", "async-only":
			p.MaintenanceInfo = &catalog.MaintenanceInfo{Version: "3.0.0"}
		case "sync":
			p.Snapshot = json.RawMessage(`{"edited":true}`)
		case "retained":
			p.Snapshot = append([]byte(" "), p.Snapshot...)
		case "async":
			return offering, p, false
		}
		return offering, p, ok
	}
	var got []operator.Row
	for u, err := range paging.All(context.Background(), func(ctx context.Context, after string) ([]operator.Row, string, error) {
		return s.console.Upgrades(ctx, operator.Query{After: after, State: "ready", Offering: "demo"})
	}) {
		expect.OK(t, err)
		got = append(got, operator.Row{Instance: u.Instance, Plan: u.Plan, IsAt: u.IsAt, PlanIsAt: u.PlanIsAt, Edited: u.Edited})
	}
	expect.Same(t, "the list", []operator.Row{{Instance: "edited", Plan: "sync", Edited: true},
		{Instance: "behind", Plan: "maintenance", IsAt: "2.0.0", PlanIsAt: "3.0.0"}}, got)
}

// A link leads to the instance that was named, on the platform that has it, and the pages
// exchange it. Otherwise the refusal says what to name.
func TestDashboard(t *testing.T) {
	s := newSite(t)
	const one = "p-oneoneoneone"
	platforms := map[string]string{one: "first", "two": "second"}
	s.console.Platforms = func(context.Context) (map[string]string, error) { return platforms, nil }
	for _, k := range []lifecycle.Key{{Platform: one, Instance: "alone"}, {Platform: one, Instance: "both"},
		{Platform: "two", Instance: "both"}} {
		expect.OK(t, s.console.Records.Commit(t.Context(), ledger.Put(lifecycle.Record{Key: k, State: lifecycle.Ready})))
	}
	refuses := func(v operator.Viewing, word string) {
		t.Helper()
		isRefused(t, fmt.Sprintf("%+v", v), expect.Err(s.console.Dashboard(t.Context(), v)), word)
	}
	refuses(operator.Viewing{ID: "alone"}, "longshore serve")
	s.console.Origin = "https://broker.example/prod/"
	opens := func(v operator.Viewing, platform string) {
		t.Helper()
		link, err := s.console.Dashboard(t.Context(), v)
		at, parsed := url.Parse(link.URL)
		if err != nil || parsed != nil || !strings.HasPrefix(link.URL, "https://broker.example/prod/dashboard/enter?") ||
			!link.Until.After(s.console.Now()) {
			t.Fatalf("%+v: %+v %v %v", v, link, err, parsed)
		}
		server := pages.New(pages.Options{Records: s.console.Records, Now: s.console.Now,
			SignOn: pagestest.LinksAlone,
			Table:  datakey.New(s.console.Records, s.console.Vault)})
		form := strings.NewReader(url.Values{"link": {at.Query().Get("link")}}.Encode())
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/dashboard/enter", form)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		want := pages.InstancePath(lifecycle.Key{Platform: platform, Instance: v.ID})
		expect.Same(t, fmt.Sprintf("%+v leads to", v), want, w.Header().Get("Location"))
	}
	opens(operator.Viewing{ID: "alone"}, one)
	opens(operator.Viewing{ID: "both", Platform: "second"}, "two")
	refuses(operator.Viewing{ID: "both"}, "--platform")
	refuses(operator.Viewing{ID: "none"}, "longshore instances")
	refuses(operator.Viewing{ID: "alone", Platform: "third"}, "first, second")
	s.console.Platforms = func(context.Context) (map[string]string, error) { return nil, errors.New("no registry") }
	refuses(operator.Viewing{ID: "alone"}, "--platform")
	refuses(operator.Viewing{ID: "alone", Platform: "first"}, "give the platform's id")
	opens(operator.Viewing{ID: "alone", Platform: one}, one)
}

// knowing is a site whose console knows the platforms and the names of things.
func knowing(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.console.Names = map[string]func(provider.Tags) []string{
		"demo": func(t provider.Tags) []string { return []string{s.demo().Name(t)} }}
	s.console.Platforms = func(context.Context) (map[string]string, error) {
		s.looks++
		return map[string]string{s.caller().Platform: "korifi", "p-other": "sap"}, nil
	}
	return s
}

// ordered orders an instance where a platform says all that it can.
func (s *site) ordered(id string) {
	s.Helper()
	q := s.order(id, "sync")
	q.OrganizationGUID, q.SpaceGUID, q.Parameters = "o-1", "s-1", nil
	q.Context = []byte(`{"platform":"cloudfoundry","instance_name":"orders-db","organization_guid":"o-1","space_guid":"s-1",` +
		`"organization_name":"shop","space_name":"live"}`)
	expect.Get(s.broker.Provision(s.Context(), q))(s)
}

// rows are those of a list that is one page: List, Upgrades, Retained or Quarantined of a console.
func (s *site) rows(list func(context.Context, operator.Query) ([]operator.Row, string, error), q operator.Query) []operator.Row {
	s.Helper()
	rows, next, err := list(s.Context(), q)
	expect.OK(s, err)
	expect.Same(s, "the next page", "", next)
	return rows
}

// Lists are narrowed to an organization and a space by id and by name, which stand in the record of the instance.
func TestPlacesAreKnownByNameAndID(t *testing.T) {
	s := knowing(t)
	s.ordered("one")
	s.provision("elsewhere", "sync")
	for _, id := range []string{"one", "elsewhere"} {
		expect.OK(t, s.bind(id, "b-"+id, "sync", ""))
	}
	is := s.console.Catalog
	s.console.Catalog = func(service, plan string) (catalog.Offering, catalog.Plan, bool) {
		offering, p, ok := is(service, plan)
		p.MaintenanceInfo = &catalog.MaintenanceInfo{Version: "9.0.0"}
		return offering, p, ok
	}
	for q, found := range map[operator.Query]bool{
		{Organization: "o-1"}: true, {Organization: "shop"}: true, {Space: "s-1"}: true, {Space: "live"}: true,
		{Organization: "shop", Space: "s-1"}: true, {Organization: "shop", Space: "test"}: false, {Organization: "live"}: false,
	} {
		const upgrades = operator.What("")
		for what, want := range map[operator.What]int{operator.Instances: 1, operator.Bindings: 1, operator.Operations: 2,
			upgrades: 1} {
			list := s.console.List
			if q.What = what; what == upgrades {
				list = s.console.Upgrades
			}
			if !found {
				want = 0
			}
			rows := s.rows(list, q)
			expect.Same(t, fmt.Sprintf("rows of %+v", q), want, len(rows))
			for _, r := range rows {
				if r.Instance != "one" || r.Organization != "o-1" || r.SpaceName != "live" {
					t.Errorf("%+v: it lists %+v", q, r)
				}
			}
		}
	}
}

// A former life has the names and the place that it had, whatever instance has its id now.
func TestAFormerLifeKeepsItsPlace(t *testing.T) {
	s := knowing(t)
	s.ordered("one")
	r := s.record(lifecycle.Key{Platform: "p", Instance: "one"})
	former := kept(r.Key, "former", s.clock.Add(time.Hour))
	former.Attributes, former.Operation = r.Attributes, r.Operation
	r.Attributes.OrganizationGUID, r.Attributes.SpaceGUID, r.Attributes.Names = "o-2", "s-2", nil
	expect.OK(t, s.console.Records.Commit(t.Context(), ledger.Put(r), ledger.Put(former)))
	kept := s.rows(s.console.Retained, operator.Query{Organization: "shop"})
	if len(kept) != 1 || kept[0].InstanceName != "orders-db" {
		t.Errorf("retained: %+v", kept)
	}
	for organization, life := range map[string]string{"shop": "former", "o-1": "former", "o-2": ""} {
		rows := s.rows(s.console.List, operator.Query{What: operator.Operations, Organization: organization})
		if len(rows) != 1 || rows[0].Life != life {
			t.Errorf("operations in %s: %+v", organization, rows)
		}
	}
}

// A platform is known by name and id. An empty list would say that one that is not known has nothing. Over a stack, the names of
// the platforms are read from a secret: once for a page.
func TestAPlatformIsKnownByNameAndID(t *testing.T) {
	s := knowing(t)
	s.ordered("one")
	for n, list := range []func(context.Context, operator.Query) ([]operator.Row, string, error){
		s.console.List, s.console.Upgrades, s.console.Retained, s.console.Quarantined} {
		rows := s.rows(list, operator.Query{What: operator.Instances, Platform: "korifi"})
		if s.looks != n+1 || n == 0 && len(rows) != 1 {
			t.Errorf("%d lists read the names %d times; the last one has %+v", n+1, s.looks, rows)
		}
	}
	of := func(platform string, want int) {
		t.Helper()
		rows := s.rows(s.console.List, operator.Query{What: operator.Instances, Platform: platform})
		expect.Same(t, "rows of "+platform, want, len(rows))
		for _, r := range rows {
			expect.Same(t, "the platform is called", "korifi", r.PlatformName)
		}
	}
	of("korifi", 1)
	of("p", 1)
	of("sap", 0)
	rows, _, err := s.console.List(t.Context(), operator.Query{What: operator.Instances, Platform: "nobody"})
	isRefused(t, "one that is not known", err, `"nobody": the known ones are korifi, sap`)
	expect.Same(t, "rows of one that is not known", 0, len(rows))
	// A row tells whose it is and where, and a list opens all names, under the one key.
	s.ordered("two")
	rows = s.rows(s.console.List, operator.Query{What: operator.Instances, ID: "one"})
	expect.Same(t, "the row", []operator.Row{{PlatformName: "korifi", Organization: "o-1", Space: "s-1",
		InstanceName: "orders-db", Provider: "demo",
		Made: s.names()["one"]}}, rows, cmpopts.IgnoreFields(operator.Row{}, "Platform", "Instance", "OrganizationName",
		"SpaceName", "State", "Service", "Plan", "Created", "Updated", "Operation", "Note"))
	var names []string
	for _, r := range s.rows(s.console.List, operator.Query{What: operator.Instances}) {
		names = append(names, r.InstanceName)
	}
	expect.Same(t, "the names in a list", []string{"orders-db", "orders-db"}, names)
	k := lifecycle.Key{Platform: "p-abcdefghijkl", Instance: "three"}
	expect.OK(t, s.console.Records.Commit(t.Context(), ledger.Put(lifecycle.Record{Key: k, State: lifecycle.Ready})))
	s.console.Platforms = func(context.Context) (map[string]string, error) { return nil, errors.New("access denied") }
	rows = s.rows(s.console.List, operator.Query{What: operator.Instances, Platform: k.Platform})
	expect.Same(t, "rows without the right to read the platforms", 1, len(rows))
	_, _, err = s.console.List(t.Context(), operator.Query{What: operator.Instances, Platform: "korifi"})
	isRefused(t, "a name, without that right", err, `"korifi"`, "`longshore platform list`", "give the platform's id")
}

// names are those of the things that exist, by the ids of their instances.
func (s *site) names() map[string][]string {
	s.Helper()
	held, _, err := s.console.Inventories["demo"].List(s.Context(), "")
	expect.OK(s, err)
	all := map[string][]string{}
	for _, h := range held {
		all[h.Tags.Instance+h.Tags.Binding] = []string{h.Name}
	}
	return all
}

func TestOwner(t *testing.T) {
	s := knowing(t)
	s.ordered("one")
	expect.OK(t, s.bind("one", "bound", "sync", ""))
	names := s.names()
	instance, binding := names["one"][0], names["onebound"][0]
	lost := s.over() // its records know nothing
	for name, tc := range map[string]struct {
		reason, asked string
		site          *site
		want, note    string
	}{
		"Instance": {"its name derives from the record", instance, s, "one", ""},
		"Binding":  {"its name derives from the record", binding, s, "onebound", ""},
		"Stack": {"AWS shows ARNs",
			"arn:aws:cloudformation:eu-central-1:123456789012:stack/" + instance + "/5f0c", s, "one", ""},
		"User":   {"a user's ARN has a path", "arn:aws:iam::123456789012:user/longshore/abc/" + binding, s, "onebound", ""},
		"Key":    {"Valkey's keys have the name in braces", "{" + instance + "}:cart:7", s, "one", ""},
		"Quoted": {"SQL quotes names", `"` + instance + `"`, s, "one", ""},
		"Lost":   {"the thing's own label tells", instance, lost, "one", "its label says so, and no record does"},
	} {
		t.Run(name, func(t *testing.T) {
			r := expect.Get(tc.site.console.Owner(t.Context(), tc.asked))(t)
			expect.Same(t, tc.reason, tc.want, r.Instance+r.Binding)
			expect.Says(t, tc.reason, r.Note, tc.note)
		})
	}
	isRefused(t, "what is not ours", expect.Err(s.console.Owner(t.Context(), "lsdsomebodyelses")))
	s.console.Inventories["demo"] = unlisted{}
	if _, err := s.console.Owner(t.Context(), "lsdsomebodyelses"); err == nil || refused(err) ||
		!strings.Contains(err.Error(), "start the broker") {
		t.Errorf("a server that cannot be asked may have it: %v", err)
	}
}

type unlisted struct{}

func (unlisted) List(context.Context, string) ([]provider.Holding, string, error) {
	return nil, "", errors.New("not reached")
}
