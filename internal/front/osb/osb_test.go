package osb_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// stub is a Broker whose every answer is given; it keeps the last request.
type stub struct {
	result   broker.Result
	grant    *provider.Grant
	deletion *broker.Poll
	poll     broker.Poll
	err      error
	panics   bool

	asked any
}

func (s *stub) ask(q any) error {
	s.asked = q
	if s.panics {
		panic("a secret of the stub")
	}
	return s.err
}

func (s *stub) Provision(_ context.Context, q broker.ProvisionRequest) (broker.Result, error) {
	return s.result, s.ask(q)
}
func (s *stub) Update(_ context.Context, q broker.UpdateRequest) (broker.Result, error) {
	return s.result, s.ask(q)
}
func (s *stub) Delete(_ context.Context, q broker.DeleteRequest) (broker.Result, error) {
	return s.result, s.ask(q)
}
func (s *stub) View(_ context.Context, _ broker.Caller, instance, binding string) (broker.View, error) {
	a := lifecycle.Attributes{ServiceID: "s", PlanID: "p", MaintenanceVersion: "2.0.0"}
	if binding != "" {
		return broker.View{Attributes: a, Grant: s.grant}, s.ask(binding)
	}
	return broker.View{Attributes: a, Grant: s.grant}, s.ask(instance)
}
func (s *stub) Bind(_ context.Context, q broker.BindRequest) (broker.Result, error) {
	r := s.result
	r.Grant = s.grant
	return r, s.ask(q)
}
func (s *stub) LastOperation(_ context.Context, key lifecycle.Key, _ string) (broker.Poll, error) {
	return s.poll, s.ask(key)
}
func (s *stub) Operation(_ context.Context, _ broker.Caller, token string) (broker.Poll, error) {
	return s.poll, s.ask(token)
}
func (s *stub) Cancel(_ context.Context, _ broker.Caller, token string) (broker.Poll, *broker.Poll, error) {
	return s.poll, s.deletion, s.ask(token)
}

// several are platforms, by their user names. Their password has a colon.
type several map[string]platforms.Identity

func (s several) Authenticate(user, password string) (platforms.Identity, bool) {
	id, ok := s[user]
	return id, ok && password == "p:w"
}

var epoch = time.Date(2030, 1, 31, 23, 59, 59, 0, time.UTC)

// The paths that most requests are to, and the ids of a plan.
const (
	instance = "/v2/service_instances/i"
	binding  = instance + "/service_bindings/b"
	ids      = `{"service_id":"s","plan_id":"p"}`
)

// creating answers that something was made.
func creating() *stub {
	return &stub{result: broker.Result{Effect: broker.Created}, grant: &provider.Grant{}}
}

func tokenOf(key lifecycle.Key) lifecycle.Token {
	return lifecycle.Token{Operation: strings.Repeat("A", lifecycle.OperationIDLength), Key: key}
}

func offered() []catalog.Offering {
	yes := true
	return []catalog.Offering{{ID: "s", Name: "service", Description: "d",
		Plans: []catalog.Plan{{ID: "p", Name: "plan", Description: "d", BindingRotatable: &yes}}}}
}

func newServer(t testing.TB, b osb.Broker, log io.Writer) *osb.Server {
	t.Helper()
	return osb.New(osb.Options{Broker: b, Platforms: several{"u": {ID: "platform-1"}}, Offerings: offered,
		Now: func() time.Time { return epoch }, NewID: func() string { return "error-id-1" },
		Log: slog.New(logs.Handler{Handler: slog.NewJSONHandler(log, nil)})})
}

// request is one with good credentials, by the newest version.
func request(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.SetBasicAuth("u", "p:w")
	r.Header.Set("X-Broker-API-Version", "2.17")
	return r
}

// ask sends a request to a server of its own, which does not log.
func ask(t testing.TB, b osb.Broker, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	return send(t, newServer(t, b, io.Discard), method, target, body, headers...)
}

