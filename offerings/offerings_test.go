package offerings_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/offerings"
)

// shipped are the offerings of one provider; "" for all.
func shipped(t *testing.T, of string) *catalog.Catalog {
	t.Helper()
	c := expect.Get(catalog.Open(offerings.Catalog))(t)
	if of == "" {
		return c
	}
	return c.Without(slices.DeleteFunc([]string{"cloudformation", "demo", "mariadb", "postgres", "valkey"},
		func(name string) bool { return name == of }))
}

// told returns a line for an offering and one for each of its plans, with all that the conformance cases rely on. Create,
// update and bind are the schemas that a plan has.
func told(t *testing.T, o catalog.Offering) (lines string) {
	which := func(all map[string]bool) (names string) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if all[name] {
				names += " " + name
			}
		}
		return names
	}
	lines = fmt.Sprintf("%s %s %#v:%s\n", o.Name, o.ID, o.Requires, which(map[string]bool{"bindable": o.Bindable,
		"updateable": o.PlanUpdateable, "fetched": o.InstancesRetrievable, "keys-fetched": o.BindingsRetrievable}))
	for _, p := range o.Plans {
		is := map[string]bool{"bindable": o.PlanBindable(p), "updateable": o.PlanIsUpdateable(p), "needs-app": p.RequiresApp,
			"rotatable": p.BindingRotatable != nil && *p.BindingRotatable}
		for _, verb := range []catalog.Verb{catalog.Create, catalog.Update, catalog.Bind} {
			is[string(verb)] = p.Schemas.For(verb) != nil
		}
		lines += fmt.Sprintf("- %s %s %s/%s:%s", p.Name, p.ID, p.Asynchronous, p.AsynchronousBinding, which(is))
		if p.MaintenanceInfo != nil {
			lines += " " + p.MaintenanceInfo.Version
		}
		if p.Settings != nil {
			lines += " " + string(expect.Get(json.Marshal(p.Settings))(t))
		}
		lines += "\n"
	}
	return lines
}

// TestShippedOfferings holds the ids as well: they never change (CAT-07).
//
// CAT-32: plans that are synchronous, asynchronous where allowed, and asynchronous only are among them.
func TestShippedOfferings(t *testing.T) {
	const want = `demo f95c6dc5-becc-415a-96b6-c5997d1a68fe []string(nil): bindable fetched keys-fetched updateable
- sync d574c774-74a4-427c-9694-41484f478244 never/never: bind bindable create update updateable
- async 4dcb3699-4e64-40fe-aa3b-ec0d58a96028 allowed/never: bind bindable create update updateable
- async-only efe85d2a-9cf3-4288-8a1a-8ea00c8dfdd5 required/never: bind bindable create update updateable
- fail 12d69075-e4ab-4e16-8520-c23c9bbe7a26 allowed/never: bind bindable create update updateable {"fail":["provision"]}
- update-fail e10ddfe7-9896-4aae-b53c-1e3b50f0b6d0 allowed/never: bind bindable create update updateable {"fail":["update"]}
- async-bind 78a2bf5c-1e99-4839-9b45-9d0c55eba196 allowed/required: bind bindable create update updateable
- rotatable a519b4c2-4011-4589-ab25-103ea562d924 never/never: bind bindable create rotatable update updateable {"valid_days":30}
- restorable 0b8f4b0e-5b7a-4e0b-9a1c-6a4c7d1f2e93 allowed/never: bind bindable create update updateable
- requires-app 5ce0af4c-9e45-4c7b-85dd-5979c976002b never/never: bind bindable create needs-app update updateable
- maintenance 5cec44f8-42a5-473b-8f75-3b1ea12f0ea7 never/never: bind bindable create update updateable 2.0.0
- not-updateable 8c4a73ac-60e3-4844-9f0a-81f3cc62d010 never/never: bind bindable create update
- not-bindable f8df836b-ea6f-4472-b0e2-252eba9b7dda never/never: create update updateable
- schema 282bc1e6-6a95-4a8f-b9ea-32a1302c300d never/never: bind bindable create update updateable
demo-other e86c39d7-35bf-4b32-9549-e8884cd93fc4 []string(nil): bindable fetched keys-fetched
- default dc2c7fcf-3cf9-4ceb-af02-9efc3f14eb35 never/never: bind bindable create update
demo-route af73ec1f-e9a6-4407-a7e3-3d92ddfba7e0 []string{"route_forwarding"}: bindable fetched keys-fetched
- default e43786ef-e17d-4cd4-ba38-da247f138acb never/never: bind bindable create update {"grant":"route"}
demo-syslog 5f9f1794-9b5d-49f0-80fb-9a9f159ad000 []string{"syslog_drain"}: bindable fetched keys-fetched
- default 115100b1-d79d-4dbe-851a-cb6ff2047f83 never/never: bind bindable create update {"grant":"syslog"}
demo-volume 305aa209-fb1e-4884-a0c5-88293436f095 []string{"volume_mount"}: bindable fetched keys-fetched
- default 1a6193a3-fc1e-4fc6-949e-8029f68897d5 never/never: bind bindable create update {"grant":"volume"}
`
	got := ""
	for _, o := range shipped(t, "demo").Offerings() {
		got += told(t, o)
		expect.Same(t, o.Name+": want the provider demo", "demo", o.Provider)
	}
	expect.Same(t, "shipped offerings", want, got)
}

