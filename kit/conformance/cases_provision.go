package conformance

import (
	"net/http"
	"slices"
	"strings"
)

// freeParameter is a parameter that is accepted by plans that accept any parameter.
const freeParameter = "parameters." + probe

func provisionCases() []Case {
	return slices.Concat(repeatedProvisionCases(), provisionInputCases(), provisionAnswerCases())
}

func repeatedProvisionCases() []Case {
	conflict := func(id, title string, content body, needs ...need) Case {
		return Case{ID: id, Title: title, given: ready, needs: needs, ask: toProvision(content), want: status(409)}
	}
	return []Case{
		{ID: "PROV-01", Title: "a synchronous provision is answered 201", needs: needs{synchronous}, ask: provisionAtOnce,
			want: status(201)},
		{ID: "PROV-01/2.9", speaks: 9, Title: "a synchronous provision of version 2.9 is answered 201", needs: needs{synchronous},
			ask: provisionAtOnce.as(9), want: status(201)},
		{ID: "PROV-02", Title: "an asynchronous provision is answered 202, and succeeds", needs: needs{asynchronous, anyPlan},
			story: func(s *scene) {
				if s.asked(toProvision(provision), status(202)) {
					s.ends(instanceOperation, succeeded)
				}
			}},
		{ID: "PROV-02/operation", Title: "a 202 names its operation", needs: needs{asynchronous}, ask: toProvision(provision),
			want: status(202).has("operation", present)},
		{ID: "PROV-03", Title: "a plan that is only asynchronous is refused to a client that cannot wait",
			needs: needs{asyncOnly}, story: func(s *scene) {
				if s.asked(provisionAtOnce, cannotWait) {
					s.nothingAt(instance)
				}
			}},
		{ID: "PROV-03/2.9", speaks: 9, Title: "the same for a client of version 2.9", needs: needs{asyncOnly},
			ask: provisionAtOnce.as(9), want: cannotWait},
		{ID: "PROV-04", Title: "a plan that can be asynchronous is done synchronously for a client that cannot wait",
			needs: needs{asynchronous, synchronous}, ask: provisionAtOnce, want: status(201)},
		{ID: "PROV-05", Title: "a synchronous plan is provisioned also for a client that can wait",
			needs: needs{synchronous, anyPlan}, ask: toProvision(provision), want: made},
		{ID: "PROV-06", Title: "no 202 without permission", watched: true, needs: needs{anyPlan},
			steps: []step{{provisionAtOnce, anything}, {provisionAtOnce, anything}, {remove(instance + ids), anything}}},
		{ID: "PROV-07", Title: "an identical request for a ready instance is answered 200", given: ready,
			ask: toProvision(provision), want: status(200)},
		{ID: "PROV-07/sync", Title: "an identical request without permission is answered 200", given: ready,
			needs: needs{synchronous}, ask: provisionAtOnce, want: status(200)},
		{ID: "PROV-07/async-only",
			Title: "also by a plan that is only asynchronous, or it is refused to a client that cannot wait", given: ready,
			needs: needs{asyncOnly}, ask: provisionAtOnce, want: status(200, 422)},
		{ID: "PROV-07/2.9", speaks: 9, Title: "an identical request of version 2.9 is answered 200, or conflicts", given: ready,
			ask: toProvision(provision).as(9), want: status(200, 409)},
		conflict("PROV-08/parameters", "another request for a ready instance conflicts: parameters",
			provision.with(freeParameter, 7), free),
		conflict("PROV-08/plan", "another request for a ready instance conflicts: plan", provision.with("plan_id", "$otherplan"),
			withSibling),
		conflict("PROV-08/organization", "another request for a ready instance conflicts: organization",
			provision.with("organization_guid", "$organization2").with("context.organization_guid", "$organization2")),
		conflict("PROV-08/space", "another request for a ready instance conflicts: space",
			provision.with("space_guid", "$space2").with("context.space_guid", "$space2")),
		{ID: "PROV-08/2.9", speaks: 9, Title: "another request of version 2.9 conflicts", given: ready, needs: needs{free},
			ask: toProvision(provision.with(freeParameter, 7)).as(9), want: status(409)},
		{ID: "PROV-08/dropped", Title: "a request without the parameters conflicts", needs: needs{anyPlan, free},
			story: func(s *scene) {
				if s.did(toProvision(provision.with(freeParameter, 7)), made, instanceOperation) {
					s.asked(toProvision(provision), status(409))
				}
			}},
		{ID: "PROV-09/numbers", Title: "numbers are compared by value, and members in any order", needs: needs{anyPlan, free},
			story: func(s *scene) {
				if s.did(toProvision(provision.with(freeParameter, object{"a": 1, "b": "x"})), made, instanceOperation) {
					s.asked(toProvision(raw(`{"space_guid":"$space", "parameters":{"`+probe+`":{"b":"x","a":1.0}},
						"organization_guid":"$organization","plan_id":"$plan","service_id":"$service", "context":
						{"platform":"cloudfoundry","space_guid":"$space","organization_guid":"$organization"}}`)), status(200))
				}
			}},
		{ID: "PROV-10", Since: 12, Title: "an identical request while provisioning is answered 202", given: provisioning,
			ask: toProvision(provision), want: status(202)},
		{ID: "PROV-10/operation", Since: 14, Title: "it names the same operation", given: provisioning,
			ask: toProvision(provision), want: status(202).sameOperation()},
		{ID: "PROV-10/2.9", speaks: 9, Title: "so it is for a client of version 2.9", given: provisioning,
			ask: toProvision(provision).as(9), want: status(202).sameOperation()},
		{ID: "PROV-11/parameters", Since: 15, Title: "another request while provisioning conflicts: parameters",
			given: provisioning, needs: needs{free}, ask: toProvision(provision.with(freeParameter, 7)), want: status(409)},
		{ID: "PROV-11/space", Since: 15, Title: "another request while provisioning conflicts: space", given: provisioning,
			ask: toProvision(provision.with("space_guid", "$space2").with("context.space_guid", "$space2")), want: status(409)},
		{ID: "PROV-11/plan", Since: 15, Title: "another request while provisioning conflicts: plan", given: provisioning,
			needs: needs{withSibling}, ask: toProvision(provision.with("plan_id", "$otherplan")), want: status(409)},
		{ID: "PROV-12", Title: "an identical request while provisioning is refused to a client that cannot wait",
			given: provisioning, needs: needs{asyncOnly}, ask: provisionAtOnce, want: cannotWait},
	}
}