// send sends a request with good credentials; headers are name, value pairs that replace the defaults; an empty value removes
// one.
func send(t testing.TB, s http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := request(method, target, body)
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func bodyOf(t testing.TB, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body == nil {
		t.Fatalf("body of %d is not a JSON object (ERR-01): %q", w.Code, w.Body.String())
	}
	return body
}

// internalAnswer is all that a client learns of an internal error.
const internalAnswer = "The service broker met an internal error. Try again; if the error persists, tell the operator this " +
	"id: error-id-1"

const provisionBody = `{"service_id":"s","plan_id":"p","organization_guid":"o","space_guid":"sp"}`

func TestReasonsBecomeStatusAndCode(t *testing.T) {
	yes, no := true, false
	refuse := func(r lifecycle.Reason) error { return lifecycle.Refuse(r, "m") }
	told := func(code, description string) map[string]any {
		return map[string]any{"error": code, "description": description}
	}
	internal := map[string]any{"description": internalAnswer}
	flags := &lifecycle.Refusal{Reason: lifecycle.Unprocessable, Message: "m", InstanceUsable: &yes, UpdateRepeatable: &no}
	for name, tc := range map[string]struct {
		reason string
		err    error
		status int
		want   map[string]any
	}{
		"AsyncRequired": {"ERR-03: clients recognise the sentence word for word", lifecycle.RefuseAsyncRequired(), 422,
			told("AsyncRequired", "This service plan requires client support for asynchronous service operations.")},
		"ConcurrencyError": {"ERR-04, CLI-01", lifecycle.RefuseConcurrent(), 422, told("ConcurrencyError",
			"The Service Broker does not support concurrent requests that mutate the same resource.")},
		"RequiresApp": {"ERR-05", lifecycle.RefuseRequiresApp(), 422, told("RequiresApp",
			"This service supports generation of credentials through binding an application only.")},
		"MaintenanceInfoConflict": {"ERR-06", refuse(lifecycle.MaintenanceInfoConflict), 422,
			told("MaintenanceInfoConflict", "m")},
		"Unprocessable": {"ERR-07: no reserved code; ERR-10: false is sent", flags, 422,
			map[string]any{"error": "NotAllowed", "description": "m", "instance_usable": true, "update_repeatable": false}},
		"2.15":               {"ERR-10: the flags are unknown before 2.16", flags, 422, told("NotAllowed", "m")},
		"BadRequest":         {"INP-01", refuse(lifecycle.BadRequest), 400, told("BadRequest", "m")},
		"Unauthorized":       {"AUTH-01", refuse(lifecycle.Unauthorized), 401, told("Unauthorized", "m")},
		"NotFound":           {"GETI-02", refuse(lifecycle.NotFound), 404, told("NotFound", "m")},
		"MethodNotAllowed":   {"INP-16", refuse(lifecycle.MethodNotAllowed), 405, told("MethodNotAllowed", "m")},
		"Conflict":           {"PROV-08", refuse(lifecycle.Conflict), 409, told("Conflict", "m")},
		"Gone":               {"ERR-14: exactly {}", lifecycle.Refuse(lifecycle.Gone, ""), 410, map[string]any{}},
		"VersionUnsupported": {"HDR-04", refuse(lifecycle.VersionUnsupported), 412, told("VersionNotSupported", "m")},
		"TooLarge":           {"INP-14", refuse(lifecycle.TooLarge), 413, told("RequestTooLarge", "m")},
		"OperationFailed": {"a failure of the provider is shown in its safe words", refuse(lifecycle.OperationFailed), 500,
			told("OperationFailed", "m")},
		"Wrapped": {"peer defect B8: a wrapped refusal keeps its answer",
			fmt.Errorf("doing x: %w", lifecycle.RefuseAsyncRequired()), 422,
			told("AsyncRequired", lifecycle.AsyncRequiredSentence)},
		"Internal": {"ERR-12: a fixed sentence, and the id of the log line",
			errors.New("pq: password authentication failed host=10.0.0.4"), 500, internal},
		"InternalRefusal": {"an internal refusal never shows its message",
			lifecycle.Refuse(lifecycle.Internal, "secret detail"), 500, internal},
	} {
		t.Run(name, func(t *testing.T) {
			version := "2.17"
			if name == "2.15" {
				version = name
			}
			w := ask(t, &stub{err: tc.err}, "PUT", instance, provisionBody, "X-Broker-API-Version", version)
			expect.Same(t, tc.reason+": status", tc.status, w.Code)
			expect.Same(t, tc.reason+": body", tc.want, bodyOf(t, w))
			after := "" // a client that met another request, and no other, is told when to try again
			if refused := (*lifecycle.Refusal)(nil); errors.As(tc.err, &refused) && refused.Reason == lifecycle.ConcurrencyError {
				after = "5"
			}
			expect.Same(t, "CONC-04: Retry-After", after, w.Header().Get("Retry-After"))
		})
	}
}

// HDR-10: bindings, unlike instances, are never answered 202 below 2.14, as if the client had not permitted it (BIND-20, UNB-07).
func TestBindingsAreGated(t *testing.T) {
	for api, want := range map[string]bool{"2.9": false, "2.13": false, "2.14": true, "2.17": true} {
		const query = "?service_id=s&plan_id=p&accepts_incomplete=true"
		for target, method := range map[string]string{binding: "PUT", binding + query: "DELETE", instance + query: "DELETE"} {
			b := &stub{result: broker.Result{Effect: broker.Accepted}}
			ask(t, b, method, target, `{"service_id":"s","plan_id":"p","accepts_incomplete":true}`, "X-Broker-API-Version", api)
			var got bool
			switch q := b.asked.(type) {
			case broker.BindRequest:
				got = q.AcceptsIncomplete
			case broker.DeleteRequest:
				got = q.AcceptsIncomplete
			default:
				t.Fatalf("%s: asked %+v", api, b.asked)
			}
			if bound := strings.Contains(target, "bindings"); got != (want || !bound) {
				t.Errorf("%s %s by %s: permitted is %v", method, target, api, got)
			}
		}
	}
}

func TestVersionHeader(t *testing.T) {
	minor := map[string]int{"2.9": 9, "2.10": 10, "2.17": 17, "2.18": 17, "2.99": 17} // what an accepted version counts as
	for _, value := range []string{"2.9", "2.10", "2.17", "2.18", "2.99", "2.8", "2.1", "3.0", "1.99", "abc", "2", "2.",
		"v2.9", "2.x", "2.9.1", "2.17garbage", "2.-5", "2. 9", "2.+9", "2.99999999999999999999", ""} {
		t.Run(value, func(t *testing.T) {
			api, status := minor[value], 200
			if api == 0 {
				status = 412
			}
			b := &stub{result: broker.Result{Effect: broker.Done}}
			w := ask(t, b, "PATCH", instance, `{"service_id":"s"}`, "X-Broker-API-Version", value)
			expect.Same(t, "HDR-01 to HDR-07: status", status, w.Code)
			v, err := osb.APIVersion(http.Header{"X-Broker-Api-Version": {value}})
			if int(v) != api || (err == nil) != (api != 0) {
				t.Errorf("version 2.%d, error %v, want 2.%d", v, err, api)
			}
			if api == 0 && b.asked != nil {
				t.Errorf("the broker was asked although the version is refused")
			}
		})
	}
}

// The first of several refusals, in the order of docs/divergences.md, is the answer. Without a login, no body is read.
func TestEvaluationOrder(t *testing.T) {
	big := strings.Repeat("x", 300<<10)
	for name, tc := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
	}{
		"CredentialsBeforeSize": {"PUT", instance, big, []string{"Authorization", ""}, 401},
		"SizeBeforeVersion":     {"PUT", instance, big, []string{"X-Broker-API-Version", ""}, 413},
		"CredentialsBeforeVersion": {"GET", "/v2/catalog", "",
			[]string{"Authorization", "Basic !!!", "X-Broker-API-Version", "junk"}, 401},
		"CredentialsBeforeRoute":     {"GET", "/nope", "", []string{"Authorization", ""}, 401},
		"VersionBeforeRoute":         {"GET", "/v2/nope", "", []string{"X-Broker-API-Version", "3.0"}, 412},
		"VersionBeforeBody":          {"PUT", instance, "", []string{"X-Broker-API-Version", ""}, 412},
		"RouteBeforeBody":            {"POST", instance, "junk", nil, 405},
		"BodyBeforeBroker":           {"PUT", instance, "junk", nil, 400},
		"FacadeNeedsNoVersion":       {"GET", "/operations/x", "", []string{"X-Broker-API-Version", ""}, 404},
		"FacadeNeedsCredentials":     {"GET", "/operations/x", "", []string{"Authorization", ""}, 401},
		"UnderFacadeNeedCredentials": {"GET", "/operations/x/y", "", []string{"Authorization", ""}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(t, &stub{err: lifecycle.Refuse(lifecycle.NotFound, "m")}, tc.method, tc.path, tc.body, tc.headers...)
			expect.Same(t, "status of "+w.Body.String(), tc.status, w.Code)
			bodyOf(t, w)
		})
	}
}

