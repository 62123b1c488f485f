package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testserver"
)

// binary is the program, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "longshore-e2e-")
	if err != nil {
		log.Fatal(err)
	}
	binary = filepath.Join(dir, "longshore")
	build := exec.Command("go", "build", "-trimpath", "-gcflags=maragu.dev/gomponents/...=-l", "-ldflags", "-s -w",
		"-o", binary, "../../../cmd/longshore") // as make build does
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		log.Fatalf("building the program: %v\n%s", err, out)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// A template that calls a method by its name, as cobra's do once one is set, keeps the
// linker from leaving out what nobody calls: the program was 74 MB then.
func TestTheProgramIsSmall(t *testing.T) {
	const most = 32e6
	if info := expect.Get(os.Stat(binary))(t); info.Size() > most {
		t.Errorf("the program has %d bytes, over %d", info.Size(), int(most))
	}
}

const username, password = "platform", "e2e-password-8d1f"

// The ids of the demo's offerings never change once published.
const (
	service     = "f95c6dc5-becc-415a-96b6-c5997d1a68fe"
	planSync    = "d574c774-74a4-427c-9694-41484f478244"
	planAsync   = "4dcb3699-4e64-40fe-aa3b-ec0d58a96028"
	async       = "?accepts_incomplete=true"
	startLimit  = 2 * time.Minute
	settleLimit = 5 * time.Minute
)

// A process is one run of `longshore serve`.
type process struct {
	cmd      *exec.Cmd
	url      string
	out, log *testserver.Output
	ended    chan struct{}
}

// sources lists the folders that the program is built of. The go command keeps a test's result until what the test is made
// of, or has read, changes: without this, a program that has changed would be passed unseen.
var sources = sync.OnceValue(func() error {
	var errs error
	for _, folder := range []string{"../../../cmd", "../../../internal", "../../../offerings"} {
		errs = errors.Join(errs, filepath.WalkDir(folder, func(_ string, _ fs.DirEntry, err error) error { return err }))
	}
	return errs
})

// command prepares a run of the program with a clean environment.
func command(env []string, args ...string) *exec.Cmd {
	if err := sources(); err != nil {
		panic(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	return cmd
}

func credentials(extra ...string) []string {
	return append([]string{"LONGSHORE_USERNAME=" + username, "LONGSHORE_PASSWORD=" + password}, extra...)
}

var urlLine = regexp.MustCompile(`URL\s+(http://\S+)`)

// start runs the broker on a free port and waits until it answers.
func start(t testing.TB, data string, env ...string) *process {
	t.Helper()
	return startWith(t, env, "--data", data)
}

func startWith(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	return startCommand(t, command(env, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
}

func startCommand(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, out: &testserver.Output{}, log: &testserver.Output{}, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.log
	expect.OK(t, p.cmd.Start(), "starting the broker")
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		if p.kill(); t.Failed() {
			t.Logf("the broker's log:\n%s", p.log)
		}
	})
	waitFor(t, startLimit, "the broker to print its URL", func() bool {
		select {
		case <-p.ended:
			t.Fatalf("the broker ended at its start:\n%s", p.out)
		default:
		}
		m := urlLine.FindStringSubmatch(p.out.String())
		if m == nil {
			return false
		}
		p.url = m[1]
		return true
	})
	return p
}

// kill ends the process as kill -9 does, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// ends requires that the process comes to a good end on a signal.
func (p *process) ends(t testing.TB, signal os.Signal) {
	t.Helper()
	expect.OK(t, p.cmd.Process.Signal(signal), "signalling the broker")
	select {
	case <-p.ended:
	case <-time.After(settleLimit):
		t.Fatalf("the broker did not end on %v", signal)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("on %v the broker ended with status %d", signal, code)
	}
}

// waitFor polls until the condition holds. Other processes have clocks of their own, so that there is nothing better to wait on.
// It looks again after a quarter of the time that it has waited, and at least five times a second.
func waitFor(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	pause, deadline := 5*time.Millisecond, time.Now().Add(limit)
	for ; !holds(); pause = min(pause*5/4, 200*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", limit, what)
		}
		time.Sleep(pause)
	}
}

// An answer is what the broker said.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

func (a answer) text(member string) string {
	s, _ := a.body[member].(string)
	return s
}

var client = &http.Client{
	Timeout:       2 * time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableKeepAlives: true}, // the broker is killed under it
}