func provisionInputCases() []Case {
	refusal := func(id string, since int, title string, content body, needs ...need) Case {
		return Case{ID: id, Since: since, Title: title, needs: append(needs, inCatalog),
			ask: toProvision(content), want: status(400)}
	}
	placed := update.with("plan_id", "$plan")
	old := func(id, title string, content body, w want, n need) Case {
		return Case{ID: id, Title: title, needs: needs{n}, speaks: 9, ask: toProvision(content).as(9), want: w}
	}
	return []Case{
		refusal("PROV-13/service_id", 0, "a provision without service_id is refused", provision.without("service_id")),
		refusal("PROV-13/plan_id", 0, "a provision without plan_id is refused", provision.without("plan_id")),
		{ID: "PROV-13/2.9", speaks: 9, Title: "a provision of version 2.9 without service_id is refused", needs: needs{inCatalog},
			ask: toProvision(provision.without("service_id")).as(9), want: status(400)},
		old("PROV-13/2.9-plan", "a provision of version 2.9 without plan_id is refused", provision.without("plan_id"),
			status(400), inCatalog),
		refusal("PROV-14/service", 0, "an unknown service_id is refused", provision.with("service_id", "$unknown")),
		refusal("PROV-14/plan", 0, "an unknown plan_id is refused", provision.with("plan_id", "$unknown")),
		refusal("PROV-14/foreign", 0, "a plan of another offering is refused", provision.with("plan_id", "$foreignplan"),
			withForeign),
		refusal("PROV-14/service-as-plan", 0, "the offering's id is no plan's", provision.with("plan_id", "$service")),
		refusal("PROV-15/organization", 11, "a provision without organization_guid is refused",
			provision.without("organization_guid")),
		refusal("PROV-15/space", 11, "a provision without space_guid is refused", provision.without("space_guid")),
		refusal("PROV-15/organization-empty", 12, "an empty organization_guid is refused",
			provision.with("organization_guid", "")),
		refusal("PROV-15/space-empty", 12, "an empty space_guid is refused", provision.with("space_guid", "")),
		old("PROV-16/context", "version 2.9: a context is enough", provision.without("organization_guid", "space_guid"), made,
			anyPlan),
		old("PROV-16/guids", "version 2.9: the guids are enough", provision.without("context"), made, anyPlan),
		old("PROV-16/neither", "version 2.9: neither is refused", placed, status(400), inCatalog),
		{ID: "PROV-17/absent", Since: 12, Title: "a context is optional", needs: needs{anyPlan},
			ask: toProvision(provision.without("context")), want: made},
		{ID: "PROV-17/kubernetes", Since: 12, Title: "a context of Kubernetes is accepted", needs: needs{anyPlan},
			ask: toProvision(provision.with("context", object{"platform": "kubernetes", "namespace": "$space",
				"clusterid": "$organization", "instance_name": "db"})), want: made},
		{ID: "PROV-17/full", Since: 12, Title: "a full context of Cloud Foundry is accepted", needs: needs{anyPlan},
			ask: toProvision(provision.with("context.organization_name", "o").with("context.space_name", "s").
				with("context.instance_name", "db").with("context.organization_annotations", object{"a.example.com/b": "c"}).
				with("context.space_annotations", object{})), want: made},
		{ID: "PROV-18", Since: 13,
			Title: "parameters that violate the schema are refused at once also where the plan is asynchronous",
			needs: needs{asynchronous, createSchema}, story: func(s *scene) {
				s.asked(toProvision(provision.with("parameters", s.plan.wrong("service_instance", "create"))), status(400))
			}},
		{ID: "PROV-19", Since: 13, Title: "parameters that violate the schema are refused", needs: needs{createSchema},
			story: func(s *scene) {
				if s.asked(toProvision(provision.with("parameters", s.plan.wrong("service_instance", "create"))), status(400)) {
					s.nothingAt(instance)
				}
			}},
	}
}

