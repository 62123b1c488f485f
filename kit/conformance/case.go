package conformance

import (
	"fmt"
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

// String is the level as specifications write it.
func (l Level) String() string { return levels[l] }

// ParseLevel reads a level.
func ParseLevel(text string) (Level, bool) {
	for l, name := range levels {
		if strings.EqualFold(name, text) {
			return l, true
		}
	}
	return 0, false
}

// A Case is one thing that a broker must get right.
type Case struct {
	// ID is the rule's, with what the case is about if the rule has several:
	// PROV-08/plan.
	ID      string
	Section string
	Title   string
	// Sources decide the case, each for some versions of the API; Level is that
	// of the one for the newest of them.
	Sources []Source
	Level   Level
	// Since is the first minor version of the API with the rule.
	Since int

	// speaks is the minor version that the case speaks, if not the run's.
	speaks int

	// needs are what a plan must be able to do.
	needs needs
	// given is what the case begins with; there one request is asked, or several steps.
	given given
	ask   request
	want  want
	steps []step
	// story is what does not fit a request and its answer; it comes after them.
	story func(s *scene)
	// watched rules hold for every answer of the run. A case that says no more goes on a tour.
	watched bool
	// settles says that the steps end the operation that runs.
	settles bool
}

// Rule is the id of the rule that the case is about.
func (c Case) Rule() string {
	rule, _, _ := strings.Cut(c.ID, "/")
	return rule
}

// authentication is the section of the cases about passwords.
const authentication = "authentication"

// Cases are all the cases, in the order of the rules.
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

// A request is one HTTP request. In its path, headers and body, $name stands
// for an id of the catalog or of the case (see scene.value).
type request struct {
	method, path string
	// header replaces the usual ones; an empty value leaves one out.
	header map[string]string
	// content is an object, a body, or the bytes to send as they are: a raw.
	content any
	// minor is the version to speak, if not the run's.
	minor int
	// quiet requests are not held against the rules of every answer.
	quiet bool
}

// raw is a body that is sent as it is, with the names in it replaced.
type raw string

// Paths of the API.
const (
	catalog           = "/v2/catalog"
	instance          = "/v2/service_instances/$instance"
	instanceOperation = instance + "/last_operation"
	binding           = instance + "/service_bindings/$binding"
	bindingOperation  = binding + "/last_operation"

	async = "?accepts_incomplete=true"
	// ids are those of what was made last.
	ids      = "?service_id=$service&plan_id=$plan"
	asyncIDs = async + "&service_id=$service&plan_id=$plan"
	// ofOperation asks for the operation that was accepted last.
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

// Requests that may be answered later.
func toProvision(content any) request { return set(instance+async, content) }
func toUpdate(content any) request    { return patch(instance+async, content) }
func toBind(content any) request      { return set(binding+async, content) }

var (
	toDeprovision = remove(instance + asyncIDs)
	toUnbind      = remove(binding + asyncIDs)
	toPoll        = get(instanceOperation + ofOperation)
)

// with sets one header; an empty value leaves it out.
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

// as speaks another version than the run's.
func (q request) as(minor int) request {
	q.minor = minor
	return q
}

// A body makes the members of a request.
type body func(s *scene) object

// with sets a member; dots lead into objects.
func (b body) with(path string, value any) body {
	return func(s *scene) object {
		o := b(s)
		put(o, path, normal(s.fill(value)))
		return o
	}
}

// without leaves members out.
func (b body) without(names ...string) body {
	return func(s *scene) object {
		o := b(s)
		for _, name := range names {
			delete(o, name)
		}
		return o
	}
}

// cloudFoundry is the context that it gives.
var cloudFoundry = object{"platform": "cloudfoundry", "organization_guid": "$organization", "space_guid": "$space"}

// provision is the usual body of a PUT of an instance.
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

// bind is the usual body of a PUT of a binding, of an application.
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

// update is the body of a PATCH that asks for nothing.
var update = members(object{"service_id": "$service"})

// change is a change of the instance that the plan is known to take; a second
// one differs.
func change(n int) body {
	return func(s *scene) object {
		o := object{"service_id": s.value("service")}
		if s.plan != nil && n < len(s.plan.changes) {
			maps.Copy(o, normal(s.plan.changes[n]).(object))
		}
		return o
	}
}

// members is a body as it stands, with the names in it replaced.
func members(o object) body {
	return func(s *scene) object { return normal(s.fill(o)).(object) }
}

// A want is what an answer must be.
type want struct {
	status []int // any of them, or any at all if there is none
	code   string
	tests  []test
}

// A test looks at one thing of an answer, and says what it wanted and got if
// that is not as it should be.
type test func(s *scene, a response) (wanted, got string)

// The error codes that the specification reserves.
const (
	asyncRequired       = "AsyncRequired"
	concurrencyError    = "ConcurrencyError"
	requiresApp         = "RequiresApp"
	maintenanceConflict = "MaintenanceInfoConflict"
)

func reserved(code string) bool {
	return code == asyncRequired || code == concurrencyError || code == requiresApp || code == maintenanceConflict
}

func status(any ...int) want { return want{status: any} }

// refused is a 422 with a reserved code.
func refused(code string) want {
	return want{status: []int{422}, code: code}
}

// refusedOr is a 422 with a reserved code, or another answer that the broker
// may choose.
func refusedOr(code string, others ...int) want {
	return want{status: append([]int{422}, others...), code: code}
}

// anything is any answer: what matters of it the rules of every answer say.
var anything = want{}

// running is the state of an operation that has just been accepted: it may have
// ended in the meantime.
var running = status(200).that(holds("state to be in progress", func(a response) bool {
	state := text(a.body, "state")
	return state == inProgress || state == succeeded
}))

// nothingThere wants a deletion to find nothing.
var nothingThere = anything.that(holds("nothing to delete", func(a response) bool {
	return a.status != http.StatusOK && a.status != http.StatusAccepted
}))

// holds is a test which one sentence tells of.
func holds(wanted string, met func(a response) bool) test {
	return func(_ *scene, a response) (string, string) {
		if met(a) {
			return "", ""
		}
		return wanted, a.String()
	}
}

func (w want) that(t test) want {
	tests := make([]test, 0, len(w.tests)+1)
	w.tests = append(append(tests, w.tests...), t)
	return w
}

// present stands for any value that is not empty.
var present = struct{ present bool }{true}

// has wants a member: of the value, or any if it is present. Dots lead into
// objects.
func (w want) has(member string, value any) want {
	return w.that(func(s *scene, a response) (string, string) {
		got, ok := find(a.body, member)
		if value == present {
			if ok && got != "" && got != nil {
				return "", ""
			}
			return "the member " + member, a.String()
		}
		wanted := normal(s.fill(value))
		if ok && same(got, wanted) {
			return "", ""
		}
		return fmt.Sprintf("%s to be %s", member, encode(wanted)), a.String()
	})
}

// says wants a member, if it is there, to be of a value.
func (w want) says(member string, value any) want {
	return w.that(func(s *scene, a response) (string, string) {
		wanted := normal(s.fill(value))
		if got, _ := find(a.body, member); got != nil && !same(got, wanted) {
			return fmt.Sprintf("%s to be %s", member, encode(wanted)), a.String()
		}
		return "", ""
	})
}

// lacks wants members to be absent.
func (w want) lacks(members ...string) want {
	for _, member := range members {
		w = w.that(holds("no member "+member, func(a response) bool {
			_, found := find(a.body, member)
			return !found
		}))
	}
	return w
}

// typed wants a member, if it is there, to be of a JSON type.
func (w want) typed(member, jsonType string) want {
	return w.that(holds(member+" to be of type "+jsonType, func(a response) bool {
		v, _ := find(a.body, member)
		return v == nil || typeOf(v) == jsonType
	}))
}

// header wants a header of a value; an empty value wants it absent.
func (w want) header(name, value string) want {
	return w.that(func(s *scene, a response) (string, string) {
		if got := a.header.Get(name); got != s.text(value) {
			return fmt.Sprintf("the header %s to be %q", name, s.text(value)), fmt.Sprintf("%q", got)
		}
		return "", ""
	})
}

// grantMembers are what a binding gives.
var grantMembers = []string{"credentials", "syslog_drain_url", "route_service_url", "volume_mounts", "endpoints"}

// sameOperation wants the token that was given for the running operation. A
// broker need not give tokens.
func (w want) sameOperation() want {
	return w.that(func(_ *scene, a response) (string, string) {
		if got := text(a.body, "operation"); a.running != "" && got != a.running {
			return "the same operation as the first answer had", "another"
		}
		return "", ""
	})
}