// PROV-34: apart from the operation, a 202 has the members of a 201.
func TestAcceptedCarriesWhereAndWhen(t *testing.T) {
	token := tokenOf(lifecycle.Key{Platform: "p", Instance: "a/b"})
	b := &stub{result: broker.Result{Effect: broker.Accepted, Token: token, RetryAfter: 1500 * time.Millisecond}}
	w := ask(t, b, "DELETE", "/v2/service_instances/a%2Fb?service_id=s&plan_id=p&accepts_incomplete=true", "")
	expect.Same(t, "status", http.StatusAccepted, w.Code)
	expect.Same(t, "body", map[string]any{"operation": token.String()}, bodyOf(t, w))
	expect.Same(t, "FAC-01: Location", "/operations/"+token.String(), w.Header().Get("Location"))
	expect.Same(t, "Retry-After, in seconds rounded up", "2", w.Header().Get("Retry-After"))
	if q := b.asked.(broker.DeleteRequest); q.InstanceID != "a/b" || !q.AcceptsIncomplete || q.Platform != "platform-1" {
		t.Errorf("INP-11: the broker was asked %+v", q)
	}
}

func TestFacade(t *testing.T) {
	op := func(kind lifecycle.Kind, phase lifecycle.Phase) broker.Poll {
		return broker.Poll{Token: tokenOf(lifecycle.Key{Platform: "p", Instance: "a/b", Binding: "c"}), RetryAfter: time.Second,
			Operation: lifecycle.Operation{Kind: kind, Phase: phase, Started: epoch, Settled: epoch, Description: "why"}}
	}
	cancelled := op(lifecycle.Provision, lifecycle.Failed)
	cancelled.Operation.Cancelled = true
	for name, tc := range map[string]struct {
		reason          string
		poll            broker.Poll
		status          int
		state, location string
	}{
		"Pending": {"FAC-03", op(lifecycle.Bind, lifecycle.InProgress), 202, "Binding",
			"/operations/" + cancelled.Token.String()},
		"Succeeded": {"FAC-06", op(lifecycle.Bind, lifecycle.Succeeded), 302, "Succeeded",
			"/v2/service_instances/a%2Fb/service_bindings/c"},
		"Deleted":   {"FAC-08: nothing is left to redirect to", op(lifecycle.Unbind, lifecycle.Succeeded), 200, "Deleted", ""},
		"Failed":    {"FAC-09: a 4xx each time", op(lifecycle.Bind, lifecycle.Failed), 422, "Failed", ""},
		"Cancelled": {"FAC-11", cancelled, 409, "Cancelled", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(t, &stub{poll: tc.poll}, "GET", "/operations/x", "")
			expect.Same(t, tc.reason+": status", tc.status, w.Code)
			expect.Same(t, tc.reason+": Location", tc.location, w.Header().Get("Location"))
			expect.Same(t, "FAC-14: Cache-Control", "no-store", w.Header().Get("Cache-Control"))
			status, _ := bodyOf(t, w)["status"].(map[string]any)
			expect.Same[any](t, "state", tc.state, status["state"])
			conditions, _ := status["conditions"].([]any)
			if len(conditions) != 1 {
				t.Fatalf("FAC-04: conditions %v", conditions)
			}
			for _, member := range []string{"type", "status", "lastTransitionTime", "reason", "message"} {
				if text, _ := conditions[0].(map[string]any)[member].(string); text == "" {
					t.Errorf("FAC-04: condition lacks %s", member)
				}
			}
		})
	}
}

func TestCancelIsAnsweredByWhatIsLeftToDo(t *testing.T) {
	token := tokenOf(lifecycle.Key{Platform: "p", Instance: "i"})
	deletion := token
	deletion.Operation = strings.Repeat("B", 22)
	cancelled := broker.Poll{Token: token, Operation: lifecycle.Operation{Kind: lifecycle.Provision, Phase: lifecycle.Failed,
		Settled: epoch, Cancelled: true, Description: "why"}}
	for name, tc := range map[string]struct {
		reason                 string
		deletion               *broker.Poll
		err                    error
		status                 int
		state, location, after string
	}{
		"Going": {"FAC-10: something is still being removed", &broker.Poll{Token: deletion, RetryAfter: time.Second}, nil, 202,
			"Cancelling", "/operations/" + deletion.String(), "1"},
		"Gone":     {"FAC-10: nothing is left", nil, nil, 200, "Cancelled", "", ""},
		"Finished": {"FAC-10: too late", nil, lifecycle.Refuse(lifecycle.Conflict, "m"), 409, "", "", ""},
		"Unknown":  {"FAC-12", nil, lifecycle.Refuse(lifecycle.NotFound, "m"), 404, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(t, &stub{poll: cancelled, deletion: tc.deletion, err: tc.err}, "DELETE", "/operations/x", "")
			expect.Same(t, tc.reason+": status", tc.status, w.Code)
			expect.Same(t, tc.reason+": Location", tc.location, w.Header().Get("Location"))
			expect.Same(t, tc.reason+": Retry-After", tc.after, w.Header().Get("Retry-After"))
			if status, _ := bodyOf(t, w)["status"].(map[string]any); tc.state != "" && status["state"] != tc.state {
				t.Errorf("%s: state %q, want %q", tc.reason, status["state"], tc.state)
			}
		})
	}
}

