package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore/longshore/internal/front/gateway"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/test/expect"
)

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// NFR-06: whether paths arrive encoded or decoded.
func TestPathsArriveAsSent(t *testing.T) {
	cases := map[string]struct {
		reason, path string
		want         string // the escaped path that the server sees; empty: refused, for its reason
	}{
		"Plain":          {"nothing to do", "/v2/catalog", "/v2/catalog"},
		"Encoded":        {"INP-11: as it was sent", "/v2/service_instances/a%2Fb", "/v2/service_instances/a%2Fb"},
		"EncodedPercent": {"decoded once, by the server", "/v2/service_instances/a%252Fb", "/v2/service_instances/a%252Fb"},
		"QuestionMark":   {"a decoded ? must not begin a query", "/v2/service_instances/a?b=c", "/v2/service_instances/a%3Fb=c"},
		"Hash":           {"a decoded # must not begin a fragment", "/v2/service_instances/a#b", "/v2/service_instances/a%23b"},
		"Space":          {"a decoded space", "/v2/service_instances/a b", "/v2/service_instances/a%20b"},
		"Unicode":        {"decoded text", "/v2/service_instances/é", "/v2/service_instances/%C3%A9"},
		"Relative":       {"a path without its slash", "v2/catalog", "/v2/catalog"},
		"Empty":          {"no path", "", "/"},
		"DoubleSlash":    {"not a host", "//evil/v2", "//evil/v2"},
		"BadEscape":      {"percent-encoded", "/v2/%zz", ""},
		"CutEscape":      {"percent-encoded", "/v2/%4", ""},
		"BarePercent":    {"percent-encoded", "/v2/100%", ""},
		"Control":        {"control character", "/v2/a\nb", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			h := gateway.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r.URL.EscapedPath()
				_, _ = io.WriteString(w, "{}")
			}), discard())
			response, err := h(context.Background(), events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: tc.path})
			if err != nil {
				t.Fatalf("%s: the function failed: %v", tc.reason, err)
			}
			expect.Same(t, fmt.Sprintf("%s: the server saw", tc.reason), tc.want, got)
			if wanted := 200; tc.want == "" && response.StatusCode != 400 || tc.want != "" && response.StatusCode != wanted {
				t.Errorf("%s: status %d", tc.reason, response.StatusCode)
			}
			if tc.want == "" && !strings.Contains(response.Body, tc.reason) {
				t.Errorf("the refusal does not tell of %q: %s", tc.reason, response.Body)
			}
		})
	}
}

// The gateway counts bodies by itself: a HEAD has none, and must not promise one
// to it.
func TestHeadHasNoBodyToCount(t *testing.T) {
	h := gateway.New(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "12")
		w.WriteHeader(http.StatusOK)
	}), discard())
	response, err := h(context.Background(), events.APIGatewayProxyRequest{HTTPMethod: "HEAD", Path: "/v2/catalog"})
	if err != nil || response.StatusCode != http.StatusOK || response.Body != "" {
		t.Errorf("%d %q %v", response.StatusCode, response.Body, err)
	}
	if got := response.MultiValueHeaders["Content-Length"]; got != nil {
		t.Errorf("Content-Length %v", got)
	}
}

// Every event is answered by a JSON object, and no event fails the function.
func TestNoEventFailsTheFunction(t *testing.T) {
	cases := map[string]struct {
		event   events.APIGatewayProxyRequest
		handler http.HandlerFunc
		status  int
	}{
		"Panic": {events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/"},
			func(http.ResponseWriter, *http.Request) { panic("x") }, 500},
		"NoStatus": {events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/"},
			func(http.ResponseWriter, *http.Request) {}, 400},
		"NoMethod":   {events.APIGatewayProxyRequest{Path: "/"}, nil, 400},
		"BadMethod":  {events.APIGatewayProxyRequest{HTTPMethod: "G T", Path: "/"}, nil, 400},
		"BadBase64":  {events.APIGatewayProxyRequest{HTTPMethod: "PUT", Path: "/", Body: "!", IsBase64Encoded: true}, nil, 400},
		"EmptyEvent": {events.APIGatewayProxyRequest{}, nil, 400},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			response, err := gateway.New(tc.handler, discard())(context.Background(), tc.event)
			if err != nil || response.StatusCode != tc.status {
				t.Errorf("status %d, error %v; want %d and none", response.StatusCode, err, tc.status)
			}
			var body map[string]any
			if err := json.Unmarshal([]byte(response.Body), &body); err != nil || body["description"] == "" {
				t.Errorf("ERR-01: body %q", response.Body)
			}
			expect.Same(t, "content type", []string{"application/json"}, response.MultiValueHeaders["Content-Type"])
		})
	}
}

