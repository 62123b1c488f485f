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
			token := must(t, p.url, "PUT", instancePath("i")+"?accepts_incomplete=true", provisionBody(planAsync, `{}`),
				202).text("operation")
			if code := p.stop(t, signal); code != 0 {
				t.Errorf("exit status %d:\n%s", code, p.log)
			}
			p = start(t, data, env...)
			if a := must(t, p.url, "GET", instancePath("i")+"/last_operation?operation="+token, "",
				200); a.text("state") == "failed" {
				t.Errorf("the operation failed: %s", a.raw)
			}
			expect.Same(t, "state", "succeeded", settled(t, p.url, instancePath("i")))
		})
	}
}

// A DELETE that overtakes its PUT: the PUT's headers arrive, then the whole
// DELETE, then the rest of the PUT. It must begin nothing (ORB-03).
func TestDeleteOvertakesProvision(t *testing.T) {
	data := t.TempDir()
	p := start(t, data, credentials("LONGSHORE_DEMO_DELAY=100ms")...)
	body := provisionBody(planSync, `{}`)
	slow := expect.Get(net.Dial("tcp", strings.TrimPrefix(p.url, "http://")))(t)
	defer func() { _ = slow.Close() }()
	request, err := http.NewRequest("PUT", p.url, nil)
	expect.OK(t, err)
	request.SetBasicAuth(username, password)
	// The server says 100 when it has taken the headers and waits for the body.
	expect.Get(fmt.Fprintf(slow,
		"PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nX-Broker-API-Version: 2.17\r\nContent-Length: %d\r\nExpect: "+
			"100-continue\r\n\r\n",
		instancePath("i"), request.Header.Get("Authorization"), len(body)))(t)
	reader := bufio.NewReader(slow)
	if line, err := reader.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("the broker did not take the headers: %q %v", line, err)
	}
	expect.Get(reader.ReadString('\n'))(t)
	must(t, p.url, "DELETE", instancePath("i")+"?"+hints(planSync), "", 410)
	expect.Get(slow.Write([]byte(body)))(t)
	response := expect.Get(http.ReadResponse(reader, request))(t)
	defer func() { _ = response.Body.Close() }()
	expect.Same(t, "the overtaken PUT was answered", http.StatusUnprocessableEntity, response.StatusCode)
	must(t, p.url, "GET", instancePath("i"), "", 404)
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
		must(t, p.url, "PATCH", path+"?accepts_incomplete=true",
			`{"service_id":"`+service+`","parameters":{"token":"`+canary+`"}}`, 200, 202)
		settled(t, p.url, path)
		must(t, p.url, "PATCH", path, `{"service_id":"`+service+`","parameters":{"delay_seconds":"`+canary+`"}}`, 400)
		bound := must(t, p.url, "PUT", path+"/service_bindings/b-"+plan,
			fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"parameters":{"p":%q}}`, service, plan, canary), 201)
		issued, _ := bound.body["credentials"].(map[string]any)["password"].(string)
		if issued == "" {
			t.Fatalf("no password was issued: the test proves nothing")
		}
		secrets = append(secrets, issued)
		must(t, p.url, "PUT", path, `{"broken":"`+canary, 400)
	}
	expect.Same(t, "exit status", 0, p.stop(t, terminate))
	if !strings.Contains(p.log.String(), "request") {
		t.Fatalf("nothing was logged: the test proves nothing")
	}
	expect.Never(t, "what is printed", p.log.String()+p.out.String(), secrets...)
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
		request := expect.Get(http.NewRequest("GET", p.url+"/v2/catalog", nil))(t)
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