func TestRotationIsGated(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, version, body string
		status                int
		want                  broker.BindRequest // of which the ids are compared
	}{
		"Alone": {"ROT-02: it says enough", "2.17", `{"predecessor_binding_id":"a"}`, 201, broker.BindRequest{Predecessor: "a"}},
		"WithIDs": {"ROT-02: or says more", "2.17", `{"predecessor_binding_id":"a","service_id":"s","plan_id":"p"}`, 201,
			broker.BindRequest{Predecessor: "a", ServiceID: "s", PlanID: "p"}},
		"Older": {"ROT-08: unknown before 2.17", "2.16", `{"predecessor_binding_id":"a"}`, 400, broker.BindRequest{}},
		"Ignored": {"ROT-08: and ignored", "2.16", `{"predecessor_binding_id":5,"service_id":"s","plan_id":"p"}`, 201,
			broker.BindRequest{ServiceID: "s", PlanID: "p"}},
		"Null":   {"INP-07: null is as absent", "2.17", `{"predecessor_binding_id":null}`, 400, broker.BindRequest{}},
		"Empty":  {"INP-05: no id is empty", "2.17", `{"predecessor_binding_id":""}`, 400, broker.BindRequest{}},
		"Number": {"INP-05: nor a number", "2.17", `{"predecessor_binding_id":5}`, 400, broker.BindRequest{}},
	} {
		t.Run(name, func(t *testing.T) {
			b := creating()
			w := ask(t, b, "PUT", binding, tc.body, "X-Broker-API-Version", tc.version)
			expect.Same(t, tc.reason+": status of "+w.Body.String(), tc.status, w.Code)
			q, _ := b.asked.(broker.BindRequest)
			got := broker.BindRequest{Predecessor: q.Predecessor, ServiceID: q.ServiceID, PlanID: q.PlanID}
			expect.Same(t, tc.reason, tc.want, got)
		})
	}
}

// BIND-28, BIND-29, BIND-36: volume mounts, and metadata that holds times alone.
func TestGrantsAreShownAsTheVersionKnowsThem(t *testing.T) {
	grant := &provider.Grant{
		Credentials: map[string]any{"password": "x"},
		VolumeMounts: []provider.VolumeMount{{Driver: "d", ContainerDir: "/data", Mode: "rw", DeviceType: "shared",
			Device: provider.VolumeDevice{VolumeID: "v", MountConfig: map[string]any{"k": "w"}}}},
		Endpoints: []provider.Endpoint{{Host: "h", Ports: []string{"3306"}}},
		ExpiresAt: epoch, RenewBefore: epoch.Add(-time.Hour),
	}
	experimental := []any{map[string]any{"container_path": "/data", "mode": "rw",
		"private": map[string]any{"driver": "d", "group_id": "v", "config": `{"k":"w"}`}}}
	final := []any{map[string]any{"driver": "d", "container_dir": "/data", "mode": "rw", "device_type": "shared",
		"device": map[string]any{"volume_id": "v", "mount_config": map[string]any{"k": "w"}}}}
	endpoints := []any{map[string]any{"host": "h", "ports": []any{"3306"}}}
	expiry := map[string]any{"expires_at": "2030-01-31T23:59:59.0Z"}
	both := map[string]any{"expires_at": "2030-01-31T23:59:59.0Z", "renew_before": "2030-01-31T22:59:59.0Z"}
	for version, want := range map[string]map[string]any{
		"2.9":  {"volume_mounts": experimental},
		"2.10": {"volume_mounts": final},
		"2.15": {"volume_mounts": final, "endpoints": endpoints},
		"2.16": {"volume_mounts": final, "endpoints": endpoints, "metadata": expiry},
		"2.17": {"volume_mounts": final, "endpoints": endpoints, "metadata": both},
	} {
		want["credentials"] = map[string]any{"password": "x"}
		for _, effect := range []broker.Effect{broker.Created, broker.Done} { // BIND-35: also on 200
			s := newServer(t, &stub{grant: grant, result: broker.Result{Effect: effect}}, io.Discard)
			w := send(t, s, "PUT", binding, ids, "X-Broker-API-Version", version)
			expect.Same(t, version+": PUT", want, bodyOf(t, w))
			w = send(t, s, "GET", binding, "", "X-Broker-API-Version", version)
			expect.Same(t, version+": GETB-04: GET", want, bodyOf(t, w))
		}
	}
}

func TestCatalogIsEncodedForTheVersion(t *testing.T) {
	s := newServer(t, &stub{}, io.Discard)
	get := func(headers ...string) *httptest.ResponseRecorder {
		return send(t, s, "GET", "/v2/catalog", "", headers...)
	}
	old, newest := get("X-Broker-API-Version", "2.16"), get()
	expect.Never(t, "CAT-25: a catalog of 2.16", old.Body.String(), "binding_rotatable")
	expect.Never(t, "CAT-27: the catalog", newest.Body.String(), "null")
	// CAT-02: bindable is not left out when false.
	expect.Says(t, "CAT-25: a catalog of 2.17", newest.Body.String(), "binding_rotatable", `"bindable":false`)
	tag := newest.Header().Get("ETag")
	if tag == "" || tag == old.Header().Get("ETag") {
		t.Errorf("CAT-30: tags %q and %q", tag, old.Header().Get("ETag"))
	}
	for sent, status := range map[string]int{tag: 304, "*": 304, "W/" + tag: 304, `"other", W/"more" , ` + tag: 304,
		`"other", W/"more"`: 200} {
		w := get("If-None-Match", sent)
		expect.Same(t, "CAT-30: status for "+sent, status, w.Code)
		expect.Same(t, "CAT-30: without a body for "+sent, status == 304, w.Body.Len() == 0)
	}
	expect.Same(t, "CAT-30: status for another representation", 200,
		get("If-None-Match", tag, "X-Broker-API-Version", "2.9").Code)
}

