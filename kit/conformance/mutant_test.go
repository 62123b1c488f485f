package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/kit/conformance"
)

// A reply is an answer of our broker on its way to the kit. body is what raw holds; a mutant changes either.
type reply struct {
	status int
	header http.Header
	raw    []byte
	body   map[string]any
}

func (r *reply) says(member string, value any) { r.body[member] = value }

// A mutant is our broker with one thing broken.
type mutant struct {
	name string
	// found is the id of the case that must fail.
	found string
	// on chooses the answers that are broken; breaks changes them.
	on     match
	breaks func(r *reply)
	// serve, if set, stands before the broker instead.
	serve func(broker http.Handler, w http.ResponseWriter, r *http.Request)
}

func mut(name, found string, on match, breaks func(*reply)) mutant {
	return mutant{name: name, found: found, on: on, breaks: breaks}
}

// A match chooses answers. Zero members choose all.
type match struct {
	method string
	path   *regexp.Regexp
	status []int
	where  func(q *http.Request, r *reply) bool
}

func (m match) takes(q *http.Request, r *reply) bool {
	if m.method != "" && q.Method != m.method || m.path != nil && !m.path.MatchString(q.URL.Path) {
		return false
	}
	for _, s := range m.status {
		if s == r.status {
			return m.where == nil || m.where(q, r)
		}
	}
	return len(m.status) == 0 && (m.where == nil || m.where(q, r))
}

var (
	catalogPath   = regexp.MustCompile(`^/v2/catalog$`)
	instancePath  = regexp.MustCompile(`^/v2/service_instances/[^/]+$`)
	pollPath      = regexp.MustCompile(`^/v2/service_instances/[^/]+/last_operation$`)
	bindingPath   = regexp.MustCompile(`/service_bindings/[^/]+$`)
	bindPollPath  = regexp.MustCompile(`/service_bindings/[^/]+/last_operation$`)
	operationPath = regexp.MustCompile(`^/operations/`)
)

func on(method string, path *regexp.Regexp, status ...int) match {
	return match{method, path, status, nil}
}

func (m match) and(where func(q *http.Request, r *reply) bool) match {
	m.where = where
	return m
}

// Ways to break an answer.
func answers(status int) func(*reply)   { return func(r *reply) { r.status = status } }
func lacks(member string) func(*reply)  { return func(r *reply) { delete(r.body, member) } }
func unheaded(name string) func(*reply) { return func(r *reply) { r.header.Del(name) } }
func sends(raw string) func(*reply)     { return func(r *reply) { r.raw, r.body = []byte(raw), nil } }
func says(m string, v any) func(*reply) { return func(r *reply) { r.says(m, v) } }
func heads(n, v string) func(*reply)    { return func(r *reply) { r.header.Set(n, v) } }
func both(a, b func(*reply)) func(*reply) {
	return func(r *reply) {
		a(r)
		b(r)
	}
}

// again breaks all answers but the first.
func again(breaks func(*reply)) func(*reply) {
	var n atomic.Int64
	return func(r *reply) {
		if n.Add(1) > 1 {
			breaks(r)
		}
	}
}

// ever is different each time.
func ever(member string) func(*reply) {
	var n atomic.Int64
	return func(r *reply) { r.says(member, fmt.Sprintf("%v%d", r.body[member], n.Add(1))) }
}

func state(is string) func(q *http.Request, r *reply) bool {
	return func(_ *http.Request, r *reply) bool { return r.body["state"] == is }
}

func code(is string) func(q *http.Request, r *reply) bool {
	return func(_ *http.Request, r *reply) bool { return r.body["error"] == is }
}

func speaks(version string) func(q *http.Request, r *reply) bool {
	return hears("X-Broker-API-Version", version)
}

func hears(name, value string) func(q *http.Request, r *reply) bool {
	return func(q *http.Request, _ *reply) bool { return q.Header.Get(name) == value }
}

// plans and services change each one of a catalog.
func plans(change func(p map[string]any)) func(*reply) {
	return services(func(s map[string]any) {
		for _, p := range s["plans"].([]any) {
			change(p.(map[string]any))
		}
	})
}