// TestShippedOfferingsEverywhere asks for what the strictest platforms want, beyond what catalogs may hold.
func TestShippedOfferingsEverywhere(t *testing.T) {
	for _, o := range shipped(t, "").Offerings() {
		for _, p := range o.Plans {
			if p.Free == nil || *p.Free == (o.Provider == "cloudformation") { // AWS sends a bill
				t.Errorf("%s/%s: free is wrong", o.Name, p.Name)
			}
			for _, text := range []string{o.Description, p.Description} {
				if utf8.RuneCountInString(text) > 255 {
					t.Errorf("%s/%s: a description is longer than platforms promise to show (CAT-26): %q", o.Name, p.Name, text)
				}
			}
			if strings.Contains(o.Name+p.Name, ".") {
				t.Errorf("%s/%s: early versions know no full stop in names (CAT-05)", o.Name, p.Name)
			}
		}
		text := expect.Get(json.Marshal(o))(t)
		expect.Never(t, o.Name+": CAT-27", string(text), "null")
		// Cloud Controller answers other drafts with "custom meta schemas are
		// not supported", and the whole broker is not registered (CAT-21).
		if n, m := strings.Count(string(text), `"$schema":`),
			strings.Count(string(text), `"$schema":"http://json-schema.org/draft-04/schema#"`); n == 0 || n != m {
			t.Errorf("%s: want every schema in draft-04, got %d of %d", o.Name, m, n)
		}
	}
}

func TestShippedSchemas(t *testing.T) {
	c := shipped(t, "")
	ids := map[string][2]string{}
	for _, o := range c.Offerings() {
		for _, p := range o.Plans {
			ids[o.Name+"/"+p.Name] = [2]string{o.ID, p.ID}
		}
	}

	for _, tc := range []struct {
		reason string
		plans  []string
		params string
		want   bool
	}{
		{"No parameter is required.", []string{"demo/sync", "demo/schema", "demo-other/default"}, ``, true},
		{"CAT-22: the specification's sample parameters are accepted.",
			[]string{"demo/sync", "demo/async", "demo/async-only", "demo/schema"}, `{"parameter1":1,"parameter2":"value"}`, true},
		{"CAT-22: so are those of its sample bind.", []string{"demo/sync", "demo/async", "demo/async-only"},
			`{"parameter1-name-here":1,"parameter2-name-here":"value"}`, true},
		{"What the demo understands is accepted.", []string{"demo/async", "demo-volume/default"},
			`{"delay_seconds":0.5,"fail":"unbind"}`, true},
		{"A boolean as well.", []string{"demo/async"}, `{"fail":true}`, true},
		{"CAT-22: what it does not understand is refused before any work.",
			[]string{"demo/async", "demo-syslog/default"}, `{"fail":"sometimes"}`, false},
		{"Time runs forward.", []string{"demo/async", "demo-route/default"}, `{"delay_seconds":-1}`, false},
		{"A day is the most.", []string{"demo/async"}, `{"delay_seconds":86401}`, false},
		{"PROV-19: the strict plan refuses what it does not know.", []string{"demo/schema"}, `{"can-not":"be-good"}`, false},
		{"PROV-19: and other types.", []string{"demo/schema"}, `{"parameter1":"1"}`, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			for _, plan := range tc.plans {
				id := ids[plan]
				for _, verb := range []catalog.Verb{catalog.Create, catalog.Update, catalog.Bind} {
					judges(t, c, verb, id[0], id[1], map[string]bool{tc.params: tc.want})
				}
			}
		})
	}
}

