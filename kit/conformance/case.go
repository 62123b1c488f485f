package conformance

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A Level says how strongly a rule binds.
type Level int

// The levels, from the weakest.
const (
	May Level = iota + 1
	Recommended
	Should
	Must
)

var levels = map[Level]string{May: "MAY", Recommended: "REC", Should: "SHOULD", Must: "MUST"}

// String returns the level as specifications write it.
func (l Level) String() string { return levels[l] }

// ParseLevel returns the level with the name.
func ParseLevel(text string) (Level, bool) {
	for l, name := range levels {
		if strings.EqualFold(name, text) {
			return l, true
		}
	}
	return 0, false
}

// A Case is one check of a broker.
type Case struct {
	// ID is the id of the rule, followed by the subject of the case if the rule has several: PROV-08/plan.
	ID      string
	Section string
	Title   string
	// Sources are the documents that decide the case, each for some versions of the API; Level is
	// the level that the source for the newest version gives it.
	Sources []Source
	Level   Level
	// Since is the first minor version of the API with the rule.
	Since int

	// speaks is the minor version that the case uses, if it is not the run's.
	speaks int

	// needs are the capabilities that the plan must have.
	needs needs
	// given is the starting point of the case; from there, one request is sent, or several steps.
	given given
	ask   request
	want  want
	steps []step
	// story is code that runs after the steps, for what a request and its answer cannot express.
	story func(s *scene)
	// watched rules hold for every answer of the run. A watched case without steps or a story goes on a tour.
	watched bool
	// settles says that the case itself ends the operation that runs.
	settles bool
}

// Rule returns the id of the rule that the case is about.
func (c Case) Rule() string {
	rule, _, _ := strings.Cut(c.ID, "/")
	return rule
}

// authentication is the section of the cases about passwords.
const authentication = "authentication"

// Cases returns all cases, in the order of the rules.
func Cases() []Case {
	var all []Case
	for _, section := range []struct {
		name  string
		cases []Case
	}{
		{"version header", versionCases()},
		{authentication, authenticationCases()},
		{"identity headers", identityCases()},
		{"errors", errorCases()},
		{"input", inputCases()},
		{"catalog", catalogCases()},
		{"provision", provisionCases()},
		{"fetch instance", fetchInstanceCases()},
		{"update", updateCases()},
		{"maintenance", maintenanceCases()},
		{"last operation", lastOperationCases()},
		{"bind", bindCases()},
		{"rotation", rotationCases()},
		{"fetch binding", fetchBindingCases()},
		{"unbind", unbindCases()},
		{"deprovision", deprovisionCases()},
		{"idempotency", idempotencyCases()},
		{"concurrency", concurrencyCases()},
		{"orphans", orphanCases()},
		{"façade", facadeCases()},
	} {
		for _, c := range section.cases {
			c.Section = section.name
			switch {
			case c.ask.method != "":
				c.steps = []step{{c.ask, c.want}}
			case c.watched && c.steps == nil && c.story == nil:
				c.needs, c.story = needs{inCatalog}, tour
			}
			if slices.ContainsFunc(c.steps, func(s step) bool { return s.ask.method == http.MethodPatch }) {
				c = c.needing(updatable)
			}
			c.Sources = sourcesOf(c.ID)
			c.Since = max(c.Since, c.Sources[0].From)
			c.Level = c.Sources[len(c.Sources)-1].Level
			all = append(all, c)
		}
	}
	return all
}

// A step is a request and the answer that it must get.
type step struct {
	ask  request
	want want
}

// A request is one HTTP request. In its path, headers and body, $name stands for an id of the
// catalog or of the case (see scene.value).
type request struct {
	method, path string
	// header overrides the default headers; an empty value removes one.
	header map[string]string
	// content is an object, a body, or a raw, whose bytes are sent as they are.
	content any
	// minor is the version to speak, if it is not the run's.
	minor int
	// quiet requests are exempt from the rules that hold for every answer.
	quiet bool
}