// CAT-15: a platform that takes a plan without a word for one that is not bindable reads the offering's word on it.
func TestEveryPlanSaysWhetherItIsBindable(t *testing.T) {
	yes, no := true, false
	s := newServer(t, &stub{}, io.Discard)
	s.Offerings = func() []catalog.Offering {
		return []catalog.Offering{
			{ID: "a", Bindable: true, Plans: []catalog.Plan{{ID: "silent"}, {ID: "off", Bindable: &no}}},
			{ID: "b", Plans: []catalog.Plan{{ID: "not"}, {ID: "on", Bindable: &yes}}},
		}
	}
	want := map[string]any{"silent": true, "off": false, "not": false, "on": true}
	for _, version := range []string{"2.9", "2.17"} {
		got := map[string]any{}
		body := bodyOf(t, send(t, s, "GET", "/v2/catalog", "", "X-Broker-API-Version", version))
		for _, service := range body["services"].([]any) {
			for _, plan := range service.(map[string]any)["plans"].([]any) {
				got[plan.(map[string]any)["id"].(string)] = plan.(map[string]any)["bindable"]
			}
		}
		expect.Same(t, version+": bindable", want, got)
	}
}

// Where a GET is answered, a HEAD is, by the same headers and no body (RFC 9110, section 9.3.2).
//
// CAT-30: a tag is of use to those alone who may keep what it is of. Nothing else is kept: answers hold credentials.
func TestHeadIsGetWithoutItsBody(t *testing.T) {
	token := tokenOf(lifecycle.Key{Platform: "platform-1", Instance: "i"})
	s := newServer(t, &stub{grant: &provider.Grant{}, poll: broker.Poll{Token: token, RetryAfter: time.Second,
		Operation: lifecycle.Operation{Kind: lifecycle.Provision, Phase: lifecycle.InProgress}}}, io.Discard)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	ask := func(method, path string, headers []string) (int, http.Header, string) {
		t.Helper()
		r := expect.Get(http.NewRequestWithContext(t.Context(), method, web.URL+path, nil))(t)
		r.Header = request(method, "/", "").Header
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		a := expect.Get(web.Client().Transport.RoundTrip(r))(t) // which follows no redirect
		defer a.Body.Close()
		a.Header.Del("Date")
		return a.StatusCode, a.Header, string(expect.Get(io.ReadAll(a.Body))(t))
	}
	tag := send(t, s, "GET", "/v2/catalog", "").Header().Get("ETag")
	for _, path := range []string{"/v2/catalog", instance, instance + "/last_operation", binding, binding + "/last_operation",
		"/operations/" + token.String(), "/v2/nope", "/v2/service_instances/.."} {
		for _, headers := range [][]string{nil, {"If-None-Match", tag}, {"Authorization", "x"}, {"X-Broker-API-Version", "3.0"}} {
			what := fmt.Sprint(path, headers)
			status, want, _ := ask("GET", path, headers)
			got, header, body := ask("HEAD", path, headers)
			expect.Same(t, what+": status", status, got)
			expect.Same(t, what+": body", "", body)
			expect.Same(t, what+": headers", want, header)
			kept := "no-store"
			if path == "/v2/catalog" && (status == http.StatusOK || status == http.StatusNotModified) {
				kept = "no-cache"
			}
			expect.Same(t, what+": Cache-Control", kept, want.Get("Cache-Control"))
			expect.Same(t, what+": written by the server", "", send(t, s, "HEAD", path, "", headers...).Body.String())
		}
	}
	expect.Same(t, "Allow", "GET, HEAD", send(t, s, "POST", "/v2/catalog", "{}").Header().Get("Allow"))
}

// INP-11: what clients and proxies take out of a path is no identifier.
func TestDotsAreNoIdentifiers(t *testing.T) {
	for path, status := range map[string]int{
		"/v2/service_instances/..": 400, "/v2/service_instances/.": 400, "/v2/service_instances/%2e%2E": 400,
		"/v2/service_instances/%2e": 400, "/v2/service_instances/i/service_bindings/..": 400,
		"/v2/service_instances/../service_bindings/b": 400, "/v2/service_instances/i/service_bindings/.%2e/last_operation": 400,
		"/operations/%2e%2e": 400, "/v2/service_instances/...": 200, "/v2/service_instances/a..": 200,
		"/v2/service_instances/..%2Fb": 200,
	} {
		b := &stub{grant: &provider.Grant{}}
		if w := ask(t, b, "GET", path, ""); w.Code != status || (b.asked != nil) != (status == 200) {
			t.Errorf("%s: %d %s, want %d; the broker was asked %v", path, w.Code, w.Body, status, b.asked)
		}
	}
}

// A client that hangs up makes no internal error; a deadline and any other fault do, even if it has.
func TestAClientThatHangsUpIsNoInternalError(t *testing.T) {
	stopped, stop := context.WithCancel(context.Background())
	stop()
	late, end := context.WithTimeout(context.Background(), 0)
	defer end()
	for name, tc := range map[string]struct {
		ctx  context.Context
		err  error
		want bool // an internal error
	}{
		"HungUp":        {stopped, fmt.Errorf("reading a record: %w", context.Canceled), false},
		"HungUpFault":   {stopped, errors.New("the store is down"), true},
		"CanceledInner": {context.Background(), context.Canceled, true},
		"Deadline":      {late, context.DeadlineExceeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			w := httptest.NewRecorder()
			newServer(t, &stub{err: tc.err}, &log).ServeHTTP(w, request("PUT", instance, provisionBody).WithContext(tc.ctx))
			internal := strings.Contains(log.String(), "internal error") || strings.Contains(log.String(), `"level":"ERROR"`)
			if internal != tc.want || (w.Code == 500) != tc.want ||
				!tc.want && !strings.Contains(log.String(), "client went away") {
				t.Errorf("%d, logged %s", w.Code, log.String())
			}
		})
	}
}

