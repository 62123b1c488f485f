package e2e_test

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// Stopped in the middle of an operation, started again: it goes on.
func TestStoppedOperationsGoOn(t *testing.T) {
	for name, signal := range map[string]os.Signal{"Interrupt": interrupt, "Terminate": terminate} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			env := credentials("LONGSHORE_DEMO_DELAY=700ms")
			p := start(t, data, env...)
			path := instancePath("i")
			token := must(t, p.url, "PUT", path+async, provisionBody(planAsync, `{}`), 202).text("operation")
			p.ends(t, signal)
			p = start(t, data, env...)
			if a := must(t, p.url, "GET", path+"/last_operation?operation="+token, "", 200); a.text("state") == "failed" {
				t.Errorf("the operation failed: %s", a.raw)
			}
			expect.Same(t, "state", "succeeded", settled(t, p.url, path))
		})
	}
}

// A DELETE that overtakes its PUT: the PUT's headers arrive, then the whole
// DELETE, then the rest of the PUT. It must begin nothing (ORB-03).
func TestDeleteOvertakesProvision(t *testing.T) {
	p := start(t, t.TempDir(), credentials("LONGSHORE_DEMO_DELAY=100ms")...)
	path, body := instancePath("i"), provisionBody(planSync, `{}`)
	request := expect.Get(asked("PUT", p.url+path, "", map[string]string{"Expect": "100-continue"}))(t)
	held, rest := io.Pipe()
	request.Body, request.ContentLength = held, int64(len(body))
	answered := make(chan int, 1)
	go func() {
		slow := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: settleLimit}}
		response, err := slow.Do(request)
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	// The client reads once the server has said 100: it has taken the headers, and waits for the body.
	expect.Get(io.WriteString(rest, body[:1]))(t)
	must(t, p.url, "DELETE", path+"?"+hints(planSync), "", 410)
	expect.Get(io.WriteString(rest, body[1:]))(t)
	expect.OK(t, rest.Close())
	expect.Same(t, "the overtaken PUT was answered", http.StatusUnprocessableEntity, <-answered)
	must(t, p.url, "GET", path, "", 404)
	// PROV-28: the id can be used again by a request that is sent later.
	must(t, p.url, "PUT", path, body, 201)
}

// A canary in every secret place is in no log (ERR-12), and in clear in no file, whatever fails.
func TestNoSecretLeaks(t *testing.T) {
	const canary, name = "canary-31bf77", "canary-c11" // a history has the names of parameters
	data := t.TempDir()
	p := start(t, data, credentials("LONGSHORE_DEMO_DELAY=20ms")...)
	r := newRun(t, p.url, catalogIDs(t, p.url))
	secrets := []string{canary, password}
	for plan, status := range map[string][2]int{"sync": {201, 200}, "async": {202, 202}} {
		one := r.another()
		one.prove(httpCase{asks: "PUT I" + async, body: demoOf(plan, `{"password":"`+canary+`","`+name+`":true}`),
			status: status[0]})
		p.succeeds(t, one.path("I"))
		one.prove(httpCase{asks: "PATCH I" + async, body: changing(`{"token":"` + canary + `"}`), status: status[1]})
		p.succeeds(t, one.path("I"))
		one.prove(httpCase{asks: "PATCH I", body: changing(`{"delay_seconds":"` + canary + `"}`), status: 400})
		a := one.prove(httpCase{asks: "PUT I/B", status: 201,
			body: planBody("$demo", "$"+plan, `,"parameters":{"p":"`+canary+`"}`)})
		issued, _ := a.body["credentials"].(map[string]any)["password"].(string)
		if issued == "" {
			t.Fatalf("no password was issued: the test proves nothing")
		}
		secrets = append(secrets, issued)
		one.prove(httpCase{asks: "PUT I", body: `{"broken":"` + canary, status: 400})
	}
	failing := `"parameters":{"password":"` + canary + `","fail":true},"context":{"platform":"x","secret":"` + canary + `"}`
	r.another().prove(httpCase{asks: "PUT I", body: with(demoOf("sync", ""), failing), status: 500})
	r.another().prove(httpCase{asks: "PUT I", status: 422,
		body: with(demoOf("sync", ""), failing+`,"maintenance_info":{"version":"9.9.9"}`)})
	r.another().prove(httpCase{asks: "PUT I", body: with(demoOf("schema", ""), failing), status: 400})
	r.prove(httpCase{given: ready, asks: "PATCH I", body: `{"service_id":"$demo",` + failing + `}`, status: 500})
	r.prove(httpCase{asks: "PUT I/B", body: with(bind1, failing), status: 500})
	late := r.another()
	late.prove(httpCase{asks: "PUT I" + async, body: with(demoOf("async", ""), failing), status: 202})
	expect.Same(t, "it ended", "failed", settled(t, p.url, late.path("I")))
	p.ends(t, terminate)
	expect.Says(t, "the log", p.log.String(), "request", "result=succeeded")
	expect.Same(t, "failed operations that are logged", 4, strings.Count(p.log.String(), "result=failed"))
	expect.Never(t, "what is printed", p.log.String()+p.out.String(), append(secrets, name)...)
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
		expect.Says(t, "what is printed", p.out.String(), kept.Username, kept.Password)
		expect.Same(t, "the printed credentials are answered", 200, login(t, p.url, kept.Username, kept.Password))
		p.kill()
		p = start(t, data)
	}
}
