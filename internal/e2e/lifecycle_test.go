package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The lifecycle of the README, at every step as a platform sees it.
//
// DEPR-15, DEPR-18: a deletion needs no body, and leaves nothing.
func TestLifecycle(t *testing.T) {
	data := t.TempDir()
	p := start(t, data, credentials("LONGSHORE_DEMO_DELAY=300ms")...)
	must(t, p.url, "GET", "/v2/catalog", "", 200)
	path := instancePath("i-1")
	accepted := must(t, p.url, "PUT", path+"?accepts_incomplete=true", provisionBody(planAsync, `{"a":1}`), 202)
	operation := accepted.text("operation")
	if operation == "" || accepted.header.Get("Location") != "/operations/"+operation || accepted.header.Get("Retry-After") == "" {
		t.Errorf("PROV-02, FAC-01: %s, headers %v", accepted.raw, accepted.header)
	}
	if a := must(t, p.url, "GET", path+"/last_operation?operation="+operation, "", 200); a.text("state") != "in progress" {
		t.Errorf("LOP-01: %s", a.raw)
	}
	must(t, p.url, "GET", "/operations/"+operation, "", 202)
	if a := must(t, p.url, "PUT", path+"?accepts_incomplete=true", provisionBody(planAsync, `{"a":1.0}`), 202); a.text("operation") != operation {
		t.Errorf("PROV-10: another operation: %s", a.raw)
	}
	if state := settled(t, p.url, path); state != "succeeded" {
		t.Fatalf("LOP-02: state %q", state)
	}
	if a := must(t, p.url, "GET", "/operations/"+operation, "", 302); a.header.Get("Location") != path {
		t.Errorf("FAC-06: %v", a.header)
	}
	must(t, p.url, "GET", path, "", 200)

	bind := fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, service, planAsync)
	first := must(t, p.url, "PUT", path+"/service_bindings/b-1", bind, 201)
	if first.body["credentials"] == nil {
		t.Errorf("BIND-01: no credentials")
	}
	again := must(t, p.url, "PUT", path+"/service_bindings/b-1", bind, 200)
	if fmt.Sprint(first.body) != fmt.Sprint(again.body) {
		t.Errorf("BIND-02: the second answer differs")
	}
	if n := len(things(t, data)); n != 2 {
		t.Errorf("%d things exist, want the instance's and the binding's", n)
	}
	must(t, p.url, "DELETE", path+"/service_bindings/b-1?"+hints(planAsync), "", 200)
	must(t, p.url, "DELETE", path+"/service_bindings/b-1?"+hints(planAsync), "", 410)

	deleted := must(t, p.url, "DELETE", path+"?accepts_incomplete=true&"+hints(planAsync), "", 202).text("operation")
	if state := settled(t, p.url, path); state != "succeeded" {
		t.Fatalf("LOP-10: state %q", state)
	}
	must(t, p.url, "GET", path+"/last_operation?operation="+deleted, "", 410)
	must(t, p.url, "GET", "/operations/"+deleted, "", 200)
	must(t, p.url, "GET", path, "", 404)
	must(t, p.url, "DELETE", path+"?"+hints(planAsync), "", 410)
	if a := must(t, p.url, "GET", path+"/last_operation?operation="+operation, "", 200); a.text("state") != "succeeded" {
		t.Errorf("LOP-06, LOP-13: the first operation now reads %s", a.raw)
	}
	if left := things(t, data); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Stopped in the middle of an operation, started again: it goes on.
func TestStoppedOperationsGoOn(t *testing.T) {
	for name, signal := range map[string]os.Signal{"Interrupt": interrupt, "Terminate": terminate} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			env := credentials("LONGSHORE_DEMO_DELAY=700ms")
			p := start(t, data, env...)
			token := must(t, p.url, "PUT", instancePath("i")+"?accepts_incomplete=true", provisionBody(planAsync, `{}`), 202).text("operation")
			if code := p.stop(t, signal); code != 0 {
				t.Errorf("exit status %d:\n%s", code, p.log)
			}
			p = start(t, data, env...)
			if a := must(t, p.url, "GET", instancePath("i")+"/last_operation?operation="+token, "", 200); a.text("state") == "failed" {
				t.Errorf("the operation failed: %s", a.raw)
			}
			if state := settled(t, p.url, instancePath("i")); state != "succeeded" {
				t.Errorf("state %q", state)
			}
		})
	}
}