// Each line about a request names what it is about: whose, and which instance, binding and operation, as far as that is known.
func TestLinesNameTheirSubject(t *testing.T) {
	token := tokenOf(lifecycle.Key{Platform: "platform-1", Instance: "i 1", Binding: "b"})
	const at, bound = "/v2/service_instances/i%201", "/v2/service_instances/i%201/service_bindings/b"
	const platform = `"platform":"platform-1"`
	const all = platform + `,"instance":"i 1","binding":"b"`
	log := func(b *stub, method, path, body string, headers ...string) string {
		var log bytes.Buffer
		send(t, newServer(t, b, &log), method, path, body, headers...)
		return strings.TrimSpace(log.String())
	}
	for name, tc := range map[string]struct {
		method, path, version string
		err                   error
		want                  string
		lacks                 []string
	}{
		"Catalog":        {"GET", "/v2/catalog", "2.17", nil, platform, []string{`"instance":`, `"binding":`}},
		"Instance":       {"GET", at, "2.17", nil, platform + `,"instance":"i 1"`, []string{`"binding":`}},
		"Binding":        {"GET", bound, "2.17", nil, all, nil},
		"Poll":           {"GET", bound + "/last_operation", "2.17", nil, all + `,"operation":"` + token.String() + `"`, nil},
		"InternalError":  {"PUT", bound, "2.17", errors.New("down"), all, nil},
		"Facade":         {"GET", "/operations/" + token.String(), "2.17", nil, all, nil},
		"Cancel":         {"DELETE", "/operations/" + token.String(), "2.17", nil, all, nil},
		"UnknownVersion": {"GET", at, "1.0", nil, platform, []string{`"instance":`}},
		"UnknownOperation": {"GET", "/operations/nope", "2.17", lifecycle.Refuse(lifecycle.NotFound, "m"), platform,
			[]string{`"instance":`}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &stub{err: tc.err, grant: &provider.Grant{}, poll: broker.Poll{Token: token}}
			for _, line := range strings.Split(log(b, tc.method, tc.path, ids, "X-Broker-API-Version", tc.version), "\n") {
				expect.Says(t, "a line", line, tc.want)
				expect.Never(t, "a line", line, tc.lacks...)
			}
		})
	}
	expect.Says(t, "the line about a body that is too large", log(&stub{}, "PUT", instance, strings.Repeat("x", limits.Body+1)),
		platform)
	expect.Never(t, "the log of a request whose sender is not known",
		log(&stub{}, "GET", "/v2/service_instances/canary", "", "Authorization", ""), "canary")
}

// INP-05: what clients send empty because they cannot leave it out is as absent; what names something is not.
func TestEmptyMembersAreAbsent(t *testing.T) {
	const key = `{"service_id":"s","plan_id":"p","app_guid":"","context":{},"bind_resource":{"app_guid":"","route":""}}`
	type bound struct{ app, route string }
	for name, tc := range map[string]struct {
		reason, method, target, body string
		status                       int
		asked                        *bound
	}{
		"ServiceKey": {"neither app nor route", "PUT", binding, key, 201, &bound{}},
		"ResourceCounts": {"the other place counts", "PUT", binding,
			strings.Replace(key, `{"app_guid":""`, `{"app_guid":"a"`, 1), 201, &bound{app: "a"}},
		"Route": {"a route is one", "PUT", binding, strings.Replace(key, `"route":""`, `"route":"r.example.com"`, 1), 201,
			&bound{route: "r.example.com"}},
		"AppIsNoString": {"INP-03", "PUT", binding, strings.Replace(key, `"app_guid":""`, `"app_guid":{}`, 1), 400, nil},
		"FetchInstance": {"GETI-09: hints of a fetch", "GET", instance + "?service_id=&plan_id=", "", 200, nil},
		"FetchBinding":  {"GETB-04: hints of a fetch", "GET", binding + "?service_id=&plan_id=", "", 200, nil},
		"Poll":          {"hints of a poll", "GET", instance + "/last_operation?operation=&service_id=&plan_id=", "", 200, nil},
		"Deprovision":   {"DEPR-05: required", "DELETE", instance + "?service_id=&plan_id=", "", 400, nil},
		"PlanOfUpdate":  {"it would name the target", "PATCH", instance, `{"service_id":"s","plan_id":""}`, 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := creating()
			w := ask(t, b, tc.method, tc.target, tc.body)
			expect.Same(t, tc.reason+": status of "+w.Body.String(), tc.status, w.Code)
			if tc.asked != nil {
				q, ok := b.asked.(broker.BindRequest)
				expect.Same(t, tc.reason+": a binding is asked for", true, ok)
				expect.Same(t, tc.reason, *tc.asked, bound{q.AppGUID, q.Route}, cmp.AllowUnexported(bound{}))
			}
		})
	}
}

// A canary that is sent in every secret place must not reach the log.
//
// BIND-37, OID-06: neither credentials nor who asked.
func TestNothingSecretIsLogged(t *testing.T) {
	const canary = "canary-5f1d"
	var log bytes.Buffer
	body := `{"service_id":"s","plan_id":"p","organization_guid":"o","space_guid":"sp","context":{"x":"` + canary +
		`"},"parameters":{"password":"` + canary + `"}}`
	fine := creating()
	fine.grant.Credentials = map[string]any{"password": canary}
	broken := creating()
	broken.grant.Credentials = map[string]any{"password": canary, "bad": func() {}} // JSON cannot hold it
	for _, b := range []*stub{fine, broken, {err: errors.New("store is down")}} {
		s := newServer(t, b, &log)
		for _, path := range []string{instance, binding, "/v2/nope/" + canary} {
			for _, method := range []string{"PUT", "PATCH", "GET", "DELETE"} {
				bodyOf(t, send(t, s, method, path+"?service_id=s&plan_id=p&token="+canary, body,
					"X-Broker-API-Originating-Identity", "cloudfoundry "+canary))
			}
		}
	}
	expect.Never(t, "the log", log.String(), canary)
	if log.Len() == 0 {
		t.Errorf("nothing was logged: the test proves nothing")
	}
}