func services(change func(s map[string]any)) func(*reply) {
	return func(r *reply) {
		for _, s := range r.body["services"].([]any) {
			change(s.(map[string]any))
		}
	}
}

func setting(member string, value any) func(o map[string]any) {
	return func(o map[string]any) { o[member] = value }
}

// sharing gives every binding the credentials of the first.
func sharing() func(*reply) {
	var first atomic.Pointer[any]
	return func(r *reply) {
		c := r.body["credentials"]
		first.CompareAndSwap(nil, &c)
		r.says("credentials", *first.Load())
	}
}

func never(method string, path *regexp.Regexp, answer string) func(http.Handler, http.ResponseWriter, *http.Request) {
	return func(broker http.Handler, w http.ResponseWriter, r *http.Request) {
		if r.Method != method || !path.MatchString(r.URL.Path) {
			broker.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Broker-API-Request-Identity", r.Header.Get("X-Broker-API-Request-Identity"))
		_, _ = w.Write([]byte(answer))
	}
}

// comesBack finds what was deleted there again, and deletes it again.
func comesBack() func(http.Handler, http.ResponseWriter, *http.Request) {
	var made sync.Map
	return func(broker http.Handler, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			made.Store(r.URL.Path, true)
		}
		_, known := made.Load(r.URL.Path)
		broken(broker, w, r, anew("DELETE", 410), func(r *reply) {
			if known {
				r.status = 200
			}
		})
	}
}

// volume changes the first volume mount.
func volume(change func(mount map[string]any)) func(*reply) {
	return func(r *reply) {
		if mounts, ok := r.body["volume_mounts"].([]any); ok {
			change(mounts[0].(map[string]any))
		}
	}
}

const html = "<html><body>Something went wrong</body></html>"

func mutants() []mutant {
	return slices.Concat(mutantsOfAll(), mutantsOfCatalog(), mutantsOfInstances(), mutantsOfBindings(), mutantsOfEnds())
}

