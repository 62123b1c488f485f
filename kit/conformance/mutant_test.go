package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	return func(q *http.Request, _ *reply) bool { return q.Header.Get("X-Broker-API-Version") == version }
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
		{name: "UnknownMinorRefused", found: "HDR-03/2.99", on: ofCatalog.and(speaks("2.99")), breaks: answers(412)},
		{name: "VersionIsAFraction", found: "HDR-02/2.10", on: ofCatalog.and(speaks("2.10")), breaks: answers(412)},
		{name: "VersionNotChecked", found: "HDR-04/3.0", on: match{status: []int{412}},
			breaks: both(answers(200), sends(`{"services":[]}`))},
		{name: "CapitalDescription", found: "ERR-02/description", on: match{status: []int{412}}, breaks: func(r *reply) {
			r.says("Description", r.body["description"])
			delete(r.body, "description")
		}},
		{name: "VersionNotCheckedOnPolls", found: "HDR-09/instance-last-operation", on: on("GET", pollPath, 412),
			breaks: answers(404)},
		{name: "Forbidden", found: "AUTH-01/catalog", on: match{status: []int{401}}, breaks: answers(403)},
		{name: "NoCredentialsForCatalog", found: "AUTH-01/catalog", on: on("GET", catalogPath, 401), breaks: answers(200)},
		{name: "BadCredentialsAreBadRequests", found: "AUTH-03/text",
			on: on("GET", catalogPath,
				401).and(func(q *http.Request, _ *reply) bool { return q.Header.Get("Authorization") == "Basic !!!" }),
			breaks: answers(400)},
		{name: "WrongPasswordTold", found: "AUTH-02/alike",
			on: on("GET", catalogPath, 401).and(func(q *http.Request, _ *reply) bool {
				user, _, _ := q.BasicAuth()
				return user == username
			}), breaks: says("description", "The password is wrong.")},
		{name: "NoChallenge", found: "AUTH-06", on: match{status: []int{401}}, breaks: unheaded("WWW-Authenticate")},
		{name: "UnauthorizedButDone", found: "AUTH-07", serve: func(broker http.Handler, w http.ResponseWriter, r *http.Request) {
			if user, _, _ := r.BasicAuth(); r.Method == http.MethodPut && user != username {
				content := new(bytes.Buffer)
				_, _ = content.ReadFrom(r.Body)
				again := r.Clone(r.Context())
				again.Body = http.NoBody
				done := httptest.NewRequest(r.Method, r.URL.String(), bytes.NewReader(content.Bytes()))
				done.Header = r.Header.Clone()
				done.SetBasicAuth(username, password)
				broker.ServeHTTP(httptest.NewRecorder(), done)
				broker.ServeHTTP(w, again)
				return
			}
			broker.ServeHTTP(w, r)
		}},
		{name: "RequestIdentityNotOnErrors", found: "RID-01", on: match{status: []int{400, 401, 404, 409, 410, 412, 422}},
			breaks: unheaded("X-Broker-API-Request-Identity")},
		{name: "RequestIdentityMadeUp", found: "RID-03",
			on: match{where: func(q *http.Request, _ *reply) bool {
				return q.Header.Get("X-Broker-API-Request-Identity") == ""
			}},
			breaks: heads("X-Broker-API-Request-Identity", "made-up")},
		{name: "PlainTextErrors", found: "MISC-04", on: match{status: []int{404}},
			breaks: heads("Content-Type", "text/plain; charset=utf-8")},
		{name: "HTMLErrors", found: "ERR-01", on: match{status: []int{404}}, breaks: sends(html)},
		{name: "EmptyBody", found: "ERR-01", on: anew("DELETE", 410), breaks: sends("")},
		{name: "ArrayBody", found: "ERR-01", on: match{status: []int{401}}, breaks: sends("[]")},
		{name: "ErrorOfTwoWords", found: "ERR-02/word", on: match{status: []int{400}}, breaks: says("error", "Bad Request")},
		{name: "DescriptionOfObjects", found: "ERR-02", on: match{status: []int{404}},
			breaks: says("description", map[string]any{"text": "not there"})},
		{name: "Locked", found: "ERR-11", on: anew("PUT", 409), breaks: answers(423)},
		{name: "GoneIsFetched", found: "ERR-11", on: anew("GET", 404), breaks: answers(410)},
		{name: "ConcurrencyWithoutCode", found: "ERR-04/update-while-updating", on: anew("PATCH", 422), breaks: lacks("error")},
		{name: "BusyBindConflicts", found: "ERR-04/bind-while-updating", on: toBind(422), breaks: answers(409)},
		{name: "BusyFetchIsNotFound", found: "ERR-04/fetch-while-updating", on: anew("GET", 422), breaks: answers(404)},
		{name: "BusyDeletionIsLocked", found: "ERR-04/deprovision-while-updating", on: anew("DELETE", 422), breaks: answers(423)},
		{name: "EmptyReason", found: "ERR-02", on: match{status: []int{400}}, breaks: says("description", "")},
		{name: "ReservedCodeBorrowed", found: "ERR-07", on: anew("PATCH", 422), breaks: says("error", "ConcurrencyError")},
		{name: "RefusedButChanged", found: "ERR-08", on: anew("GET", 200), breaks: ever("plan_id")},
		{name: "IDsInLowerCase", found: "PROV-27", serve: func(broker http.Handler, w http.ResponseWriter, r *http.Request) {
			r.URL.Path = strings.ToLower(r.URL.Path)
			broker.ServeHTTP(w, r)
		}},
		{name: "OnlyTheLastOperation", found: "LOP-06", on: toPoll(200), breaks: func() func(*reply) {
			var n atomic.Int64
			return func(r *reply) {
				if r.body["state"] == "succeeded" && n.Add(1) > 1 {
					r.says("state", "in progress")
				}
			}
		}()},
		{name: "BusyBindIsNotFound", found: "CONC-01", on: toBind(422), breaks: answers(404)},
		{name: "ComesBack", found: "CONC-09", serve: comesBack()},
		{name: "NoContentPoll", found: "LOP-04", on: toPoll(200), breaks: answers(201)},
		{name: "DeletionIsCreating", found: "FAC-19", on: on("GET", operationPath, 202), breaks: func(r *reply) {
			r.body["status"].(map[string]any)["state"] = "Creating"
		}},
	}
}

