package e2e_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// ERR-01: also what Go's HTTP server refuses before the broker sees it is answered by a JSON object.
func TestEveryAnswerIsAnObject(t *testing.T) {
	p := start(t, t.TempDir(), credentials()...)
	auth := "Authorization: " + basic(username, password) + "\r\n"
	const host, api = "Host: x\r\n", "X-Broker-API-Version: 2.17\r\n"
	put := "PUT /v2/service_instances/i HTTP/1.1\r\n" + host + auth + api + "Transfer-Encoding: "
	cases := map[string]struct {
		request string
		status  int
	}{
		"BadEscape":      {"GET /v2/service_instances/%zz HTTP/1.1\r\n" + host + auth + api + "\r\n", 400},
		"CutEscape":      {"PUT /v2/service_instances/a%2 HTTP/1.1\r\n" + host + auth + api + "Content-Length: 2\r\n\r\n{}", 400},
		"NotHTTP":        {"hello\r\n\r\n", 400},
		"NoHost":         {"GET /v2/catalog HTTP/1.1\r\n" + auth + api + "\r\n", 400},
		"BadHeader":      {"GET /v2/catalog HTTP/1.1\r\n" + host + "bad header\r\n\r\n", 400},
		"HugeHeader":     {"GET /v2/catalog HTTP/1.1\r\n" + host + "X: " + strings.Repeat("x", 200<<10) + "\r\n\r\n", 431},
		"Encoding":       {put + "gzip\r\n\r\n", 501},
		"OptionsAll":     {"OPTIONS * HTTP/1.1\r\n" + host + auth + "\r\n", 404},
		"Options":        {"OPTIONS /v2/catalog HTTP/1.1\r\n" + host + auth + api + "\r\n", 405},
		"Trace":          {"TRACE /v2/catalog HTTP/1.1\r\n" + host + auth + api + "\r\n", 405},
		"UnknownMethod":  {"BREW /v2/catalog HTTP/1.1\r\n" + host + auth + api + "\r\n", 405},
		"EncodedControl": {"GET /v2/service_instances/a%00b HTTP/1.1\r\n" + host + auth + api + "\r\n", 400},
		"BadUTF8":        {"GET /v2/service_instances/%ff HTTP/1.1\r\n" + host + auth + api + "\r\n", 400},
		"ChunkedTooBig":  {put + "chunked\r\n\r\n50000\r\n" + strings.Repeat("x", 0x50000) + "\r\n0\r\n\r\n", 413},
		"BadChunk":       {put + "chunked\r\n\r\nzz\r\n", 400},
		"HTTP10":         {"GET /v2/catalog HTTP/1.0\r\n" + auth + api + "\r\n", 200},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := expect.Get(net.Dial("tcp", strings.TrimPrefix(p.url, "http://")))(t)
			defer func() { _ = c.Close() }()
			go func() { _, _ = io.WriteString(c, tc.request) }() // the answer may come before it is all sent
			response := expect.Get(http.ReadResponse(bufio.NewReader(c), nil))(t, "no answer")
			defer func() { _ = response.Body.Close() }()
			expect.Same(t, "status", tc.status, response.StatusCode)
			var body map[string]any
			if err := json.NewDecoder(response.Body).Decode(&body); err != nil || body == nil {
				t.Errorf("the body is no JSON object: %v", err)
			}
			if response.StatusCode >= 400 && body["description"] == nil {
				t.Errorf("ERR-02: no description in %v", body)
			}
			if got := response.Header.Get("Content-Type"); !strings.HasPrefix(got, "application/json") {
				t.Errorf("content type %q", got)
			}
		})
	}
	must(t, p.url, "GET", "/v2/catalog", "", 200) // it is still there
}

// An instance's dashboard is in the first answer and in each after it (PROV-24,
// GETI-01); where the operator moves it, an update tells (UPD-27).
func TestDashboards(t *testing.T) {
	t.Parallel()
	data, dir, path := t.TempDir(), t.TempDir(), instancePath("i")
	const offering, plan = "2b9a2a1e-1111-4222-8333-944445555777", "2b9a2a1e-7777-4888-8999-900001111333"
	var p *process
	serve := func(host string) *process {
		t.Helper()
		mine(t, dir, offering, plan, "dashboard_url: https://"+host+"/of/{instance_id}\n", "")
		return startWith(t, credentials(), "--data", data, "--offerings", dir)
	}
	shows := func(what, method, path, body string, status int, want any) {
		t.Helper()
		a := must(t, p.url, method, path, body, status)
		expect.Same(t, what+" shows the dashboard", want, a.body["dashboard_url"])
	}
	body := orderBody(offering, plan, "")
	const old = "https://old.example.com/of/i"

	p = serve("old.example.com")
	expect.Never(t, "the catalog", must(t, p.url, "GET", "/v2/catalog", "", 200).raw, "old.example.com")
	shows("the 202", "PUT", path+async, body, 202, old)
	shows("its repetition", "PUT", path+async, body, 202, old)
	settled(t, p.url, path)
	shows("a PUT of what is there", "PUT", path, body, 200, old)
	shows("a GET", "GET", path, "", 200, old)
	shows("the 201", "PUT", instancePath("a%2Fb"), body, 201, "https://old.example.com/of/a%2Fb")
	shows("an update that moves nothing", "PATCH", path, planBody(offering, plan, `,"parameters":{"n":1}`), 200, nil)
	p.ends(t, terminate)

	p = serve("new.example.com")
	const moved = "https://new.example.com/of/i"
	shows("a PUT of what is there", "PUT", path, body, 409, nil) // its parameters are others by now
	shows("a GET before the update", "GET", path, "", 200, old)
	shows("an update", "PATCH", path+async, planBody(offering, plan, `,"parameters":{"n":2}`), 202, moved)
	settled(t, p.url, path)
	shows("a GET after it", "GET", path, "", 200, moved)
	shows("the next update", "PATCH", path, planBody(offering, plan, `,"parameters":{"n":3}`), 200, nil)
}

// An offering that has left the catalog goes on working for what exists (CAT-28): only new instances are refused.
func TestOfferingsThatAreWithdrawn(t *testing.T) {
	data, dir, path := t.TempDir(), t.TempDir(), instancePath("i")
	const offering, plan = "2b9a2a1e-1111-4222-8333-944445555666", "2b9a2a1e-7777-4888-8999-900001111222"
	mine(t, dir, offering, plan, "", "  asynchronous: never\n")
	body, bind, these := orderBody(offering, plan, ""), planBody(offering, plan, ""), "?"+idsOf(offering, plan)

	p := startWith(t, credentials(), "--data", data, "--offerings", dir)
	must(t, p.url, "PUT", path, body, 201)
	must(t, p.url, "PUT", bindingPath("i", "b"), bind, 201)
	p.ends(t, terminate)

	p = start(t, data, credentials()...)
	if a := must(t, p.url, "GET", "/v2/catalog", "", 200); strings.Contains(a.raw, offering) {
		t.Fatal("the offering is still there: the test proves nothing")
	}
	must(t, p.url, "PUT", instancePath("new"), body, 400)
	must(t, p.url, "PUT", path, body, 200) // IDEM-04
	must(t, p.url, "GET", path, "", 200)
	must(t, p.url, "GET", path+"/last_operation", "", 200)
	must(t, p.url, "PUT", bindingPath("i", "c"), bind, 201)
	must(t, p.url, "DELETE", bindingPath("i", "b")+these, "", 200)
	must(t, p.url, "DELETE", path+these, "", 200)
	must(t, p.url, "GET", path, "", 404)
}