func TestRequestsAreCarriedWhole(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, int(678*time.Millisecond), time.UTC)
	var got map[string]any
	h := gateway.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = map[string]any{
			"body": string(body), "query": r.URL.Query()["x"], "version": r.Header.Get("X-Broker-API-Version"),
			"length": r.ContentLength,
		}
		w.Header().Add("Location", "/a")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "{}")
	}), discard())
	response, err := h(context.Background(), events.APIGatewayProxyRequest{HTTPMethod: "PUT", Path: "/v2/x", Body: "e30=",
		IsBase64Encoded: true, MultiValueHeaders: map[string][]string{"x-broker-api-version": {"2.17"}},
		MultiValueQueryStringParameters: map[string][]string{"x": {"a b", "c&d"}},
		RequestContext:                  events.APIGatewayProxyRequestContext{RequestTimeEpoch: at.UnixMilli()}})
	expect.OK(t, err)
	want := map[string]any{"body": "{}", "query": []string{"a b", "c&d"}, "version": "2.17", "length": int64(2)}
	expect.Same(t, "request", want, got)
	if response.StatusCode != 202 || response.MultiValueHeaders["Location"][0] != "/a" || response.Body != "{}" {
		t.Errorf("response %+v", response)
	}
}

// RID-01: also what never reaches the server carries the request's identity.
func TestRefusalsCarryTheRequestsIdentity(t *testing.T) {
	h := gateway.New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") }), discard())
	for _, path := range []string{"/v2/%zz", "/v2/catalog"} {
		for sent, want := range map[string][]string{"id-1": {"id-1"}, "a\nb": nil} {
			response, err := h(t.Context(), events.APIGatewayProxyRequest{
				HTTPMethod: "GET", Path: path, MultiValueHeaders: map[string][]string{"x-broker-api-request-identity": {sent}},
			})
			expect.OK(t, err)
			expect.Same(t, fmt.Sprintf("%s with %q", path, sent), want,
				response.MultiValueHeaders["X-Broker-API-Request-Identity"])
		}
	}
}