func mutantsOfCatalog() []mutant {
	return []mutant{
		{name: "RedirectToNothing", found: "FAC-07", on: on("GET", operationPath, 302),
			breaks: heads("Location", "/v2/service_instances/none/service_bindings/none")},
		{name: "FlagsEverywhere", found: "ERR-10", on: match{status: []int{409}}, breaks: says("instance_usable", false)},
		{name: "PasswordEchoed", found: "ERR-13", on: match{status: []int{404}},
			breaks: says("description", "not found for "+username+":"+password)},
		{name: "InternalErrors", found: "ORB-07", on: match{status: []int{400}}, breaks: answers(500)},
		{name: "UnparsableIsUnprocessable", found: "INP-01/provision-brace", on: anew("PUT", 400), breaks: answers(422)},
		{name: "BadTypesAreInternal", found: "INP-03/provision-service_id", on: anew("PUT", 400), breaks: answers(500)},
		{name: "FalseIsTrue", found: "INP-09/false", serve: func(broker http.Handler, w http.ResponseWriter, r *http.Request) {
			r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "accepts_incomplete=false", "accepts_incomplete=true", 1)
			broker.ServeHTTP(w, r)
		}},
		{name: "Redirects", found: "INP-19", on: match{status: []int{404}},
			breaks: both(answers(301), heads("Location", "/v2/catalog"))},
		{name: "NoServices", found: "CAT-01", on: ofCatalog, breaks: says("services", nil)},
		{name: "BindableMissing", found: "CAT-02/bindable", on: ofCatalog,
			breaks: services(func(s map[string]any) { delete(s, "bindable") })},
		{name: "PlanWithoutDescription", found: "CAT-03", on: ofCatalog, breaks: plans(setting("description", ""))},
		{name: "ClientsTwice", found: "CAT-04/clients", on: ofCatalog,
			breaks: services(setting("dashboard_client", map[string]any{"id": "one"}))},
		{name: "PlanIDsTwice", found: "CAT-04/plan-ids", on: ofCatalog, breaks: plans(setting("id", "one"))},
		{name: "SpacesInNames", found: "CAT-05", on: ofCatalog, breaks: plans(setting("name", "a plan"))},
		{name: "IDsChange", found: "CAT-07", on: ofCatalog, breaks: func() func(*reply) {
			var n atomic.Int64
			return services(func(s map[string]any) { s["id"] = fmt.Sprint(n.Add(1)) })
		}()},
		{name: "UnknownPermission", found: "CAT-09", on: ofCatalog, breaks: services(setting("requires", []any{"everything"}))},
		{name: "FreeAsText", found: "CAT-16", on: ofCatalog, breaks: plans(setting("free", "true"))},
		{name: "SchemaOfNoDraft", found: "CAT-21", on: ofCatalog,
			breaks: plans(setting("schemas", map[string]any{"service_instance": map[string]any{
				"create": map[string]any{"parameters": map[string]any{"type": "object"}}}}))},
		{name: "MaintenanceNotSemantic", found: "CAT-24", on: ofCatalog,
			breaks: plans(setting("maintenance_info", map[string]any{"version": "v2"}))},
		{name: "RotatableForAll", found: "CAT-25/old", on: ofCatalog, breaks: plans(setting("binding_rotatable", true))},
		{name: "NullTags", found: "CAT-27", on: ofCatalog, breaks: services(setting("tags", nil))},

		{name: "CreatedIs200", found: "PROV-01", on: anew("PUT", 201), breaks: answers(200)},
		{name: "AcceptedIs201", found: "PROV-02", on: anew("PUT", 202), breaks: answers(201)},
		{name: "NoOperation", found: "PROV-02/operation", on: anew("PUT", 202), breaks: lacks("operation")},
		{name: "AsyncRequiredIs400", found: "PROV-03", on: anew("PUT", 422).and(code("AsyncRequired")), breaks: answers(400)},
		{name: "AsyncRequiredWithoutCode", found: "ERR-03", on: anew("PUT", 422).and(code("AsyncRequired")),
			breaks: lacks("error")},
		{name: "AsyncRequiredInOtherWords", found: "ERR-03/sentence", on: anew("PUT", 422).and(code("AsyncRequired")),
			breaks: says("description", "Wait.")},
		{name: "AcceptedWithoutPermission", found: "PROV-06",
			serve: func(broker http.Handler, w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					r.URL.RawQuery = "accepts_incomplete=true"
					broken(broker, w, r, on("PUT", instancePath, 201), answers(202))
					return
				}
				broker.ServeHTTP(w, r)
			}},
		{name: "RepeatedIs201", found: "PROV-07", on: anew("PUT", 200), breaks: answers(201)},
		{name: "RepeatedIsConflict", found: "PROV-07", on: anew("PUT", 200), breaks: answers(409)},
		{name: "RepeatedNamesOperation", found: "PROV-25/only", on: anew("PUT", 200), breaks: says("operation", "again")},
		{name: "ConflictIs200", found: "PROV-08/space", on: anew("PUT", 409), breaks: answers(200)},
		{name: "ConflictIs422", found: "PROV-08/space", on: anew("PUT", 409), breaks: answers(422)},
		{name: "RunningRepeatedIs200", found: "PROV-10", on: anew("PUT", 202), breaks: func() func(*reply) {
			var n atomic.Int64
			return func(r *reply) {
				if n.Add(1) > 1 {
					r.status = 200
				}
			}
		}()},
		{name: "OperationChanges", found: "PROV-10/operation", on: anew("PUT", 202), breaks: ever("operation")},
		{name: "OperationChangesForOldClients", found: "PROV-10/2.9", on: anew("PUT", 202), breaks: ever("operation")},
		{name: "ConflictWhileRunningIs202", found: "PROV-11/parameters", on: anew("PUT", 409), breaks: answers(202)},
		{name: "WithoutPlanIs409", found: "PROV-13/2.9-plan", on: anew("PUT", 400), breaks: answers(409)},
		{name: "WithoutMaintenanceVersionIs409", found: "PROV-23/absent", on: anew("PUT", 400, 422), breaks: answers(409)},
		{name: "OperationIsANumber", found: "PROV-25", on: anew("PUT", 202), breaks: says("operation", 5)},
		{name: "OperationTooLong", found: "PROV-25", on: anew("PUT", 202),
			breaks: says("operation", strings.Repeat("x", 10_001))},
	}
}

