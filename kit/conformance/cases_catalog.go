package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

func catalogCases() []Case {
	return slices.Concat(catalogNameCases(), catalogMemberCases())
}

func catalogNameCases() []Case {
	names := func(o object) string {
		if !friendly.MatchString(text(o, "name")) {
			return "a name of letters, digits, periods and hyphens"
		}
		return ""
	}
	return []Case{
		looks("CAT-01", 0, "the catalog has an array of services", func(_ *scene, a response) (string, string) {
			if typeOf(a.body["services"]) != "array" {
				return "services to be an array", a.String()
			}
			return "", ""
		}),
		looks("CAT-02/texts", 0, "offerings have an id, a name and a description",
			everyOf("services", texts("id", "name", "description"))),
		looks("CAT-02/bindable", 0, "offerings say whether they are bindable", everyOf("services", func(o object) string {
			if typeOf(o["bindable"]) != "boolean" {
				return "bindable to be true or false"
			}
			return ""
		})),
		looks("CAT-02/plans", 0, "offerings have plans", everyOf("services", func(o object) string {
			if len(list(o["plans"])) == 0 {
				return "an array of one plan or more"
			}
			return ""
		})),
		looks("CAT-03", 0, "plans have an id, a name and a description", everyOf("plans", texts("id", "name", "description"))),
		looks("CAT-04/service-ids", 0, "the ids of offerings are unique", unique("the ids of offerings", pickOf("id"))),
		looks("CAT-04/service-names", 0, "the names of offerings are unique", unique("the names of offerings", pickOf("name"))),
		looks("CAT-04/plan-ids", 0, "the ids of plans are unique", unique("the ids of plans", func(services []object) []string {
			var out []string
			for _, s := range services {
				out = append(out, pickOf("id")(list(s["plans"]))...)
			}
			return out
		})),
		looks("CAT-04/plan-names", 0, "the names of an offering's plans are unique", everyOf("services", func(o object) string {
			wanted, _ := unique("the names of plans",
				func([]object) []string { return pickOf("name")(list(o["plans"])) })(nil, response{})
			return wanted
		})),
		looks("CAT-04/apart", 0, "no plan has the id of an offering",
			unique("the ids of offerings and plans", func(services []object) []string {
				out := pickOf("id")(services)
				for _, s := range services {
					ids := pickOf("id")(list(s["plans"]))
					slices.Sort(ids)
					out = append(out, slices.Compact(ids)...)
				}
				return out
			})),
		looks("CAT-04/clients", 0, "the ids of dashboard clients are unique", unique("the ids of dashboard clients",
			func(services []object) []string {
				return slices.DeleteFunc(pickOf("dashboard_client.id")(services), func(id string) bool { return id == "" })
			})),
		looks("CAT-05", 0, "names can be typed on a command line", everyOf("services", names), everyOf("plans", names)),
	}
}