// A panic, and credentials that JSON cannot hold, are internal errors (ERR-12): the client gets the id of the log line, and
// neither has the panic's value or the credentials.
func TestPanicsAndWhatCannotBeEncodedAreInternalErrors(t *testing.T) {
	const canary = "canary-77e0"
	for name, bad := range map[string]any{
		"Function": func() {}, "NotNumber": math.NaN(), "Quoting": json.RawMessage(canary), "Itself": failsToMarshal(canary),
		"Panic": nil,
	} {
		for _, method := range []string{"PUT", "GET"} {
			t.Run(name+method, func(t *testing.T) {
				var log bytes.Buffer
				b := creating()
				b.grant.Credentials, b.panics = map[string]any{"password": canary, "bad": bad}, name == "Panic"
				w := send(t, newServer(t, b, &log), method, binding, ids, "X-Broker-API-Request-Identity", "r-1")
				expect.Same(t, "status", 500, w.Code)
				expect.Same(t, "body", map[string]any{"description": internalAnswer}, bodyOf(t, w))
				expect.Same(t, "RID-01: the request identity", "r-1", w.Header().Get("X-Broker-API-Request-Identity"))
				expect.Never(t, "answer and log", w.Body.String()+log.String(), canary, "a secret of the stub")
				expect.Says(t, "the log", log.String(), "error-id-1")
			})
		}
	}
}

type failsToMarshal string

func (f failsToMarshal) MarshalJSON() ([]byte, error) { return nil, errors.New(string(f)) }

func TestRequestIdentity(t *testing.T) {
	for name, tc := range map[string]struct{ reason, sent, want string }{
		"Echoed":  {"RID-01", "e26cee84-6b38-4456-b34e-d1a9f002c956", "e26cee84-6b38-4456-b34e-d1a9f002c956"},
		"Absent":  {"RID-03: nothing is invented", "", ""},
		"TooLong": {"RID-04", strings.Repeat("x", 8<<10), ""},
		"Hostile": {"RID-04", "a\tb\x7f", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/v2/catalog", "/v2/nope", instance} {
				w := ask(t, &stub{}, "GET", path, "", "X-Broker-API-Request-Identity", tc.sent)
				expect.Same(t, tc.reason+": echoed by "+path, tc.want, w.Header().Get("X-Broker-API-Request-Identity"))
			}
			// RID-02: it is in the log, and goes with the request to where the operation is kept.
			var log bytes.Buffer
			b := creating()
			send(t, newServer(t, b, &log), "PUT", instance, provisionBody, "X-Broker-API-Request-Identity", tc.sent)
			q, _ := b.asked.(broker.ProvisionRequest)
			expect.Same(t, tc.reason+": the broker is told", tc.want, q.Asker.Request)
			in := strings.Contains(log.String(), `"request_identity":"`+tc.want+`"`)
			expect.Same(t, tc.reason+": in the log "+log.String(), tc.want != "", in)
		})
	}
}

// An originating identity that is no object is not kept.
func TestOriginatingIdentity(t *testing.T) {
	for name, tc := range map[string]struct{ reason, json, want string }{
		"Object":      {"OID-02", `{"user_id":"u"}`, `{"user_id":"u"}`},
		"SpaceAround": {"OID-02: it stays as it came", " \n{\"user_id\":\"u\"}\t", " \n{\"user_id\":\"u\"}\t"},
		"Empty":       {"OID-02", `{}`, `{}`},
		"Null":        {"OID-03: null is no object", `null`, ""},
		"Array":       {"OID-03", `[{}]`, ""},
		"Text":        {"OID-03", `"{}"`, ""},
		"Unfinished":  {"OID-03", `{"user_id":`, ""},
		"Two":         {"OID-03", `{}{}`, ""},
		"Nothing":     {"OID-03", ``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := creating()
			w := ask(t, b, "PUT", instance, provisionBody,
				"X-Broker-API-Originating-Identity", "cloudfoundry "+base64.StdEncoding.EncodeToString([]byte(tc.json)))
			expect.Same(t, tc.reason+": status of "+w.Body.String(), http.StatusCreated, w.Code)
			q, ok := b.asked.(broker.ProvisionRequest)
			expect.Same(t, tc.reason+": an instance is asked for", true, ok)
			expect.Same(t, tc.reason+": kept", tc.want, string(q.Identity))
		})
	}
}

func TestPlacement(t *testing.T) {
	with := func(members string) string { return strings.TrimSuffix(ids, "}") + "," + members + "}" }
	for name, tc := range map[string]struct {
		reason, version, body string
		status                int
		org                   string
	}{
		"OldContextOnly":  {"PROV-16", "2.9", with(`"context":{"organization_guid":"o","space_guid":"x"}`), 201, "o"},
		"OldOtherContext": {"PROV-16", "2.9", with(`"context":{"platform":"kubernetes"}`), 201, ""},
		"OldGuids":        {"PROV-16", "2.9", provisionBody, 201, "o"},
		"OldNeither":      {"PROV-16", "2.9", ids, 400, ""},
		"NewContextOnly":  {"PROV-15", "2.10", with(`"context":{"organization_guid":"o","space_guid":"x"}`), 400, ""},
		"NewGuids":        {"PROV-15", "2.10", provisionBody, 201, "o"},
		"EmptyGuid":       {"INP-04", "2.9", with(`"organization_guid":"","space_guid":"x","context":{}`), 400, ""},
		"ContextIsNull": {"INP-07", "2.12", with(`"organization_guid":"o","space_guid":"x","context":null,"parameters":null,` +
			`"maintenance_info":null`), 201, "o"},
		"ContextIsString": {"INP-03", "2.12", with(`"organization_guid":"o","space_guid":"x","context":"x"`), 400, ""},
		"OtherCaseIsOther": {"INP-06: names are exact", "2.12", strings.Replace(provisionBody, "service_id", "Service_ID", 1),
			400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := creating()
			w := ask(t, b, "PUT", instance, tc.body, "X-Broker-API-Version", tc.version)
			expect.Same(t, tc.reason+": status of "+w.Body.String(), tc.status, w.Code)
			if q, ok := b.asked.(broker.ProvisionRequest); ok && q.OrganizationGUID != tc.org {
				t.Errorf("%s: organization %q, want %q", tc.reason, q.OrganizationGUID, tc.org)
			}
		})
	}
}

