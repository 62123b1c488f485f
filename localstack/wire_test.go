//go:build deployed

package localstack_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
)

// Requests that no client library would send.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	for name, tc := range map[string]struct {
		reason, method, path string
		want                 []int // more than one where a gateway may answer by itself
	}{
		"BadEscape":   {"a path that is no text", "GET", "/v2/service_instances/%zz", []int{400, 404}},
		"CutEscape":   {"the same, at its end", "GET", "/v2/service_instances/a%4", []int{400, 404}},
		"BarePercent": {"a percent sign alone", "GET", "/v2/service_instances/100%", []int{400, 404}},
		"Control":     {"a control character", "GET", "/v2/service_instances/a%0Ab", []int{400, 404}},
		"Null":        {"a null character", "GET", "/v2/service_instances/a%00b", []int{400, 404}},
		"NotUTF8":     {"bytes that are no text", "GET", "/v2/service_instances/%ff%fe", []int{400, 404}},
		"Question":    {"a path of which only a query follows", "GET", "/v2/service_instances/?", []int{400, 404}},
		"EncodedQuery": {"an encoded question mark begins no query", "DELETE",
			"/v2/service_instances/a%3Fservice_id=x", []int{400}},
		"EncodedHash": {"nor an encoded number sign a fragment", "GET", "/v2/service_instances/a%23b", []int{404}},
		"EncodedSlash": {"an encoded slash divides nothing", "GET", "/v2%2Fcatalog",
			[]int{200, 404}}, // 200 where it arrives decoded
		"DoubleSlash": {"an empty segment", "GET", "//v2/catalog", []int{200, 404}}, // LocalStack makes one slash of two
		"Dots":        {"a path that climbs", "GET", "/v2/../v2/catalog", []int{200, 301, 307, 308, 400, 404}},
		"LongPath": {"a path of 4000 characters", "GET", "/v2/service_instances/" + strings.Repeat("a", 4000),
			[]int{400, 404}},
		"UnknownRoute":  {"a path that the API does not have", "GET", "/v2/nothing", []int{404}},
		"UnknownMethod": {"a method that HTTP does not have", "BREW", "/v2/catalog", []int{400, 403, 404, 405, 501}},
		"Post":          {"a method that the path does not have", "POST", "/v2/catalog", []int{405}},
		"Options":       {"what a browser would ask", "OPTIONS", "/v2/catalog", []int{405}},
		"Head":          {"a catalog without its body", "HEAD", "/v2/catalog", []int{200}},
		"HeadNothing":   {"nothing without its body", "HEAD", "/v2/service_instances/none", []int{404}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, kind, body := p.raw(t, tc.method, tc.path)
			if !slices.Contains(tc.want, status) {
				t.Errorf("%s: %d %.200q, want one of %d", tc.reason, status, body, tc.want)
			}
			var object map[string]any
			if tc.method != "HEAD" && (json.Unmarshal(body, &object) != nil || object == nil) {
				t.Errorf("%s: %d with %.200q of %s, which is no JSON object", tc.reason, status, body, kind)
			}
		})
	}
}

// raw sends a request as it stands, on a connection of its own.
func (p platform) raw(t *testing.T, method, path string) (status int, kind string, body []byte) {
	t.Helper()
	base := expect.Get(url.Parse(p.url))(t)
	if base.Scheme != "http" {
		t.Fatalf("%s: requests are written to plain connections, as emulators have them", p.url)
	}
	conn := expect.Get(net.DialTimeout("tcp", base.Host, callLimit))(t)
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(callLimit))
	login := base64.StdEncoding.EncodeToString([]byte(p.username + ":" + p.password))
	expect.Get(fmt.Fprintf(conn,
		"%s %s%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\nX-Broker-API-Version: 2.17\r\nConnection: close\r\n\r\n",
		method, base.Path, path, base.Host, login))(t)
	response := expect.Get(http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method}))(t, method, path)
	defer func() { _ = response.Body.Close() }()
	body = expect.Get(io.ReadAll(response.Body))(t, method, path)
	return response.StatusCode, response.Header.Get("Content-Type"), body
}

// Every answer is JSON, and never a 5xx.
func TestNothingThere(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	none := instancePath(id("none"))
	for _, tc := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", 404}, {"GET", "/v3/anything", 404}, {"GET", none, 404}, {"GET", none + "/service_bindings/b", 404},
		{"GET", none + "/last_operation", 404}, {"DELETE", none + "?accepts_incomplete=true&" + hints(planAsync), 410},
	} {
		p.call(t, tc.method, tc.path, "", tc.want)
	}
}

// Ids hold any characters, and come through the gateway as they were sent. The function calls the provisioner itself, and
// answers when it is done.
func TestEncodedPaths(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	for name, tc := range map[string]struct {
		id string
		// decoded is the answer where paths arrive decoded, as MiniStack hands them over: what was sent cannot be told any
		// more, and is refused. AWS and LocalStack hand them over as they were sent.
		decoded int
	}{
		"Space": {"a b", 0}, "QuestionMark": {"a?b", 0}, "Hash": {"a#b", 0}, "Plus": {"a+b", 0}, "Umlaut": {"aüb", 0},
		"Quote": {`a"b`, 0}, "EncodedTwice": {"a%2Fb", 0}, "Slash": {"a/b", 404}, "Percent": {"a%b", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := instancePath(id("i") + tc.id)
			if tc.decoded != 0 && strings.HasSuffix(p.url, "/_user_request_") {
				p.call(t, "PUT", path, provision(planSync), tc.decoded)
				return
			}
			p.call(t, "PUT", path, provision(planSync), 201)
			p.call(t, "PUT", path, provision(planSync), 200)
			p.call(t, "GET", path, "", 200)
			p.call(t, "GET", path+"x", "", 404)
			p.deletes(t, path)
			p.call(t, "DELETE", path+"?"+hints(planSync), "", 410)
			p.call(t, "GET", path, "", 404)
		})
	}
}

// An instance that takes its time, from its order to its end.
func TestAsynchronousLifecycle(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	path := instancePath(id("i"))
	accepted := p.call(t, "PUT", path+"?accepts_incomplete=true", provision(planAsync), 202)
	operation := accepted.text("operation")
	if operation == "" || !strings.HasSuffix(accepted.header.Get("Location"), "/operations/"+operation) {
		t.Fatalf("no operation, or not where it is: %s, %v", accepted.raw, accepted.header)
	}
	again := p.call(t, "PUT", path+"?accepts_incomplete=true", provision(planAsync), 202)
	expect.Same(t, "the operation of the same request", operation, again.text("operation"))
	if state := p.settled(t, path, operation); state != "succeeded" {
		t.Fatalf("provisioning ended %q", state)
	}
	p.call(t, "GET", path, "", 200)
	p.call(t, "PUT", path+"?accepts_incomplete=true", provision(planAsync), 200)

	binding := path + "/service_bindings/" + id("b")
	first := p.call(t, "PUT", binding, bind(service, planAsync), 201)
	if again := p.call(t, "PUT", binding, bind(service, planAsync), 200); first.body["credentials"] == nil ||
		first.raw != again.raw {
		t.Errorf("the same binding has other credentials, or none")
	}
	p.call(t, "DELETE", binding+"?"+hints(planAsync), "", 200)
	p.call(t, "DELETE", binding+"?"+hints(planAsync), "", 410)
	p.ends(t, "DELETE", path, hints(planAsync), "")
	p.call(t, "GET", path, "", 404)
	p.call(t, "DELETE", path+"?accepts_incomplete=true&"+hints(planAsync), "", 410)
}
