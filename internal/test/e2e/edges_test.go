package e2e_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// ERR-01: also what Go's HTTP server refuses before the broker sees it is answered by a JSON object.
func TestEveryAnswerIsAnObject(t *testing.T) {
	p := start(t, t.TempDir(), credentials()...)
	auth := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password)) + "\r\n"
	const host, api = "Host: x\r\n", "X-Broker-API-Version: 2.17\r\n"
	cases := map[string]struct {
		request string
		status  int
	}{
		"BadEscape":  {"GET /v2/service_instances/%zz HTTP/1.1\r\n" + host + auth + api + "\r\n", 400},
		"CutEscape":  {"PUT /v2/service_instances/a%2 HTTP/1.1\r\n" + host + auth + api + "Content-Length: 2\r\n\r\n{}", 400},
		"NotHTTP":    {"hello\r\n\r\n", 400},
		"NoHost":     {"GET /v2/catalog HTTP/1.1\r\n" + auth + api + "\r\n", 400},
		"BadHeader":  {"GET /v2/catalog HTTP/1.1\r\n" + host + "bad header\r\n\r\n", 400},
		"HugeHeader": {"GET /v2/catalog HTTP/1.1\r\n" + host + "X: " + strings.Repeat("x", 200<<10) + "\r\n\r\n", 431},
		"Encoding": {"PUT /v2/service_instances/i HTTP/1.1\r\n" + host + auth + api +
			"Transfer-Encoding: gzip\r\n\r\n", 501},
		"OptionsAll":     {"OPTIONS * HTTP/1.1\r\n" + host + auth + "\r\n", 404},
		"Options":        {"OPTIONS /v2/catalog HTTP/1.1\r\n" + host + auth + api + "\r\n", 405},
		"Trace":          {"TRACE /v2/catalog HTTP/1.1\r\n" + host + auth + api + "\r\n", 405},
		"UnknownMethod":  {"BREW /v2/catalog HTTP/1.1\r\n" + host + auth + api + "\r\n", 405},
		"EncodedControl": {"GET /v2/service_instances/a%00b HTTP/1.1\r\n" + host + auth + api + "\r\n", 400},
		"BadUTF8":        {"GET /v2/service_instances/%ff HTTP/1.1\r\n" + host + auth + api + "\r\n", 400},
		"ChunkedTooBig": {"PUT /v2/service_instances/i HTTP/1.1\r\n" + host + auth + api +
			"Transfer-Encoding: chunked\r\n\r\n" + "50000\r\n" +
			strings.Repeat("x", 0x50000) + "\r\n0\r\n\r\n", 413},
		"BadChunk": {"PUT /v2/service_instances/i HTTP/1.1\r\n" + host + auth + api +
			"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		"HTTP10": {"GET /v2/catalog HTTP/1.0\r\n" + auth + api + "\r\n", 200},
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
	data, mine := t.TempDir(), t.TempDir()
	const offering, plan = "2b9a2a1e-1111-4222-8333-944445555777", "2b9a2a1e-7777-4888-8999-900001111333"
	serve := func(host string) *process {
		t.Helper()
		file := fmt.Sprintf("id: %s\nname: mine\ndescription: Mine\nprovider: demo\nbindable: true\ninstances_retrievable: "+
			"true\ndashboard_url: https://%s/of/{instance_id}\nplans:\n- id: %s\n  name: only\n  description: The only one\n",
			offering, host, plan)
		expect.OK(t, os.WriteFile(filepath.Join(mine, "offering.yaml"), []byte(file), 0o600))
		return startWith(t, credentials(), "--data", data, "--offerings", mine)
	}
	shows := func(what string, a answer, want any) {
		t.Helper()
		expect.Same(t, what+" shows the dashboard", want, a.body["dashboard_url"])
	}
	ids := fmt.Sprintf(`"service_id":%q,"plan_id":%q`, offering, plan)
	body := "{" + ids + `,"organization_guid":"o","space_guid":"s"}`
	const old = "https://old.example.com/of/i"

	p := serve("old.example.com")
	if a := must(t, p.url, "GET", "/v2/catalog", "", 200); strings.Contains(a.raw, "old.example.com") {
		t.Errorf("the catalog tells where dashboards are: %s", a.raw)
	}
	shows("the 202", must(t, p.url, "PUT", instancePath("i")+"?accepts_incomplete=true", body, 202), old)
	shows("its repetition", must(t, p.url, "PUT", instancePath("i")+"?accepts_incomplete=true", body, 202), old)
	settled(t, p.url, instancePath("i"))
	shows("a PUT of what is there", must(t, p.url, "PUT", instancePath("i"), body, 200), old)
	shows("a GET", must(t, p.url, "GET", instancePath("i"), "", 200), old)
	shows("the 201", must(t, p.url, "PUT", instancePath("a%2Fb"), body, 201), "https://old.example.com/of/a%2Fb")
	n := 0
	update := func(query string, status int) answer {
		n++
		return must(t, p.url, "PATCH", instancePath("i")+query, fmt.Sprintf(`{%s,"parameters":{"n":%d}}`, ids, n), status)
	}
	shows("an update that moves nothing", update("", 200), nil)
	if code := p.stop(t, terminate); code != 0 {
		t.Fatalf("exit status %d", code)
	}

	p = serve("new.example.com")
	const moved = "https://new.example.com/of/i"
	shows("a PUT of what is there", must(t, p.url, "PUT", instancePath("i"), body, 409), nil) // its parameters are others by now
	shows("a GET before the update", must(t, p.url, "GET", instancePath("i"), "", 200), old)
	shows("an update", update("?accepts_incomplete=true", 202), moved)
	settled(t, p.url, instancePath("i"))
	shows("a GET after it", must(t, p.url, "GET", instancePath("i"), "", 200), moved)
	shows("the next update", update("", 200), nil)
}

// An offering that has left the catalog goes on working for what exists (CAT-28): only new instances are refused.
func TestOfferingsThatAreWithdrawn(t *testing.T) {
	data, mine := t.TempDir(), t.TempDir()
	const offering, plan = "2b9a2a1e-1111-4222-8333-944445555666", "2b9a2a1e-7777-4888-8999-900001111222"
	file := fmt.Sprintf("id: %s\nname: mine\ndescription: Mine\nprovider: demo\nbindable: true\ninstances_retrievable: "+
		"true\nplans:\n- id: %s\n  name: only\n  description: The only one\n  asynchronous: never\n", offering, plan)
	expect.OK(t, os.WriteFile(filepath.Join(mine, "offering.yaml"), []byte(file), 0o600))
	serve := func(args ...string) *process {
		return startWith(t, credentials(), append([]string{"--data", data}, args...)...)
	}
	body := fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"}`, offering, plan)
	bind := fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, offering, plan)

	p := serve("--offerings", mine)
	must(t, p.url, "PUT", instancePath("i"), body, 201)
	must(t, p.url, "PUT", instancePath("i")+"/service_bindings/b", bind, 201)
	if code := p.stop(t, terminate); code != 0 {
		t.Fatalf("exit status %d", code)
	}

	p = serve()
	if a := must(t, p.url, "GET", "/v2/catalog", "", 200); strings.Contains(a.raw, offering) {
		t.Fatal("the offering is still there: the test proves nothing")
	}
	must(t, p.url, "PUT", instancePath("new"), body, 400)
	must(t, p.url, "PUT", instancePath("i"), body, 200) // IDEM-04
	must(t, p.url, "GET", instancePath("i"), "", 200)
	must(t, p.url, "GET", instancePath("i")+"/last_operation", "", 200)
	must(t, p.url, "PUT", instancePath("i")+"/service_bindings/c", bind, 201)
	must(t, p.url, "DELETE", instancePath("i")+"/service_bindings/b?service_id="+offering+"&plan_id="+plan, "", 200)
	must(t, p.url, "DELETE", instancePath("i")+"?service_id="+offering+"&plan_id="+plan, "", 200)
	must(t, p.url, "GET", instancePath("i"), "", 404)
}
