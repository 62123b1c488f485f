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

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/front/gateway"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/test/expect"
)

// An event is one of API Gateway.
type event = events.APIGatewayProxyRequest

// answered is what a function answers an event whose server is h. No event fails the function.
func answered(t *testing.T, e event, h http.HandlerFunc) events.APIGatewayProxyResponse {
	t.Helper()
	return expect.Get(gateway.New(h, slog.New(slog.DiscardHandler))(t.Context(), e))(t)
}

func panics(http.ResponseWriter, *http.Request) { panic("canary-77e0") }

// NFR-06: whether paths arrive encoded or decoded.
func TestPathsArriveAsSent(t *testing.T) {
	for name, tc := range map[string]struct {
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
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			response := answered(t, event{HTTPMethod: "GET", Path: tc.path}, func(w http.ResponseWriter, r *http.Request) {
				got = r.URL.EscapedPath()
				_, _ = io.WriteString(w, "{}")
			})
			expect.Same(t, tc.reason+": the server saw", tc.want, got)
			if tc.want != "" {
				expect.Same(t, tc.reason+": status", 200, response.StatusCode)
				return
			}
			expect.Same(t, tc.reason+": status", 400, response.StatusCode)
			expect.Says(t, "the refusal", response.Body, tc.reason)
		})
	}
}

// The gateway counts bodies by itself: a HEAD has none, and must not promise one to it.
func TestHeadHasNoBodyToCount(t *testing.T) {
	response := answered(t, event{HTTPMethod: "HEAD", Path: "/v2/catalog"}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "12")
		w.WriteHeader(http.StatusOK)
	})
	if got := response.MultiValueHeaders["Content-Length"]; response.StatusCode != 200 || response.Body != "" || got != nil {
		t.Errorf("%d %q, Content-Length %v", response.StatusCode, response.Body, got)
	}
}

// Every event is answered by a JSON object, and no event fails the function.
func TestNoEventFailsTheFunction(t *testing.T) {
	for name, tc := range map[string]struct {
		event   event
		handler http.HandlerFunc
		status  int
	}{
		"Panic":      {event{HTTPMethod: "GET", Path: "/"}, panics, 500},
		"NoStatus":   {event{HTTPMethod: "GET", Path: "/"}, func(http.ResponseWriter, *http.Request) {}, 400},
		"NoMethod":   {event{Path: "/"}, nil, 400},
		"BadMethod":  {event{HTTPMethod: "G T", Path: "/"}, nil, 400},
		"BadBase64":  {event{HTTPMethod: "PUT", Path: "/", Body: "!", IsBase64Encoded: true}, nil, 400},
		"EmptyEvent": {event{}, nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			h := gateway.New(tc.handler, slog.New(slog.NewJSONHandler(&log, nil)))
			response := expect.Get(h(t.Context(), tc.event))(t)
			expect.Same(t, "status", tc.status, response.StatusCode)
			var body map[string]any
			if err := json.Unmarshal([]byte(response.Body), &body); err != nil || body["description"] == "" {
				t.Errorf("ERR-01: body %q", response.Body)
			}
			expect.Same(t, "content type", []string{"application/json"}, response.MultiValueHeaders["Content-Type"])
			// A panic's value may hold a secret.
			expect.Never(t, "log and answer", log.String()+response.Body, "canary-77e0")
			expect.Same(t, "the log says where it panics", name == "Panic", strings.Contains(log.String(), "gateway_test.go"))
		})
	}
}

func TestRequestsAreCarriedWhole(t *testing.T) {
	var got map[string]any
	response := answered(t, event{HTTPMethod: "PUT", Path: "/v2/x", Body: "e30=", IsBase64Encoded: true,
		MultiValueHeaders:               map[string][]string{"x-broker-api-version": {"2.17"}},
		MultiValueQueryStringParameters: map[string][]string{"x": {"a b", "c&d"}},
	}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = map[string]any{"body": string(body), "query": r.URL.Query()["x"], "length": r.ContentLength,
			"version": r.Header.Get("X-Broker-API-Version")}
		w.Header().Add("Location", "/a")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "{}")
	})
	want := map[string]any{"body": "{}", "query": []string{"a b", "c&d"}, "version": "2.17", "length": int64(2)}
	expect.Same(t, "request", want, got)
	if response.StatusCode != 202 || response.MultiValueHeaders["Location"][0] != "/a" || response.Body != "{}" {
		t.Errorf("response %+v", response)
	}
}

// noting lets everybody in, and notes who asks and when.
type noting struct {
	osb.Broker
	by broker.Caller
}

func (*noting) Authenticate(string, string) (platforms.Identity, bool) {
	return platforms.Identity{}, true
}

func (n *noting) View(_ context.Context, by broker.Caller, _, _ string) (broker.View, error) {
	n.by = by
	return broker.View{}, nil
}