// judges requires that a plan's schema takes these parameters, or does not.
func judges(t *testing.T, c *catalog.Catalog, verb catalog.Verb, service, plan string, params map[string]bool) {
	t.Helper()
	for given, want := range params {
		if err := c.Check(verb, service, plan, json.RawMessage(given)); (err == nil) != want {
			t.Errorf("%s of plan %s with %s: want accepted %t, got %v", verb, plan, given, want, err)
		}
	}
}

// The schemas of a plan on a server take what users may ask for: neither more, which would fail later, nor less. Bindings of
// all can be rotated, and all operations may be asynchronous.
func TestSchemasOfServers(t *testing.T) {
	for provider, want := range map[string]struct {
		id                 string
		plans              map[string]string
		provisions, grants map[string]bool
	}{
		"postgres": {"0f0a3c1e-5e0b-4c39-9d5a-6d1f7c1b7a10", map[string]string{"small": "2f4a0a52-0d8f-4b6f-8d4e-1b3c52a6f1d1",
			"large": "5b9d3a57-7f53-4b43-8f0c-9e4f1c6b0f52"},
			map[string]bool{``: true, `{"locale":"en-US-x-icu"}`: true, `{"restore_from":"id"}`: true, `{"locale":""}`: false,
				`{"role":"read_only"}`: false},
			map[string]bool{``: true, `{"role":"read_only"}`: true, `{"role":"superuser"}`: false, `{"locale":"C"}`: false}},
		"mariadb": {"c6a6a6a0-41d5-4a2e-8d0e-0a5a3b0f7c11", map[string]string{"small": "8b6f8a1e-6e4b-4b55-9c39-6b8c6a1d2f21",
			"large": "3d0c1d52-2a4f-4f0b-8e0e-5f6f1b7a9d32"},
			map[string]bool{``: true, `{"collation":"utf8mb4_bin"}`: true, `{"collation":""}`: false,
				`{"role":"read_only"}`: false},
			map[string]bool{``: true, `{"role":"read_only"}`: true, `{"role":"owner"}`: false}},
		"valkey": {"a83fba31-a1bf-40b4-acea-05c33884ffef", map[string]string{"shared": "13810a56-53c7-46b4-9966-24e2ea68df9e"},
			map[string]bool{``: true, `{}`: true, `{"role":"read_only"}`: false, `{"maxmemory":1}`: false},
			map[string]bool{``: true, `{"role":"read_only"}`: true, `{"role":"read_write"}`: true, `{"role":"admin"}`: false,
				`{"prefix":"x"}`: false}},
	} {
		c := shipped(t, provider)
		o, plans := c.Offerings()[0], map[string]string{}
		for _, p := range o.Plans {
			plans[p.Name] = p.ID
			if p.BindingRotatable == nil || !*p.BindingRotatable || p.Asynchronous != catalog.Allowed ||
				p.AsynchronousBinding != catalog.Allowed {
				t.Errorf("%s: %+v", p.Name, p)
			}
			judges(t, c, catalog.Create, o.ID, p.ID, want.provisions)
			judges(t, c, catalog.Bind, o.ID, p.ID, want.grants)
		}
		expect.Same(t, "ids never change", want.id, o.ID)
		expect.Same(t, "ids never change", want.plans, plans)
	}
}

func TestPostgresExtensions(t *testing.T) {
	c := shipped(t, "postgres")
	o := c.Offerings()[0]
	for _, p := range o.Plans {
		expect.Same(t, p.Name, "restore_from", p.RestoreParameter)
		extensions := map[string]bool{}
		for _, name := range []string{"pgcrypto", "plpython3u", "postgres_fdw", "dblink", "file_fdw"} {
			extensions[fmt.Sprintf(`{"extensions":[%q]}`, name)] = false
		}
		for _, name := range p.Settings["extensions"].([]any) {
			extensions[fmt.Sprintf(`{"extensions":[%q]}`, name)] = true
		}
		judges(t, c, catalog.Create, o.ID, p.ID, extensions)
		judges(t, c, catalog.Update, o.ID, p.ID, extensions)
	}
}