// raw is a body that is sent as it is, except that the names in it are replaced.
type raw string

// Paths of the API.
const (
	catalog           = "/v2/catalog"
	instance          = "/v2/service_instances/$instance"
	instanceOperation = instance + "/last_operation"
	binding           = instance + "/service_bindings/$binding"
	bindingOperation  = binding + "/last_operation"

	async = "?accepts_incomplete=true"
	// ids are the ids of the offering and plan of what was made last.
	ids      = "?service_id=$service&plan_id=$plan"
	asyncIDs = async + "&service_id=$service&plan_id=$plan"
	// ofOperation refers to the operation that was accepted last.
	ofOperation = "?operation=$operation"
)

func get(path string) request { return request{method: "GET", path: path} }
func set(path string, content any) request {
	return request{method: "PUT", path: path, content: content}
}
func patch(path string, content any) request {
	return request{method: "PATCH", path: path, content: content}
}
func remove(path string) request { return request{method: "DELETE", path: path} }

// Requests that may be answered asynchronously.
func toProvision(content any) request { return set(instance+async, content) }
func toUpdate(content any) request    { return patch(instance+async, content) }
func toBind(content any) request      { return set(binding+async, content) }

var (
	provisionAtOnce = set(instance, provision) // from a client that cannot wait

	toDeprovision = remove(instance + asyncIDs)
	toUnbind      = remove(binding + asyncIDs)
	toPoll        = get(instanceOperation + ofOperation)
)

// with sets one header; an empty value removes it.
func (q request) with(name, value string) request {
	header := map[string]string{name: value}
	for n, v := range q.header {
		if !strings.EqualFold(n, name) {
			header[n] = v
		}
	}
	q.header = header
	return q
}

// as makes the request speak another version than the run's.
func (q request) as(minor int) request {
	q.minor = minor
	return q
}

// A body returns the members of a request's body.
type body func(s *scene) object

// with sets a member; dots in the path lead into nested objects.
func (b body) with(path string, value any) body {
	return func(s *scene) object {
		o := b(s)
		put(o, path, normal(s.fill(value)))
		return o
	}
}

// without removes members.
func (b body) without(names ...string) body {
	return func(s *scene) object {
		o := b(s)
		for _, name := range names {
			delete(o, name)
		}
		return o
	}
}

// cloudFoundry is a context object of Cloud Foundry.
var cloudFoundry = object{"platform": "cloudfoundry", "organization_guid": "$organization", "space_guid": "$space"}

// provision is the default body of a PUT of an instance.
var provision body = func(s *scene) object {
	o := object{
		"service_id": s.value("service"), "plan_id": s.value("plan"),
		"organization_guid": s.value("organization"), "space_guid": s.value("space"), "context": s.fill(cloudFoundry),
	}
	if s.plan != nil && len(s.plan.parameters) > 0 {
		o["parameters"] = normal(s.plan.parameters)
	}
	return o
}

// bind is the default body of a PUT of a binding, for an application.
var bind body = func(s *scene) object {
	o := object{
		"service_id": s.value("service"), "plan_id": s.value("plan"),
		"app_guid": s.value("app"), "bind_resource": object{"app_guid": s.value("app")},
	}
	if s.plan != nil && len(s.plan.bindParameters) > 0 {
		o["parameters"] = normal(s.plan.bindParameters)
	}
	return o
}

// update is the body of a PATCH that changes nothing.
var update = members(object{"service_id": "$service"})

// change returns the body of the nth change of the instance that the plan is known to accept; the changes differ.
func change(n int) body {
	return func(s *scene) object {
		o := object{"service_id": s.value("service")}
		if s.plan != nil && n < len(s.plan.changes) {
			maps.Copy(o, normal(s.plan.changes[n]).(object))
		}
		return o
	}
}

// members returns a constant body, with the names in it replaced.
func members(o object) body {
	return func(s *scene) object { return normal(s.fill(o)).(object) }
}