func catalogMemberCases() []Case {
	duration := func(o object) string {
		if v := o["maximum_polling_duration"]; v != nil && !seconds.MatchString(fmt.Sprint(v)) {
			return "maximum_polling_duration to be a positive whole number of seconds"
		}
		return ""
	}
	served := func(id string, since int, title string, promise need) Case {
		return Case{ID: id, Since: since, Title: title, given: ready, needs: needs{promise}, story: func(s *scene) {
			if a, ok := s.send(toUpdate(update).silent()); ok && a.unserved() {
				s.fail(s.Rule(), a.request, "an update endpoint, which the catalog promises", a.String())
			}
		}}
	}
	return []Case{
		{ID: "CAT-07", Title: "two fetches give the same ids", story: func(s *scene) {
			first, ok := s.send(get(catalog))
			second, again := s.send(get(catalog))
			if ok && again && !same(normal(idsOf(first.body)), normal(idsOf(second.body))) {
				s.fail("CAT-07", second.request, "the same ids as before", "others")
			}
		}},
		looks("CAT-08", 0, "tags are texts", everyOf("services", serviceTags)),
		looks("CAT-08/length", 0, "tags have 2048 characters at most together", everyOf("services", tagLengths)),
		looks("CAT-09", 0, "requires names permissions that exist", everyOf("services", serviceRequires)),
		looks("CAT-11", 0, "metadata are objects", everyOf("services", typed("object", "metadata")),
			everyOf("plans", typed("object", "metadata"))),
		looks("CAT-12", 0, "a dashboard client is complete", everyOf("services", dashboardClient)),
		looks("CAT-13", 0, "plan_updateable of an offering is true or false",
			everyOf("services", typed("boolean", "plan_updateable"))),
		served("CAT-13/endpoint", 0, "plan_updateable is true of a broker that serves updates", promised),
		looks("CAT-14", 15, "plan_updateable of a plan is true or false", everyOf("plans", typed("boolean", "plan_updateable"))),
		looks("CAT-15", 11, "bindable of a plan is true or false", everyOf("plans", typed("boolean", "bindable"))),
		looks("CAT-16", 0, "free is true or false", everyOf("plans", typed("boolean", "free"))),
		looks("CAT-17", 14, "instances_retrievable is true or false",
			everyOf("services", typed("boolean", "instances_retrievable"))),
		looks("CAT-18", 14, "bindings_retrievable is true or false",
			everyOf("services", typed("boolean", "bindings_retrievable"))),
		{ID: "CAT-18/async", Since: 14, Title: "bindings that are made asynchronously can be fetched", needs: needs{bindAsync},
			story: func(s *scene) {
				if !s.plan.service.bindingsRetrievable {
					s.fail("CAT-18", "GET "+catalog,
						"bindings_retrievable of "+s.plan.service.name+", whose credentials cannot be had in another way",
						"no")
				}
			}},
		looks("CAT-19", 15, "allow_context_updates is true or false",
			everyOf("services", typed("boolean", "allow_context_updates"))),
		served("CAT-19/endpoint", 15, "allow_context_updates is true of a broker that serves updates", contextUpdates),
		looks("CAT-20", 13, "schemas are objects",
			everyOf("plans", typed("object", "schemas", "schemas.service_instance", "schemas.service_binding"))),
		looks("CAT-21", 13, "schemas name their draft, refer to nothing outside, and are at most 64 kB",
			everyOf("plans", planSchemas)),
		looks("CAT-23", 15, "maximum_polling_duration is in seconds", everyOf("plans", duration)),
		looks("CAT-24", 15, "maintenance_info has a semantic version", everyOf("plans", planMaintenance)),
		looks("CAT-25", 17, "binding_rotatable is true or false", everyOf("plans", typed("boolean", "binding_rotatable"))),
		{ID: "CAT-25/old", Since: 17, speaks: 16, Title: "clients before 2.17 do not see binding_rotatable",
			ask: get(catalog).as(16), want: status(200).that(everyOf("plans", func(o object) string {
				if _, ok := o["binding_rotatable"]; ok {
					return "no binding_rotatable"
				}
				return ""
			}))},
		looks("CAT-26", 14, "names and descriptions have at most 255 characters", everyOf("services", lengths),
			everyOf("plans", lengths)),
		looks("CAT-27", 0, "nothing is null", everyOf("services", func(o object) string {
			if at := nothing(o, ""); at != "" {
				return "no null, but " + strings.TrimPrefix(at, ".") + " left out"
			}
			return ""
		})),
		{ID: "CAT-29", Title: "reading the catalog changes nothing, and is quick", story: func(s *scene) {
			for range 3 {
				s.asked(get(catalog), status(200))
			}
		}},
		{ID: "CAT-30", Since: 16, Title: "a catalog with an ETag is not sent again unless it changed", story: func(s *scene) {
			if a, ok := s.send(get(catalog)); !ok || a.header.Get("Etag") == "" {
				return // the tag is optional
			}
			a, ok := s.send(get(catalog).with("If-None-Match", "$etag"))
			if ok && s.checked(a, status(304, 200)) && a.status == http.StatusNotModified && len(a.raw) > 0 {
				s.fail("CAT-30", a.request, "no body with a 304", "one")
			}
			s.asked(get(catalog).with("If-None-Match", `"another"`), status(200).has("services", present))
		}},
		{ID: "CAT-31", speaks: 9, Title: "the catalog is the same for each version, but for binding_rotatable",
			story: func(s *scene) {
				first, ok := s.send(get(catalog).as(OldestMinor))
				last, again := s.send(get(catalog))
				if !ok || !again {
					return
				}
				for _, a := range []response{first, last} {
					for _, service := range list(a.body["services"]) {
						for _, plan := range list(service["plans"]) {
							delete(plan, "binding_rotatable")
						}
					}
				}
				if !same(first.body, last.body) {
					s.fail("CAT-31", first.request, "the same catalog as the newest version has", "another")
				}
			}},
	}
}

func looks(id string, since int, title string, tests ...test) Case {
	w := status(200)
	for _, t := range tests {
		w = w.that(t)
	}
	return Case{ID: id, Since: since, Title: title, ask: get(catalog), want: w}
}

func pickOf(member string) func(objects []object) []string {
	return func(objects []object) []string {
		var out []string
		for _, o := range objects {
			out = append(out, text(o, member))
		}
		return out
	}
}

// idsOf returns the ids in a catalog, by name.
func idsOf(body object) object {
	out := object{}
	for _, s := range list(body["services"]) {
		out[text(s, "name")] = text(s, "id")
		for _, p := range list(s["plans"]) {
			out[text(s, "name")+"/"+text(p, "name")] = text(p, "id")
		}
	}
	return out
}