// Sixteen identical requests at once are one effect (IDEM-03, PROV-31).
func TestIdenticalRequestsAtOnce(t *testing.T) {
	data := t.TempDir()
	p := start(t, data, credentials("LONGSHORE_DEMO_DELAY=1s")...)
	cases := map[string]struct {
		plan, query string
		once        int // how often 201 comes
		rest        int
	}{
		"Synchronous":  {planSync, "", 1, 200},
		"Asynchronous": {planAsync, "?accepts_incomplete=true", 0, 202},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answers := make([]answer, 16)
			var all sync.WaitGroup
			for n := range answers {
				all.Go(func() {
					a, err := send(p.url, "PUT", instancePath(name)+tc.query, provisionBody(tc.plan, `{"a":1}`))
					if err != nil {
						t.Errorf("no answer: %v", err)
					}
					answers[n] = a
				})
			}
			all.Wait()
			created, tokens := 0, map[string]bool{}
			for _, a := range answers {
				switch a.status {
				case http.StatusCreated:
					created++
				case tc.rest:
				default:
					t.Errorf("status %d: %s", a.status, a.raw)
				}
				if token := a.text("operation"); token != "" {
					tokens[token] = true
				}
			}
			if created != tc.once || len(tokens) != 1-tc.once {
				t.Errorf("created %d times with %d tokens", created, len(tokens))
			}
		})
	}
	for name := range cases {
		if state := settled(t, p.url, instancePath(name)); state != "succeeded" {
			t.Errorf("%s ended %q", name, state)
		}
	}
	if n := len(things(t, data)); n != 2 {
		t.Errorf("%d things exist for two instances", n)
	}
}

// Two different updates at once: one wins, the other is told so (CONC-07).
func TestDifferentUpdatesAtOnce(t *testing.T) {
	p := start(t, t.TempDir(), credentials("LONGSHORE_DEMO_DELAY=1s")...)
	must(t, p.url, "PUT", instancePath("i"), provisionBody(planAsync, `{}`), 201)
	var all sync.WaitGroup
	answers := make([]answer, 2)
	for n := range answers {
		all.Go(func() {
			answers[n], _ = send(p.url, "PATCH", instancePath("i")+"?accepts_incomplete=true", fmt.Sprintf(`{"service_id":%q,"parameters":{"a":%d}}`, service, n))
		})
	}
	all.Wait()
	loser := answers[0]
	if answers[0].status == 202 {
		loser = answers[1]
	}
	if answers[0].status+answers[1].status != 202+422 || loser.text("error") != "ConcurrencyError" {
		t.Errorf("answers %d %s and %d %s", answers[0].status, answers[0].raw, answers[1].status, answers[1].raw)
	}
	if state := settled(t, p.url, instancePath("i")); state != "succeeded" {
		t.Errorf("state %q", state)
	}
}

// A DELETE sent while a provision runs ends with nothing left (DEPR-08).
func TestDeleteDuringProvision(t *testing.T) {
	data := t.TempDir()
	p := start(t, data, credentials("LONGSHORE_DEMO_DELAY=2s")...)
	path := instancePath("i")
	provision := must(t, p.url, "PUT", path+"?accepts_incomplete=true", provisionBody(planAsync, `{}`), 202).text("operation")
	waitFor(t, settleLimit, "the thing to be half made", func() bool { return len(things(t, data)) == 1 })
	must(t, p.url, "DELETE", path+"?accepts_incomplete=true&"+hints(planAsync), "", 202)
	if state := settled(t, p.url, path); state != "succeeded" {
		t.Errorf("the deletion ended %q", state)
	}
	if a := must(t, p.url, "GET", path+"/last_operation?operation="+provision, "", 200); a.text("state") != "failed" {
		t.Errorf("LOP-16: the provision now reads %s", a.raw)
	}
	must(t, p.url, "GET", path, "", 404)
	if left := things(t, data); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A DELETE that overtakes its PUT: the PUT's headers arrive, then the whole
// DELETE, then the rest of the PUT. It must begin nothing (ORB-03).
func TestDeleteOvertakesProvision(t *testing.T) {
	data := t.TempDir()
	p := start(t, data, credentials("LONGSHORE_DEMO_DELAY=100ms")...)
	body := provisionBody(planSync, `{}`)
	slow, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close() }()
	request, err := http.NewRequest("PUT", p.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(username, password)
	// The server says 100 when it has taken the headers and waits for the body.
	_, err = fmt.Fprintf(slow, "PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nX-Broker-API-Version: 2.17\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		instancePath("i"), request.Header.Get("Authorization"), len(body))
	if err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(slow)
	if line, err := reader.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("the broker did not take the headers: %q %v", line, err)
	}
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	must(t, p.url, "DELETE", instancePath("i")+"?"+hints(planSync), "", 410)
	if _, err := slow.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("the overtaken PUT was answered %d", response.StatusCode)
	}
	must(t, p.url, "GET", instancePath("i"), "", 404)
	if left := things(t, data); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	// PROV-28: the id can be used again by a request that is sent later.
	must(t, p.url, "PUT", instancePath("i"), body, 201)
}