// NFR-04: what the broker says of its own paths holds for whoever asked.
func TestLocationsAreBehindTheBasePath(t *testing.T) {
	type context = events.APIGatewayProxyRequestContext
	cases := map[string]struct {
		reason         string
		event          events.APIGatewayProxyRequest
		path, location string // as the server sees it; as the client does
	}{
		"Stage": {"the gateway's own URL has the stage before the path",
			events.APIGatewayProxyRequest{Path: "/v2/x", RequestContext: context{Stage: "prod", Path: "/prod/v2/x"}},
			"/v2/x", "/prod/a"},
		"Root": {"nor does the root confuse it",
			events.APIGatewayProxyRequest{Path: "/", RequestContext: context{Stage: "prod", Path: "/prod/"}}, "/", "/prod/a"},
		"CustomDomain": {"a domain of one's own has no stage in its paths",
			events.APIGatewayProxyRequest{Path: "/v2/x", RequestContext: context{Stage: "prod", Path: "/v2/x"}}, "/v2/x", "/a"},
		"Mapping": {"a mapped path stays in the event's",
			events.APIGatewayProxyRequest{Path: "/broker/v2/x",
				StageVariables: map[string]string{gateway.BasePathVariable: "/broker"},
				RequestContext: context{Stage: "prod", Path: "/broker/v2/x"}}, "/v2/x", "/broker/a"},
		"MappingAlone": {"a mapped path, and nothing after it",
			events.APIGatewayProxyRequest{Path: "/broker",
				StageVariables: map[string]string{gateway.BasePathVariable: "/broker"}}, "/",
			"/broker/a"},
		"NotTheMapping": {"a path that only begins with the same letters",
			events.APIGatewayProxyRequest{Path: "/brokers/v2",
				StageVariables: map[string]string{gateway.BasePathVariable: "/broker"}},
			"/brokers/v2", "/broker/a"},
		"Proxy": {"a proxy takes away more than the gateway knows of",
			events.APIGatewayProxyRequest{Path: "/v2/x",
				StageVariables: map[string]string{gateway.BasePathVariable: "/far/away/"},
				RequestContext: context{Stage: "prod", Path: "/prod/v2/x"}}, "/v2/x", "/far/away/a"},
		"Decoded": {"a path that the gateway decoded ends no longer as it was sent",
			events.APIGatewayProxyRequest{Path: "/v2/x y", RequestContext: context{Stage: "prod", Path: "/prod/v2/x%20y"}},
			"/v2/x%20y", "/prod/a"},
		"Nothing": {"an event without a context", events.APIGatewayProxyRequest{Path: "/v2/x"}, "/v2/x", "/a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var path, origin string
			h := gateway.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path, origin = r.URL.EscapedPath(), osb.OriginIn(r.Context())
				w.Header().Set("Location", "/a")
				_, _ = io.WriteString(w, "{}")
			}), discard())
			tc.event.HTTPMethod, tc.event.RequestContext.DomainName = "GET", "api.example"
			tc.event.Headers = map[string]string{"Host": "claimed.example"} // by the client
			response, err := h(t.Context(), tc.event)
			expect.OK(t, err)
			if want := "https://api.example" + strings.TrimSuffix(tc.location, "/a"); origin != want {
				t.Errorf("%s: browsers are sent to %q, want %q", tc.reason, origin, want)
			}
			if got := response.MultiValueHeaders["Location"]; path != tc.path || len(got) != 1 || got[0] != tc.location {
				t.Errorf("%s: path %q, Location %q; want %q, %q", tc.reason, path, got, tc.path, tc.location)
			}
		})
	}
}

func FuzzPaths(f *testing.F) {
	for _, p := range []string{"/v2/catalog", "/v2/%", "?", "#", "/a%2Fb", "\x00", "//", "/é"} {
		f.Add(p, "GET", "{}")
	}
	f.Fuzz(func(t *testing.T, path, method, body string) {
		h := gateway.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "" || r.URL.Fragment != "" {
				t.Errorf("path %q became query %q, fragment %q", path, r.URL.RawQuery, r.URL.Fragment)
			}
			_, _ = io.WriteString(w, "{}")
		}), discard())
		response, err := h(context.Background(), events.APIGatewayProxyRequest{HTTPMethod: method, Path: path, Body: body})
		if err != nil || response.StatusCode != 200 && response.StatusCode != 400 {
			t.Errorf("path %q: status %d, error %v", path, response.StatusCode, err)
		}
	})
}

// A panic's value may hold a secret.
func TestAPanicsValueIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	h := gateway.New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("canary-77e0") }),
		slog.New(slog.NewJSONHandler(&log, nil)))
	response, err := h(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/"})
	if err != nil || response.StatusCode != 500 || strings.Contains(log.String()+response.Body, "canary-77e0") ||
		!strings.Contains(log.String(), "gateway_test.go") {
		t.Errorf("%d %s: %v\n%s", response.StatusCode, response.Body, err, log.String())
	}
}

// NFR-01: a request's time is over a second before the function is stopped, so that
// there is an answer; without a limit there is none.
func TestARequestEndsBeforeItsFunction(t *testing.T) {
	stops := time.Now().Add(time.Hour)
	limited, cancel := context.WithDeadline(t.Context(), stops)
	defer cancel()
	for name, tc := range map[string]struct {
		ctx  context.Context
		want time.Time
	}{"Limited": {limited, stops.Add(-time.Second)}, "Unlimited": {t.Context(), time.Time{}}} {
		t.Run(name, func(t *testing.T) {
			var got time.Time
			h := gateway.New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, _ = r.Context().Deadline() }),
				discard())
			expect.Get(h(tc.ctx, events.APIGatewayProxyRequest{HTTPMethod: "GET", Path: "/v2/catalog"}))(t)
			if !got.Equal(tc.want) {
				t.Errorf("it ends at %v, want %v", got, tc.want)
			}
		})
	}
}