func provisionAnswerCases() []Case {
	return []Case{
		{ID: "PROV-24", Since: 12, Title: "a dashboard is named from the first answer on", needs: needs{anyPlan},
			story: func(s *scene) {
				first, ok := s.send(toProvision(provision))
				if !ok || !s.checked(first, made) || !s.done(first, instanceOperation) {
					return
				}
				again, ok := s.send(toProvision(provision))
				if ok && again.status == http.StatusOK && first.body["dashboard_url"] == nil &&
					again.body["dashboard_url"] != nil {
					s.fail("PROV-24", again.request, "dashboard_url already in the first answer", again.String())
				}
			}},
		{ID: "PROV-25", Title: "operations are texts of 1 to 10000 characters", watched: true, needs: needs{asynchronous},
			ask: toProvision(provision), want: anything},
		{ID: "PROV-25/only", Title: "an operation stands with a 202 alone", watched: true},
		{ID: "PROV-25/apart", Title: "each operation has a token of its own", needs: needs{asynchronous}, story: func(s *scene) {
			one, ok := s.send(toProvision(provision))
			two, again := s.send(set("/v2/service_instances/$instance2"+async, provision))
			if ok && again && one.body["operation"] != nil && same(one.body["operation"], two.body["operation"]) {
				s.fail("PROV-25", two.request, "an operation of its own", "that of another instance")
			}
		}},
		{ID: "PROV-26", Since: 16, Title: "the metadata of an instance are objects", needs: needs{anyPlan},
			ask:  toProvision(provision),
			want: made.typed("metadata", "object").typed("metadata.labels", "object").typed("metadata.attributes", "object")},
		{ID: "PROV-27", Title: "the id of an instance is taken as it is, in upper case and in lower", given: ready,
			story: func(s *scene) {
				upper := "/v2/service_instances/" + strings.ToUpper(s.value("instance"))
				s.asked(remove(upper+asyncIDs), status(410))
				s.asked(toProvision(provision), status(200))
			}},
		{ID: "PROV-28", Title: "the id of a deleted instance can be used again", given: deleted, ask: toProvision(provision),
			want: status(201, 202, 400, 409, 422)},
		{ID: "PROV-29", Since: 14, Title: "a provision while the instance is being deleted is refused", given: deleting,
			ask: toProvision(provision), want: busy},
		{ID: "PROV-30", Title: "another request after a failed provision conflicts", given: provisionFailed,
			ask: toProvision(provision.with("space_guid", "$space2").with("context.space_guid", "$space2")), want: status(409)},
		{ID: "PROV-30/again", Title: "an identical request after a failed provision begins again, or is told of the failure",
			given: provisionFailed, ask: toProvision(provision), want: made},
		{ID: "PROV-32", Title: "every request is answered within a minute", watched: true},
		{ID: "PROV-35", Title: "an instance can be bound as soon as it was answered 201", given: ready,
			needs: needs{synchronous, bindSync}, ask: set(binding, bind), want: status(201)},
	}
}