func mutantsOfInstances() []mutant {
	return []mutant{
		{name: "ForeignPlanTaken", found: "PROV-14/foreign", on: anew("PUT", 400), breaks: answers(201)},
		{name: "MissingPlaceTaken", found: "PROV-15/space", on: anew("PUT", 400), breaks: answers(201)},
		{name: "MaintenanceWithoutCode", found: "PROV-20/other", on: anew("PUT", 422).and(code("MaintenanceInfoConflict")),
			breaks: lacks("error")},
		{name: "MaintenanceIgnored", found: "UPD-17/other", on: anew("PATCH", 422).and(code("MaintenanceInfoConflict")),
			breaks: answers(200)},
		{name: "LateDashboard", found: "PROV-24", on: anew("PUT", 200),
			breaks: says("dashboard_url", "https://dashboard.example.com")},

		{name: "UnknownInstanceIs410", found: "GETI-02", on: anew("GET", 404), breaks: answers(410)},
		{name: "PlanNotShown", found: "GETI-01/ids", on: anew("GET", 200), breaks: lacks("plan_id")},
		{name: "FetchWhileUpdating", found: "GETI-04", on: anew("GET", 422), breaks: answers(200)},
		{name: "OldPlanShown", found: "GETI-11", on: anew("GET", 200), breaks: says("plan_id", "the old one")},
		{name: "UpdateWithoutPermissionIs400", found: "UPD-03/2.9", on: anew("PATCH", 422), breaks: answers(400)},
		{name: "ChangeOfPlanWithoutPermissionIs200", found: "UPD-03/plan", on: anew("PATCH", 422), breaks: answers(200)},
		{name: "PreviousValuesAreRefused", found: "UPD-18/2.9", on: anew("PATCH", 200, 202), breaks: answers(400)},
		{name: "UpdatedIs204", found: "UPD-01", on: anew("PATCH", 200), breaks: both(answers(204), sends(""))},
		{name: "UpdateAcceptedIs200", found: "UPD-02", on: anew("PATCH", 202), breaks: answers(200)},
		{name: "UnknownServiceUpdated", found: "UPD-04/unknown", on: anew("PATCH", 400), breaks: answers(200)},
		{name: "NotUpdateableUpdated", found: "UPD-09", on: anew("PATCH", 422), breaks: answers(200)},
		{name: "UpdateTokenChanges", found: "UPD-21", on: anew("PATCH", 202), breaks: ever("operation")},
		{name: "ConcurrencyIsConflict", found: "UPD-22", on: anew("PATCH", 422).and(code("ConcurrencyError")),
			breaks: answers(409)},
		{name: "FailedUpdateApplied", found: "UPD-23", on: anew("GET", 200), breaks: ever("plan_id")},

		{name: "Underscore", found: "LOP-01", on: toPoll(200).and(state("in progress")), breaks: says("state", "in_progress")},
		{name: "StateOfItsOwn", found: "LOP-01/state", on: toPoll(200), breaks: says("state", "ready")},
		{name: "RunningIs202", found: "LOP-01/update", on: toPoll(200).and(state("in progress")), breaks: answers(202)},
		{name: "FailureIs400", found: "LOP-03", on: toPoll(200).and(state("failed")), breaks: answers(400)},
		{name: "RetryAfterSoon", found: "LOP-05", on: toPoll(200), breaks: heads("Retry-After", "soon")},
		{name: "UnknownOperationIs410", found: "LOP-09", on: toPoll(404), breaks: answers(410)},
		{name: "EmptyDescription", found: "LOP-21", on: toPoll(200), breaks: says("description", "")},
		{name: "NeverEnds", found: "LOP-02", on: toPoll(200), breaks: func() func(*reply) {
			var ended atomic.Bool
			return func(r *reply) {
				if r.body["state"] == "succeeded" && !ended.CompareAndSwap(false, true) {
					r.says("state", "in progress")
				}
			}
		}()},
	}
}