// A canary in every secret place is in no log, and in clear in no file.
func TestNoSecretLeaks(t *testing.T) {
	const canary = "canary-31bf77"
	data := t.TempDir()
	p := start(t, data, credentials("LONGSHORE_DEMO_DELAY=50ms")...)
	secrets := []string{canary, password}
	for _, plan := range []string{planSync, planAsync} {
		path := instancePath("i-" + plan)
		must(t, p.url, "PUT", path+"?accepts_incomplete=true", provisionBody(plan, `{"password":"`+canary+`"}`), 201, 202)
		settled(t, p.url, path)
		must(t, p.url, "PATCH", path+"?accepts_incomplete=true", `{"service_id":"`+service+`","parameters":{"token":"`+canary+`"}}`, 200, 202)
		settled(t, p.url, path)
		must(t, p.url, "PATCH", path, `{"service_id":"`+service+`","parameters":{"delay_seconds":"`+canary+`"}}`, 400)
		bound := must(t, p.url, "PUT", path+"/service_bindings/b-"+plan, fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"parameters":{"p":%q}}`, service, plan, canary), 201)
		issued, _ := bound.body["credentials"].(map[string]any)["password"].(string)
		if issued == "" {
			t.Fatalf("no password was issued: the test proves nothing")
		}
		secrets = append(secrets, issued)
		must(t, p.url, "PUT", path, `{"broken":"`+canary, 400)
	}
	if code := p.stop(t, terminate); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if !strings.Contains(p.log.String(), "request") {
		t.Fatalf("nothing was logged: the test proves nothing")
	}
	for _, secret := range secrets {
		if strings.Contains(p.log.String()+p.out.String(), secret) {
			t.Errorf("printed a secret")
		}
	}
	files := 0
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		for _, secret := range secrets {
			// The platform's login is kept where a generated one is.
			if kept := d.Name() == "credentials.json" && secret == password; !kept && strings.Contains(string(raw), secret) {
				t.Errorf("%s holds a secret in clear", path)
			}
		}
		info, statErr := d.Info()
		if statErr == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v", path, info.Mode())
		}
		return err
	})
	if err != nil || files < 4 {
		t.Errorf("looked at %d files: %v", files, err)
	}
}

// Credentials that are not set are generated once, printed, and kept.
func TestGeneratedCredentials(t *testing.T) {
	data := t.TempDir()
	p := start(t, data)
	var kept struct{ Username, Password string }
	path := filepath.Join(data, "credentials.json")
	raw, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(raw, &kept) != nil || len(kept.Password) < 24 {
		t.Fatalf("credentials.json: %s %v", raw, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of credentials.json: %v %v", info.Mode(), err)
	}
	for range 2 {
		if !strings.Contains(p.out.String(), kept.Username) || !strings.Contains(p.out.String(), kept.Password) {
			t.Errorf("the credentials are not printed:\n%s", p.out)
		}
		request, err := http.NewRequest("GET", p.url+"/v2/catalog", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth(kept.Username, kept.Password)
		request.Header.Set("X-Broker-API-Version", "2.9")
		response, err := client.Do(request)
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("the printed credentials do not work: %v %v", response, err)
		}
		_ = response.Body.Close()
		p.kill()
		p = start(t, data)
	}
}