// ORB-03: a request counts as received when the gateway received it; when it is served, where no gateway says so.
func TestRequestsSayWhenTheyWereReceived(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, int(678*time.Millisecond), time.UTC)
	served := at.Add(3 * time.Second)
	for epoch, want := range map[int64]time.Time{at.UnixMilli(): at, 0: served} {
		var n noting
		server := osb.New(osb.Options{Broker: &n, Platforms: &n, Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return served }})
		response := answered(t, event{HTTPMethod: "GET", Path: "/v2/service_instances/i",
			MultiValueHeaders: map[string][]string{"x-broker-api-version": {"2.17"}},
			RequestContext:    events.APIGatewayProxyRequestContext{RequestTimeEpoch: epoch}}, server.ServeHTTP)
		expect.Same(t, "status of "+response.Body, 200, response.StatusCode)
		expect.Same(t, fmt.Sprintf("%d: it was received", epoch), want, n.by.Received)
	}
}

// RID-01: also what never reaches the server carries the request's identity.
func TestRefusalsCarryTheRequestsIdentity(t *testing.T) {
	for _, path := range []string{"/v2/%zz", "/v2/catalog"} {
		for sent, want := range map[string][]string{"id-1": {"id-1"}, "a\nb": nil} {
			response := answered(t, event{HTTPMethod: "GET", Path: path,
				MultiValueHeaders: map[string][]string{"x-broker-api-request-identity": {sent}}}, panics)
			expect.Same(t, fmt.Sprintf("%s with %q", path, sent), want,
				response.MultiValueHeaders["X-Broker-API-Request-Identity"])
		}
	}
}

// NFR-04: what the broker says of its own paths holds for whoever asked.
func TestLocationsAreBehindTheBasePath(t *testing.T) {
	type context = events.APIGatewayProxyRequestContext
	mapped := func(path, base string) event {
		return event{Path: path, StageVariables: map[string]string{gateway.BasePathVariable: base}}
	}
	staged := func(e event, path string) event {
		e.RequestContext = context{Stage: "prod", Path: path}
		return e
	}
	for name, tc := range map[string]struct {
		reason         string
		event          event
		path, location string // as the server sees it; as the client does
	}{
		"Stage": {"the gateway's own URL has the stage before the path", staged(event{Path: "/v2/x"}, "/prod/v2/x"),
			"/v2/x", "/prod/a"},
		"Root":         {"nor does the root confuse it", staged(event{Path: "/"}, "/prod/"), "/", "/prod/a"},
		"CustomDomain": {"a domain of one's own has no stage in its paths", staged(event{Path: "/v2/x"}, "/v2/x"), "/v2/x", "/a"},
		"Mapping": {"a mapped path stays in the event's", staged(mapped("/broker/v2/x", "/broker"), "/broker/v2/x"),
			"/v2/x", "/broker/a"},
		"MappingAlone": {"a mapped path, and nothing after it", mapped("/broker", "/broker"), "/", "/broker/a"},
		"NotTheMapping": {"a path that only begins with the same letters", mapped("/brokers/v2", "/broker"),
			"/brokers/v2", "/broker/a"},
		"Proxy": {"a proxy takes away more than the gateway knows of", staged(mapped("/v2/x", "/far/away/"), "/prod/v2/x"),
			"/v2/x", "/far/away/a"},
		"Decoded": {"a path that the gateway decoded ends no longer as it was sent",
			staged(event{Path: "/v2/x y"}, "/prod/v2/x%20y"), "/v2/x%20y", "/prod/a"},
		"Nothing": {"an event without a context", event{Path: "/v2/x"}, "/v2/x", "/a"},
	} {
		t.Run(name, func(t *testing.T) {
			var path, origin string
			tc.event.HTTPMethod, tc.event.RequestContext.DomainName = "GET", "api.example"
			tc.event.Headers = map[string]string{"Host": "claimed.example"} // by the client
			response := answered(t, tc.event, func(w http.ResponseWriter, r *http.Request) {
				path, origin = r.URL.EscapedPath(), osb.ArrivalIn(r.Context()).Origin
				w.Header().Set("Location", "/a")
				_, _ = io.WriteString(w, "{}")
			})
			expect.Same(t, tc.reason+": browsers are sent to", "https://api.example"+strings.TrimSuffix(tc.location, "/a"),
				origin)
			expect.Same(t, tc.reason+": path", tc.path, path)
			expect.Same(t, tc.reason+": Location", []string{tc.location}, response.MultiValueHeaders["Location"])
		})
	}
}

func FuzzPaths(f *testing.F) {
	for _, p := range []string{"/v2/catalog", "/v2/%", "?", "#", "/a%2Fb", "\x00", "//", "/é"} {
		f.Add(p, "GET", "{}")
	}
	f.Fuzz(func(t *testing.T, path, method, body string) {
		response := answered(t, event{HTTPMethod: method, Path: path, Body: body}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "" || r.URL.Fragment != "" {
				t.Errorf("path %q became query %q, fragment %q", path, r.URL.RawQuery, r.URL.Fragment)
			}
			_, _ = io.WriteString(w, "{}")
		})
		if response.StatusCode != 200 && response.StatusCode != 400 {
			t.Errorf("path %q: status %d", path, response.StatusCode)
		}
	})
}

// NFR-01: a request's time ends a second before the function is stopped, so that there is an answer; without a limit, never.
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
				slog.New(slog.DiscardHandler))
			expect.Get(h(tc.ctx, event{HTTPMethod: "GET", Path: "/v2/catalog"}))(t)
			if !got.Equal(tc.want) {
				t.Errorf("it ends at %v, want %v", got, tc.want)
			}
		})
	}
}