func mutantsOfBindings() []mutant {
	return []mutant{
		{name: "BoundIs200", found: "BIND-01", on: toBind(201), breaks: answers(200)},
		{name: "CredentialsAreText", found: "BIND-01/2.9", on: toBind(201), breaks: says("credentials", "user:pass")},
		{name: "CredentialsChange", found: "BIND-02/credentials", on: toBind(200), breaks: func(r *reply) {
			r.says("credentials", map[string]any{"password": "a-fresh-one-each-time"})
		}},
		{name: "CredentialsOnce", found: "BIND-02/twice", on: toBind(200), breaks: lacks("credentials")},
		{name: "BindConflictOfOldClientsIs200", found: "BIND-03/2.9", on: toBind(409), breaks: answers(200)},
		{name: "BindConflictIs200", found: "BIND-03/app", on: toBind(409), breaks: answers(200)},
		{name: "UnknownPlanBound", found: "BIND-05/plan", on: toBind(400), breaks: answers(201)},
		{name: "RequiresAppIs400", found: "BIND-10", on: toBind(422), breaks: answers(400)},
		{name: "NotBindableBound", found: "BIND-13", on: toBind(400), breaks: answers(201)},
		{name: "BindingsGoTogether", found: "BIND-16/left", on: on("GET", bindingPath, 200), breaks: answers(404)},
		{name: "SharedCredentials", found: "BIND-16", on: toBind(201), breaks: sharing()},
		{name: "BindWhileUpdating", found: "BIND-17/updating", on: toBind(422), breaks: lacks("error")},
		{name: "AcceptedForOldClients", found: "BIND-20/async-only", on: toBind(422),
			breaks: both(answers(202), says("operation", "bind"))},
		{name: "OldClientsWait", found: "HDR-10", on: toBind(201), breaks: answers(202)},
		{name: "CredentialsTooEarly", found: "BIND-21", on: toBind(202),
			breaks: says("credentials", map[string]any{"password": "not-yet-valid"})},
		{name: "BindTokenChanges", found: "BIND-23", on: toBind(202), breaks: ever("operation")},
		{name: "AsyncWithoutCredentials", found: "BIND-25", on: on("GET", bindingPath, 200), breaks: lacks("credentials")},
		{name: "PortsAreNumbers", found: "BIND-26", on: toBind(201),
			breaks: says("endpoints", []any{map[string]any{"host": "db.example.com", "ports": []any{3306}}})},
		{name: "TimeWithoutFraction", found: "BIND-27", on: toBind(201),
			breaks: says("metadata", map[string]any{"expires_at": "2030-01-31T23:59:59Z"})},
		{name: "DrainNotRequired", found: "BIND-30", on: toBind(201),
			breaks: says("syslog_drain_url", "syslog://logs.example.com")},
		{name: "NoDrain", found: "BIND-31", on: toBind(201), breaks: lacks("syslog_drain_url")},
		{name: "DrainOverHTTP", found: "BIND-31/scheme", on: toBind(201),
			breaks: says("syslog_drain_url", "http://logs.example.com")},
		{name: "RouteOverHTTP", found: "BIND-32", on: toBind(201), breaks: says("route_service_url", "http://route.example.com")},
		{name: "VolumeWithoutType", found: "BIND-34", on: toBind(201),
			breaks: volume(func(m map[string]any) { delete(m, "device_type") })},
		{name: "VolumeConfigIsAnObject", found: "BIND-35", on: toBind(201), breaks: volume(func(m map[string]any) {
			m["private"].(map[string]any)["config"] = map[string]any{}
		})},
		{name: "VolumeFormForgotten", found: "BIND-35/again", on: toBind(200),
			breaks: volume(func(m map[string]any) { delete(m, "private") })},
		{name: "UnknownBindingIs410", found: "GETB-02/unknown", on: on("GET", bindingPath, 404), breaks: answers(410)},
		{name: "FetchedDiffers", found: "GETB-04", on: on("GET", bindingPath, 200),
			breaks: says("credentials", map[string]any{"password": "another-password"})},
		{name: "CredentialsInPoll", found: "LOB-07", on: on("GET", bindPollPath, 200),
			breaks: says("credentials", map[string]any{"password": "in-the-wrong-place"})},
		{name: "UnboundIs204", found: "UNB-01", on: toUnbind(200), breaks: both(answers(204), sends(""))},
		{name: "UnboundIs202", found: "UNB-01/2.9", on: toUnbind(200), breaks: answers(202)},
		{name: "UnknownUnboundIs404", found: "UNB-02/unknown", on: toUnbind(410), breaks: answers(404)},
		{name: "NotUnbound", found: "GETB-02/unbound", serve: never("DELETE", bindingPath, "{}")},
		{name: "UnboundWithoutPlan", found: "UNB-04/plan_id", on: toUnbind(400), breaks: answers(200)},
		{name: "UnbindTokenChanges", found: "UNB-06/again", on: toUnbind(202), breaks: ever("operation")},
	}
}