func mutantsOfAll() []mutant {
	return []mutant{
		mut("UnknownMinorRefused", "HDR-03/2.99", ofCatalog.and(speaks("2.99")), answers(412)),
		mut("VersionIsAFraction", "HDR-02/2.10", ofCatalog.and(speaks("2.10")), answers(412)),
		mut("VersionNotChecked", "HDR-04/3.0", match{status: []int{412}}, both(answers(200), sends(`{"services":[]}`))),
		mut("CapitalDescription", "ERR-02/description", match{status: []int{412}}, func(r *reply) {
			r.says("Description", r.body["description"])
			delete(r.body, "description")
		}),
		mut("VersionNotCheckedOnPolls", "HDR-09/instance-last-operation", on("GET", pollPath, 412), answers(404)),
		mut("Forbidden", "AUTH-01/catalog", match{status: []int{401}}, answers(403)),
		mut("NoCredentialsForCatalog", "AUTH-01/catalog", on("GET", catalogPath, 401), answers(200)),
		mut("BadCredentialsAreBadRequests", "AUTH-03/text",
			on("GET", catalogPath, 401).and(hears("Authorization", "Basic !!!")), answers(400)),
		mut("WrongPasswordTold", "AUTH-02/alike", on("GET", catalogPath, 401).and(func(q *http.Request, _ *reply) bool {
			user, _, _ := q.BasicAuth()
			return user == username
		}), says("description", "The password is wrong.")),
		mut("NoChallenge", "AUTH-06", match{status: []int{401}}, unheaded("WWW-Authenticate")),
		{name: "UnauthorizedButDone", found: "AUTH-07", serve: func(broker http.Handler, w http.ResponseWriter, r *http.Request) {
			if user, _, _ := r.BasicAuth(); r.Method == http.MethodPut && user != username {
				content, _ := io.ReadAll(r.Body)
				done := httptest.NewRequest(r.Method, r.URL.String(), bytes.NewReader(content))
				done.Header = r.Header.Clone()
				done.SetBasicAuth(username, password)
				broker.ServeHTTP(httptest.NewRecorder(), done)
				r.Body = http.NoBody
			}
			broker.ServeHTTP(w, r)
		}},
		mut("RequestIdentityNotOnErrors", "RID-01", match{status: []int{400, 401, 404, 409, 410, 412, 422}},
			unheaded("X-Broker-API-Request-Identity")),
		mut("RequestIdentityMadeUp", "RID-03", match{where: hears("X-Broker-API-Request-Identity", "")},
			heads("X-Broker-API-Request-Identity", "made-up")),
		mut("PlainTextErrors", "MISC-04", match{status: []int{404}}, heads("Content-Type", "text/plain; charset=utf-8")),
		mut("HTMLErrors", "ERR-01", match{status: []int{404}}, sends(html)),
		mut("EmptyBody", "ERR-01", anew("DELETE", 410), sends("")),
		mut("ArrayBody", "ERR-01", match{status: []int{401}}, sends("[]")),
		mut("ErrorOfTwoWords", "ERR-02/word", match{status: []int{400}}, says("error", "Bad Request")),
		mut("DescriptionOfObjects", "ERR-02", match{status: []int{404}},
			says("description", map[string]any{"text": "not there"})),
		mut("Locked", "ERR-11", anew("PUT", 409), answers(423)),
		mut("GoneIsFetched", "ERR-11", anew("GET", 404), answers(410)),
		mut("ConcurrencyWithoutCode", "ERR-04/update-while-updating", anew("PATCH", 422), lacks("error")),
		mut("BusyBindConflicts", "ERR-04/bind-while-updating", toBind(422), answers(409)),
		mut("BusyFetchIsNotFound", "ERR-04/fetch-while-updating", anew("GET", 422), answers(404)),
		mut("BusyDeletionIsLocked", "ERR-04/deprovision-while-updating", anew("DELETE", 422), answers(423)),
		mut("EmptyReason", "ERR-02", match{status: []int{400}}, says("description", "")),
		mut("ReservedCodeBorrowed", "ERR-07", anew("PATCH", 422), says("error", "ConcurrencyError")),
		mut("RefusedButChanged", "ERR-08", anew("GET", 200), ever("plan_id")),
		{name: "IDsInLowerCase", found: "PROV-27", serve: func(broker http.Handler, w http.ResponseWriter, r *http.Request) {
			r.URL.Path = strings.ToLower(r.URL.Path)
			broker.ServeHTTP(w, r)
		}},
		mut("OnlyTheLastOperation", "LOP-06", toPoll(200).and(state("succeeded")), again(says("state", "in progress"))),
		mut("BusyBindIsNotFound", "CONC-01", toBind(422), answers(404)),
		{name: "ComesBack", found: "CONC-09", serve: comesBack()},
		mut("NoContentPoll", "LOP-04", toPoll(200), answers(201)),
		mut("DeletionIsCreating", "FAC-19", on("GET", operationPath, 202), func(r *reply) {
			r.body["status"].(map[string]any)["state"] = "Creating"
		}),
	}
}