// asked is a request with good credentials, and with headers: an empty one is left out.
func asked(method, url, body string, headers map[string]string) (*http.Request, error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth(username, password)
	request.Header.Set("X-Broker-API-Version", "2.17")
	for name, value := range headers {
		if request.Header.Del(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	return request, nil
}

// ask makes such a request. An error means that no answer came, or one whose body is no JSON object.
func ask(method, url, body string, headers map[string]string) (answer, error) {
	request, err := asked(method, url, body, headers)
	if err != nil {
		return answer{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: response.StatusCode, header: response.Header, raw: string(raw)}
	if json.Unmarshal(raw, &a.body) != nil || a.body == nil {
		return a, fmt.Errorf("ERR-01: %s %s: %d with a body that is no JSON object: %q", method, url, a.status, raw)
	}
	return a, nil
}

func send(base, method, path, body string) (answer, error) { return ask(method, base+path, body, nil) }

// must sends, and requires one of the statuses.
func must(t testing.TB, base, method, path, body string, statuses ...int) answer {
	t.Helper()
	a := expect.Get(send(base, method, path, body))(t, method, path)
	return a.is(t, method+" "+path, statuses...)
}

// is requires one of the statuses.
func (a answer) is(t testing.TB, what string, statuses ...int) answer {
	t.Helper()
	if !slices.Contains(statuses, a.status) {
		t.Fatalf("%s: status %d, want %v: %s", what, a.status, statuses, a.raw)
	}
	return a
}

func instancePath(id string) string { return "/v2/service_instances/" + id }
func bindingPath(instance, id string) string {
	return instancePath(instance) + "/service_bindings/" + id
}

// planBody is the body of a request about a plan, and orderBody that of an order of one. More begins with a comma.
func planBody(service, plan, more string) string {
	return fmt.Sprintf(`{"service_id":%q,"plan_id":%q%s}`, service, plan, more)
}

func orderBody(service, plan, more string) string { return planBody(service, plan, ","+place+more) }

// provisionBody orders a plan of the demo.
func provisionBody(plan, parameters string) string {
	return orderBody(service, plan, `,"parameters":`+parameters)
}

func idsOf(service, plan string) string { return "service_id=" + service + "&plan_id=" + plan }
func hints(plan string) string          { return idsOf(service, plan) } // of the demo

// settled polls until the latest operation has ended, and gives its state; "gone" for 410.
func settled(t testing.TB, base, path string) string {
	t.Helper()
	state := ""
	waitFor(t, settleLimit, "the last operation of "+path, func() bool {
		a, err := send(base, "GET", path+"/last_operation", "")
		if err != nil {
			return false
		}
		state = a.text("state")
		if a.status == http.StatusGone {
			state = "gone"
		}
		return state != "in progress"
	})
	return state
}

// succeeds requires that the latest operation comes to a good end.
func (p *process) succeeds(t testing.TB, path string) {
	t.Helper()
	if state := settled(t, p.url, path); state != "succeeded" {
		t.Fatalf("the last operation of %s has %s", path, state)
	}
}

// begun waits until the demo has answered a step of the latest operation: a thing is half made.
func (p *process) begun(t testing.TB, path string) {
	t.Helper()
	waitFor(t, settleLimit, path+" to be half made", func() bool {
		a, err := send(p.url, "GET", path+"/last_operation", "")
		return err == nil && strings.HasPrefix(a.text("description"), "Creating the ")
	})
}

var interrupt, terminate os.Signal = os.Interrupt, syscall.SIGTERM
