//go:build deployed

package localstack_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/servicestest"
)

// Where `make localstack-up` runs, `make run` offers AWS services, whether policies are
// enforced or not: a bucket is made, bound, used with what was handed out, and removed.
func TestRunBesideTheEmulator(t *testing.T) {
	t.Parallel()
	told := expect.Get(exec.CommandContext(t.Context(), "bash", "-c", `eval "$(bash local.sh)"; env -0`).Output())(t)
	env := strings.Split(string(bytes.TrimRight(told, "\x00")), "\x00")
	if !slices.Contains(env, "LONGSHORE_AWS=true") {
		t.Fatalf("local.sh does not know that an emulator runs: %v", env)
	}
	p := startedBeside(t, env)
	at := slices.IndexFunc(servicestest.Services(), func(s servicestest.Service) bool { return s.Offering == "s3" })
	plan := servicestest.Services()[at].Deployed()
	service, id := p.planOf(t, "s3", plan.Name)
	path := instancePath("i")
	binding, ids := path+"/service_bindings/b", hintsOf(service, id)
	p.ends(t, "PUT", path, "", order(service, id, ""))
	p.ends(t, "PUT", binding, "", bind(service, id))
	got := texts(p.call(t, "GET", binding, "", 200).body["credentials"])
	endpoint := said(t, strings.Join(env, "\n"), `(?m)^AWS_ENDPOINT_URL=(.*)$`)
	use := func() error { return plan.Use(t.Context(), servicestest.Config(endpoint, got), got) }
	expect.Fails(t, "using the credentials", nil, use())
	p.ends(t, "DELETE", binding, ids, "")
	enforced := endpoint != os.Getenv("AWS_ENDPOINT_URL") // then it is a gateway
	if err := use(); servicestest.Refused(err) != enforced {
		t.Errorf("refused after the unbind must be %v: %v", enforced, err)
	}
	p.ends(t, "DELETE", path, ids, "")
}

// startedBeside runs the broker by itself, as `make run` does, over a folder of its own.
func startedBeside(t *testing.T, env []string) platform {
	t.Helper()
	p := platform{username: "broker", password: "a password for a test alone"}
	data := t.TempDir()
	longshore := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), program, append(args, "--data", data)...)
		c.Env = append(slices.Clone(env), "LONGSHORE_USERNAME="+p.username, "LONGSHORE_PASSWORD="+p.password)
		return c
	}
	said, err := longshore("aws", "bootstrap", "--emulated").CombinedOutput()
	expect.OK(t, err, string(said))
	serve := longshore("serve", "--listen", "127.0.0.1:0")
	var log bytes.Buffer
	serve.Stderr = &log
	out := expect.Get(serve.StdoutPipe())(t)
	expect.OK(t, serve.Start())
	t.Cleanup(func() {
		_ = serve.Process.Kill() // it may have ended
		_ = serve.Wait()
		if t.Failed() {
			t.Logf("the broker's log:\n%s", log.String())
		}
	})
	line := regexp.MustCompile(`URL\s+(http://\S+)`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := line.FindStringSubmatch(lines.Text()); found != nil {
			p.url = found[1]
			return p
		}
	}
	t.Fatalf("the broker ended at its start:\n%s", log.String())
	return p
}