func mutantsOfCatalog() []mutant {
	return []mutant{
		mut("RedirectToNothing", "FAC-07", on("GET", operationPath, 302),
			heads("Location", "/v2/service_instances/none/service_bindings/none")),
		mut("FlagsEverywhere", "ERR-10", match{status: []int{409}}, says("instance_usable", false)),
		mut("PasswordEchoed", "ERR-13", match{status: []int{404}}, says("description", "not found for "+username+":"+password)),
		mut("InternalErrors", "ORB-07", match{status: []int{400}}, answers(500)),
		mut("UnparsableIsUnprocessable", "INP-01/provision-brace", anew("PUT", 400), answers(422)),
		mut("BadTypesAreInternal", "INP-03/provision-service_id", anew("PUT", 400), answers(500)),
		{name: "FalseIsTrue", found: "INP-09/false", serve: func(broker http.Handler, w http.ResponseWriter, r *http.Request) {
			r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "accepts_incomplete=false", "accepts_incomplete=true", 1)
			broker.ServeHTTP(w, r)
		}},
		mut("Redirects", "INP-19", match{status: []int{404}}, both(answers(301), heads("Location", "/v2/catalog"))),
		mut("NoServices", "CAT-01", ofCatalog, says("services", nil)),
		mut("BindableMissing", "CAT-02/bindable", ofCatalog, services(func(s map[string]any) { delete(s, "bindable") })),
		mut("PlanWithoutDescription", "CAT-03", ofCatalog, plans(setting("description", ""))),
		mut("ClientsTwice", "CAT-04/clients", ofCatalog, services(setting("dashboard_client", map[string]any{"id": "one"}))),
		mut("PlanIDsTwice", "CAT-04/plan-ids", ofCatalog, plans(setting("id", "one"))),
		mut("SpacesInNames", "CAT-05", ofCatalog, plans(setting("name", "a plan"))),
		mut("IDsChange", "CAT-07", ofCatalog, func() func(*reply) {
			var n atomic.Int64
			return services(func(s map[string]any) { s["id"] = fmt.Sprint(n.Add(1)) })
		}()),
		mut("UnknownPermission", "CAT-09", ofCatalog, services(setting("requires", []any{"everything"}))),
		mut("FreeAsText", "CAT-16", ofCatalog, plans(setting("free", "true"))),
		mut("SchemaOfNoDraft", "CAT-21", ofCatalog, plans(setting("schemas", map[string]any{
			"service_instance": map[string]any{"create": map[string]any{"parameters": map[string]any{"type": "object"}}}}))),
		mut("MaintenanceNotSemantic", "CAT-24", ofCatalog, plans(setting("maintenance_info", map[string]any{"version": "v2"}))),
		mut("RotatableForAll", "CAT-25/old", ofCatalog, plans(setting("binding_rotatable", true))),
		mut("NullTags", "CAT-27", ofCatalog, services(setting("tags", nil))),

		mut("CreatedIs200", "PROV-01", anew("PUT", 201), answers(200)),
		mut("AcceptedIs201", "PROV-02", anew("PUT", 202), answers(201)),
		mut("NoOperation", "PROV-02/operation", anew("PUT", 202), lacks("operation")),
		mut("AsyncRequiredIs400", "PROV-03", anew("PUT", 422).and(code("AsyncRequired")), answers(400)),
		mut("AsyncRequiredWithoutCode", "ERR-03", anew("PUT", 422).and(code("AsyncRequired")), lacks("error")),
		mut("AsyncRequiredInOtherWords", "ERR-03/sentence", anew("PUT", 422).and(code("AsyncRequired")),
			says("description", "Wait.")),
		{name: "AcceptedWithoutPermission", found: "PROV-06",
			serve: func(broker http.Handler, w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					r.URL.RawQuery = "accepts_incomplete=true"
				}
				broken(broker, w, r, on("PUT", instancePath, 201), answers(202))
			}},
		mut("RepeatedIs201", "PROV-07", anew("PUT", 200), answers(201)),
		mut("RepeatedIsConflict", "PROV-07", anew("PUT", 200), answers(409)),
		mut("RepeatedNamesOperation", "PROV-25/only", anew("PUT", 200), says("operation", "again")),
		mut("ConflictIs200", "PROV-08/space", anew("PUT", 409), answers(200)),
		mut("ConflictIs422", "PROV-08/space", anew("PUT", 409), answers(422)),
		mut("RunningRepeatedIs200", "PROV-10", anew("PUT", 202), again(answers(200))),
		mut("OperationChanges", "PROV-10/operation", anew("PUT", 202), ever("operation")),
		mut("OperationChangesForOldClients", "PROV-10/2.9", anew("PUT", 202), ever("operation")),
		mut("ConflictWhileRunningIs202", "PROV-11/parameters", anew("PUT", 409), answers(202)),
		mut("WithoutPlanIs409", "PROV-13/2.9-plan", anew("PUT", 400), answers(409)),
		mut("WithoutMaintenanceVersionIs409", "PROV-23/absent", anew("PUT", 400, 422), answers(409)),
		mut("OperationIsANumber", "PROV-25", anew("PUT", 202), says("operation", 5)),
		mut("OperationTooLong", "PROV-25", anew("PUT", 202), says("operation", strings.Repeat("x", 10_001))),
	}
}