// Every request is answered by a JSON object, and none by an internal error.
func FuzzServer(f *testing.F) {
	for _, path := range []string{"/v2/catalog", instance, instance + "/last_operation?operation=x", binding,
		binding + "/last_operation", "/operations/x", "//v2/catalog", "/v2/service_instances/%2e%2e/",
		"/v2/service_instances/a%2Fb?accepts_incomplete=banana"} {
		for _, method := range []string{"GET", "PUT", "PATCH", "DELETE", "HEAD", "POST"} {
			f.Add(method, path, "2.17", provisionBody)
			f.Add(method, path, "2.9", `{"parameters":[],"bind_resource":{"app_guid":1},"maintenance_info":{}}`)
		}
	}
	results := []*stub{creating(), {result: broker.Result{Effect: broker.Accepted}, grant: &provider.Grant{},
		poll: broker.Poll{Operation: lifecycle.Operation{Kind: lifecycle.Bind, Phase: lifecycle.InProgress}}},
		{err: lifecycle.RefuseConcurrent()},
	}
	f.Fuzz(func(t *testing.T, method, target, version, body string) {
		r, err := http.NewRequest(method, "http://broker"+target, strings.NewReader(body))
		if err != nil {
			return // no HTTP client can send it
		}
		r.SetBasicAuth("u", "p:w")
		r.Header.Set("X-Broker-API-Version", version)
		for _, b := range results {
			w := httptest.NewRecorder()
			r.Body = io.NopCloser(strings.NewReader(body))
			newServer(t, b, io.Discard).ServeHTTP(w, r)
			if w.Code >= 500 || w.Code < 200 {
				t.Fatalf("%s %s: status %d: %s", method, target, w.Code, w.Body)
			}
			if method != "HEAD" {
				bodyOf(t, w)
			} else if w.Body.Len() > 0 {
				t.Fatalf("%s %s: a body: %s", method, target, w.Body)
			}
		}
	})
}

// FAC-05: a creation that runs says when it will be done and how it is cancelled; what cannot be cancelled does not say how.
func TestPendingStatusHints(t *testing.T) {
	token := tokenOf(lifecycle.Key{Platform: "platform-1", Instance: "a/b"})
	for name, tc := range map[string]struct {
		kind     lifecycle.Kind
		started  time.Time
		expected time.Duration
		estimate string
		links    bool
	}{
		"Provision": {lifecycle.Provision, epoch, 90 * time.Second, "2030-02-01T00:01:29Z", true},
		"Bind":      {lifecycle.Bind, epoch, 0, "", true},
		"Update":    {lifecycle.Update, epoch, time.Second, "2030-02-01T00:00:00Z", false},
		"Unbind":    {lifecycle.Unbind, epoch, 0, "", false},
		"Late":      {lifecycle.Provision, epoch.Add(-time.Hour), time.Minute, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			poll := broker.Poll{Token: token, Operation: lifecycle.Operation{Kind: tc.kind, Phase: lifecycle.InProgress,
				Started: tc.started, Expected: tc.expected}}
			w := ask(t, &stub{poll: poll}, "GET", "/operations/"+url.PathEscape(token.String()), "")
			body := bodyOf(t, w)
			estimate, _ := body["estimatedCompletionTime"].(string)
			expect.Same(t, "estimate", tc.estimate, estimate)
			links, _ := body["links"].(map[string]any)
			expect.Same(t, "has links", tc.links, links != nil)
			if links == nil {
				return
			}
			cancel, _ := links["cancel"].(map[string]any)
			reference := expect.Get(url.Parse(cancel["href"].(string)))(t)
			at := expect.Get(url.Parse("https://api.example.com/stage" + w.Header().Get("Location")))(t)
			expect.Same(t, "is cancelled at", at.String(), at.ResolveReference(reference).String())
			expect.Same[any](t, "is cancelled by", "DELETE", cancel["method"])
		})
	}
}

// The dashboard stands in answers of every version to a provision (PROV-24), of those that know it there to an update (UPD-27).
func TestDashboardURL(t *testing.T) {
	const where = "https://dashboard.example.com/i"
	for name, tc := range map[string]struct {
		method, version string
		effect          broker.Effect
		want            any
	}{
		"Created":        {"PUT", "2.9", broker.Created, where},
		"Accepted":       {"PUT", "2.9", broker.Accepted, where},
		"Exists":         {"PUT", "2.17", broker.Done, where},
		"UpdatedBefore":  {"PATCH", "2.13", broker.Done, nil},
		"UpdatingBefore": {"PATCH", "2.13", broker.Accepted, nil},
		"Updated":        {"PATCH", "2.14", broker.Done, where},
		"Updating":       {"PATCH", "2.14", broker.Accepted, where},
	} {
		t.Run(name, func(t *testing.T) {
			b := &stub{result: broker.Result{Effect: tc.effect, DashboardURL: where}}
			w := ask(t, b, tc.method, instance+"?accepts_incomplete=true", provisionBody, "X-Broker-API-Version", tc.version)
			expect.Same(t, "the dashboard", tc.want, bodyOf(t, w)["dashboard_url"])
		})
	}
}