func mutantsOfEnds() []mutant {
	return []mutant{
		{name: "DeletedIs202", found: "DEPR-01", on: anew("DELETE", 200), breaks: answers(202)},
		{name: "DeletionAcceptedOfOldClientsIs200", found: "DEPR-02/2.9", on: anew("DELETE", 202), breaks: answers(200)},
		{name: "DeletionAcceptedIs200", found: "DEPR-02", on: anew("DELETE", 202), breaks: answers(200)},
		{name: "UnknownDeletedIs404", found: "DEPR-03", on: anew("DELETE", 410), breaks: answers(404)},
		{name: "UnknownDeletedIs200", found: "DEPR-04", on: anew("DELETE", 410), breaks: answers(200)},
		{name: "DeletedWithoutService", found: "DEPR-05/service_id", on: anew("DELETE", 400), breaks: answers(200)},
		{name: "DeletionTokenChanges", found: "DEPR-07", on: anew("DELETE", 202), breaks: ever("operation")},
		{name: "DeletedWhileUpdating", found: "DEPR-09", on: anew("DELETE", 422), breaks: answers(202)},
		{name: "NotDeleted", found: "GETI-06", serve: never("DELETE", instancePath, "{}")},
		{name: "OrphansAre404", found: "ORB-01", on: anew("DELETE", 410), breaks: answers(404)},
		{name: "RepeatedBodyDiffers", found: "IDEM-05", on: anew("PUT", 201),
			breaks: says("metadata", map[string]any{"labels": map[string]any{"a": "b"}})},

		{name: "NoLocation", found: "FAC-01", on: anew("PUT", 202), breaks: unheaded("Location")},
		{name: "NoRetryAfter", found: "FAC-03", on: on("GET", operationPath, 202), breaks: unheaded("Retry-After")},
		{name: "NoConditions", found: "FAC-04", on: on("GET", operationPath, 202),
			breaks: says("status", map[string]any{"state": "Creating"})},
		{name: "NoRedirect", found: "FAC-06", on: on("GET", operationPath, 302), breaks: answers(200)},
		{name: "FailureIs200", found: "FAC-09", on: on("GET", operationPath, 422), breaks: answers(200)},
		{name: "CachedStatus", found: "FAC-14", on: on("GET", operationPath), breaks: unheaded("Cache-Control")},
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
	whole := httptest.NewServer(broker)
	defer whole.Close()
	target := conformance.Target{URL: whole.URL, Username: username, Password: password}
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
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					serve(broker, w, r)
				}))
				defer server.Close()
				target, options := target, options
				target.URL, options.Known = server.URL, known
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