func mutantsOfInstances() []mutant {
	return []mutant{
		mut("ForeignPlanTaken", "PROV-14/foreign", anew("PUT", 400), answers(201)),
		mut("MissingPlaceTaken", "PROV-15/space", anew("PUT", 400), answers(201)),
		mut("MaintenanceWithoutCode", "PROV-20/other", anew("PUT", 422).and(code("MaintenanceInfoConflict")), lacks("error")),
		mut("MaintenanceIgnored", "UPD-17/other", anew("PATCH", 422).and(code("MaintenanceInfoConflict")), answers(200)),
		mut("LateDashboard", "PROV-24", anew("PUT", 200), says("dashboard_url", "https://dashboard.example.com")),

		mut("UnknownInstanceIs410", "GETI-02", anew("GET", 404), answers(410)),
		mut("PlanNotShown", "GETI-01/ids", anew("GET", 200), lacks("plan_id")),
		mut("FetchWhileUpdating", "GETI-04", anew("GET", 422), answers(200)),
		mut("OldPlanShown", "GETI-11", anew("GET", 200), says("plan_id", "the old one")),
		mut("UpdateWithoutPermissionIs400", "UPD-03/2.9", anew("PATCH", 422), answers(400)),
		mut("ChangeOfPlanWithoutPermissionIs200", "UPD-03/plan", anew("PATCH", 422), answers(200)),
		mut("PreviousValuesAreRefused", "UPD-18/2.9", anew("PATCH", 200, 202), answers(400)),
		mut("UpdatedIs204", "UPD-01", anew("PATCH", 200), both(answers(204), sends(""))),
		mut("UpdateAcceptedIs200", "UPD-02", anew("PATCH", 202), answers(200)),
		mut("UnknownServiceUpdated", "UPD-04/unknown", anew("PATCH", 400), answers(200)),
		mut("NotUpdateableUpdated", "UPD-09", anew("PATCH", 422), answers(200)),
		mut("UpdateTokenChanges", "UPD-21", anew("PATCH", 202), ever("operation")),
		mut("ConcurrencyIsConflict", "UPD-22", anew("PATCH", 422).and(code("ConcurrencyError")), answers(409)),
		mut("FailedUpdateApplied", "UPD-23", anew("GET", 200), ever("plan_id")),

		mut("Underscore", "LOP-01", toPoll(200).and(state("in progress")), says("state", "in_progress")),
		mut("StateOfItsOwn", "LOP-01/state", toPoll(200), says("state", "ready")),
		mut("RunningIs202", "LOP-01/update", toPoll(200).and(state("in progress")), answers(202)),
		mut("FailureIs400", "LOP-03", toPoll(200).and(state("failed")), answers(400)),
		mut("RetryAfterSoon", "LOP-05", toPoll(200), heads("Retry-After", "soon")),
		mut("UnknownOperationIs410", "LOP-09", toPoll(404), answers(410)),
		mut("EmptyDescription", "LOP-21", toPoll(200), says("description", "")),
		mut("NeverEnds", "LOP-02", toPoll(200).and(state("succeeded")), again(says("state", "in progress"))),
	}
}

func mutantsOfBindings() []mutant {
	return []mutant{
		mut("BoundIs200", "BIND-01", toBind(201), answers(200)),
		mut("CredentialsAreText", "BIND-01/2.9", toBind(201), says("credentials", "user:pass")),
		mut("CredentialsChange", "BIND-02/credentials", toBind(200), func(r *reply) {
			r.says("credentials", map[string]any{"password": "a-fresh-one-each-time"})
		}),
		mut("CredentialsOnce", "BIND-02/twice", toBind(200), lacks("credentials")),
		mut("BindConflictOfOldClientsIs200", "BIND-03/2.9", toBind(409), answers(200)),
		mut("BindConflictIs200", "BIND-03/app", toBind(409), answers(200)),
		mut("UnknownPlanBound", "BIND-05/plan", toBind(400), answers(201)),
		mut("RequiresAppIs400", "BIND-10", toBind(422), answers(400)),
		mut("NotBindableBound", "BIND-13", toBind(400), answers(201)),
		mut("BindingsGoTogether", "BIND-16/left", on("GET", bindingPath, 200), answers(404)),
		mut("SharedCredentials", "BIND-16", toBind(201), sharing()),
		mut("BindWhileUpdating", "BIND-17/updating", toBind(422), lacks("error")),
		mut("AcceptedForOldClients", "BIND-20/async-only", toBind(422), both(answers(202), says("operation", "bind"))),
		mut("OldClientsWait", "HDR-10", toBind(201), answers(202)),
		mut("CredentialsTooEarly", "BIND-21", toBind(202), says("credentials", map[string]any{"password": "not-yet-valid"})),
		mut("BindTokenChanges", "BIND-23", toBind(202), ever("operation")),
		mut("AsyncWithoutCredentials", "BIND-25", on("GET", bindingPath, 200), lacks("credentials")),
		mut("PortsAreNumbers", "BIND-26", toBind(201),
			says("endpoints", []any{map[string]any{"host": "db.example.com", "ports": []any{3306}}})),
		mut("TimeWithoutFraction", "BIND-27", toBind(201),
			says("metadata", map[string]any{"expires_at": "2030-01-31T23:59:59Z"})),
		mut("DrainNotRequired", "BIND-30", toBind(201), says("syslog_drain_url", "syslog://logs.example.com")),
		mut("NoDrain", "BIND-31", toBind(201), lacks("syslog_drain_url")),
		mut("DrainOverHTTP", "BIND-31/scheme", toBind(201), says("syslog_drain_url", "http://logs.example.com")),
		mut("RouteOverHTTP", "BIND-32", toBind(201), says("route_service_url", "http://route.example.com")),
		mut("VolumeWithoutType", "BIND-34", toBind(201), volume(func(m map[string]any) { delete(m, "device_type") })),
		mut("VolumeConfigIsAnObject", "BIND-35", toBind(201), volume(func(m map[string]any) {
			m["private"].(map[string]any)["config"] = map[string]any{}
		})),
		mut("VolumeFormForgotten", "BIND-35/again", toBind(200), volume(func(m map[string]any) { delete(m, "private") })),
		mut("UnknownBindingIs410", "GETB-02/unknown", on("GET", bindingPath, 404), answers(410)),
		mut("FetchedDiffers", "GETB-04", on("GET", bindingPath, 200),
			says("credentials", map[string]any{"password": "another-password"})),
		mut("CredentialsInPoll", "LOB-07", on("GET", bindPollPath, 200),
			says("credentials", map[string]any{"password": "in-the-wrong-place"})),
		mut("UnboundIs204", "UNB-01", toUnbind(200), both(answers(204), sends(""))),
		mut("UnboundIs202", "UNB-01/2.9", toUnbind(200), answers(202)),
		mut("UnknownUnboundIs404", "UNB-02/unknown", toUnbind(410), answers(404)),
		{name: "NotUnbound", found: "GETB-02/unbound", serve: never("DELETE", bindingPath, "{}")},
		mut("UnboundWithoutPlan", "UNB-04/plan_id", toUnbind(400), answers(200)),
		mut("UnbindTokenChanges", "UNB-06/again", toUnbind(202), ever("operation")),
	}
}

func mutantsOfEnds() []mutant {
	return []mutant{
		mut("DeletedIs202", "DEPR-01", anew("DELETE", 200), answers(202)),
		mut("DeletionAcceptedOfOldClientsIs200", "DEPR-02/2.9", anew("DELETE", 202), answers(200)),
		mut("DeletionAcceptedIs200", "DEPR-02", anew("DELETE", 202), answers(200)),
		mut("UnknownDeletedIs404", "DEPR-03", anew("DELETE", 410), answers(404)),
		mut("UnknownDeletedIs200", "DEPR-04", anew("DELETE", 410), answers(200)),
		mut("DeletedWithoutService", "DEPR-05/service_id", anew("DELETE", 400), answers(200)),
		mut("DeletionTokenChanges", "DEPR-07", anew("DELETE", 202), ever("operation")),
		mut("DeletedWhileUpdating", "DEPR-09", anew("DELETE", 422), answers(202)),
		{name: "NotDeleted", found: "GETI-06", serve: never("DELETE", instancePath, "{}")},
		mut("OrphansAre404", "ORB-01", anew("DELETE", 410), answers(404)),
		mut("RepeatedBodyDiffers", "IDEM-05", anew("PUT", 201),
			says("metadata", map[string]any{"labels": map[string]any{"a": "b"}})),

		mut("NoLocation", "FAC-01", anew("PUT", 202), unheaded("Location")),
		mut("NoRetryAfter", "FAC-03", on("GET", operationPath, 202), unheaded("Retry-After")),
		mut("NoConditions", "FAC-04", on("GET", operationPath, 202), says("status", map[string]any{"state": "Creating"})),
		mut("NoRedirect", "FAC-06", on("GET", operationPath, 302), answers(200)),
		mut("FailureIs200", "FAC-09", on("GET", operationPath, 422), answers(200)),
		mut("CachedStatus", "FAC-14", on("GET", operationPath), unheaded("Cache-Control")),
	}
}

var ofCatalog = on("GET", catalogPath, 200)

func toPoll(status ...int) match { return on("GET", pollPath, status...) }

func toUnbind(status ...int) match { return on("DELETE", bindingPath, status...) }

func toBind(status ...int) match { return on("PUT", bindingPath, status...) }

func anew(method string, status ...int) match { return on(method, instancePath, status...) }

// broken serves a request and breaks the answers that match.
func broken(broker http.Handler, w http.ResponseWriter, q *http.Request, m match, breaks func(*reply)) {
	recorder := httptest.NewRecorder()
	broker.ServeHTTP(recorder, q)
	r := &reply{status: recorder.Code, header: recorder.Header(), raw: recorder.Body.Bytes()}
	_ = json.Unmarshal(r.raw, &r.body)
	if m.takes(q, r) {
		whole := r.body
		breaks(r)
		if r.body != nil && whole != nil {
			r.raw, _ = json.Marshal(r.body)
		}
	}
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length") // of what it was before
	w.WriteHeader(r.status)
	_, _ = w.Write(r.raw)
}

// The kit finds each of many brokers with one thing broken, by the case that is about it.
func TestMutantsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the kit against each of many brokers")
	}
	broker := open(t).Handler
	target := at(t, broker)
	options := conformance.Options{Now: time.Now, Parallel: 8, OperationTimeout: 5 * time.Second}
	known := expect.Get(conformance.Learn(context.Background(), target, options))(t)
	// They mostly wait: many at a time, whatever the number of processors.
	var all sync.WaitGroup
	limit := make(chan struct{}, 24)
	for _, m := range mutants() {
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			t.Run(m.name, func(t *testing.T) {
				serve := m.serve
				if serve == nil {
					serve = func(broker http.Handler, w http.ResponseWriter, r *http.Request) {
						broken(broker, w, r, m.on, m.breaks)
					}
				}
				target, options := target, options
				target.URL = at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(broker, w, r) })).URL
				options.Known = known
				options.Only = regexp.MustCompile("^" + regexp.QuoteMeta(m.found) + " ")
				report := expect.Get(conformance.Run(context.Background(), target, options))(t)
				if len(report.Results) != 1 {
					t.Fatalf("%s chose %d cases", m.found, len(report.Results))
				}
				if r := report.Results[0]; r.Outcome != conformance.Failed {
					t.Errorf("%s %s: not found: %s %v", m.found, r.Outcome, r.Reason, r.Failures)
				}
			})
		})
	}
	all.Wait()
}
