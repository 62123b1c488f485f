package deployed_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

// BenchmarkColdStart measures a start, as far as a machine that is not Lambda can: it starts each of the real functions again
// and again, in turn, and asks one thing. No time fails it, since all of them depend on the machine; a function that ends, or
// answers with an error, does. `make bench-coldstart` runs it.
func BenchmarkColdStart(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("reads /proc, which only Linux has")
	}
	if testing.Short() {
		b.Skip("needs an emulated AWS, which -short leaves out")
	}
	cloud := newWatchedAWS(b)
	functions := coldStarts(b, cloud)
	taken := map[string][]start{}
	for b.Loop() {
		for _, f := range functions {
			taken[f.name] = append(taken[f.name], f.start(b, cloud))
		}
	}
	b.ReportMetric(0, "ns/op") // of all together, it says nothing
	for _, f := range functions {
		b.ReportMetric(middle(taken[f.name], ready), f.name+"-ready-ms")
	}
	report(os.Stdout, functions, taken)
}

// A watchedAWS hands calls on to the emulated AWS, and counts them.
type watchedAWS struct {
	url, secret, table, key string

	mu     sync.Mutex
	calls  int
	waited time.Duration
}

func newWatchedAWS(b *testing.B) *watchedAWS {
	b.Helper()
	cfg := emulator.Config(b)
	w := &watchedAWS{}
	w.table, w.key, w.secret = state(b, cfg)
	proxy := httputil.NewSingleHostReverseProxy(expect.Get(url.Parse(*cfg.BaseEndpoint))(b))
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		began := time.Now()
		proxy.ServeHTTP(rw, r)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls, w.waited = w.calls+1, w.waited+time.Since(began)
	}))
	b.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// count is what was called since the last time, and how long it took in all.
func (w *watchedAWS) count() (calls, waited float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls, waited = float64(w.calls), milliseconds(w.waited)
	w.calls, w.waited = 0, 0
	return calls, waited
}

// A coldFunction is a program, and what it is started with and asked.
type coldFunction struct {
	name, binary string
	source       string // of what it is built
	offerings    int    // in its catalog, of three plans each
	size         int64  // bytes
	environment  map[string]string
	event        any
	check        func(answer []byte) bool
}

func coldStarts(b *testing.B, cloud *watchedAWS) []coldFunction {
	b.Helper()
	const (
		machine     = "arn:aws:states:us-east-1:000000000000:stateMachine:m"
		provisioner = "arn:aws:lambda:us-east-1:000000000000:function:f"
	)
	absent := lifecycle.Token{Operation: strings.Repeat("a", lifecycle.OperationIDLength),
		Key: lifecycle.Key{Platform: "p", Instance: "absent"}}
	functions := []coldFunction{
		{name: "empty", source: "./testdata/empty", event: struct{}{},
			check: func(answer []byte) bool { return strings.TrimSpace(string(answer)) == "null" }},
		{name: "api", source: "../../../functions/api", offerings: 1,
			environment: map[string]string{
				app.EnvTable: cloud.table, app.EnvKey: cloud.key, app.EnvSecret: cloud.secret,
				app.EnvStateMachine: machine, app.EnvProvisioner: provisioner, app.EnvBroker: "identity-of-bench",
			},
			event: events.APIGatewayProxyRequest{
				HTTPMethod: "GET", Path: "/v2/catalog", Resource: "/{proxy+}",
				MultiValueHeaders: map[string][]string{
					"Authorization":        {"Basic " + base64.StdEncoding.EncodeToString([]byte("u:p"))},
					"X-Broker-API-Version": {"2.17"},
				},
				RequestContext: events.APIGatewayProxyRequestContext{Path: "/prod/v2/catalog", Stage: "prod", HTTPMethod: "GET"},
			},
			check: func(answer []byte) bool {
				var out events.APIGatewayProxyResponse
				return json.Unmarshal(answer, &out) == nil && out.StatusCode == http.StatusOK &&
					strings.Contains(out.Body, `"services"`)
			}},
		{name: "provisioner", source: "../../../functions/provisioner", offerings: 1,
			environment: map[string]string{app.EnvTable: cloud.table, app.EnvKey: cloud.key, app.EnvProviders: app.ProviderDemo},
			event:       stepfunctions.Input{Token: absent.String(), Attempt: 1}, // of an operation that does not exist
			check: func(answer []byte) bool {
				var out stepfunctions.Output
				return json.Unmarshal(answer, &out) == nil && out.Settled
			}},
		{name: "reaper", source: "../../../functions/reaper",
			environment: map[string]string{app.EnvTable: cloud.table, app.EnvStateMachine: machine, app.EnvStack: "bench",
				app.EnvBroker: "identity-of-bench", app.EnvProviders: app.ProviderDemo},
			event: events.CloudWatchEvent{Source: "aws.events", DetailType: "Scheduled Event", Detail: json.RawMessage("{}")},
			check: func(answer []byte) bool { // an empty table has no work
				var out reaper.Report
				return json.Unmarshal(answer, &out) == nil && out.Empty()
			}},
	}
	many := functions[1] // the API again
	many.name, many.offerings = manyName, 40
	functions = slices.Insert(functions, 2, many)
	for i := range functions {
		functions[i].build(b)
	}
	return functions
}

// manyName is the API with many offerings.
const manyName = "api-40"

// build builds a function as `make functions` does, for this machine, and lays its catalog beside it as infra does.
func (f *coldFunction) build(b *testing.B) {
	b.Helper()
	dir := b.TempDir()
	f.binary = filepath.Join(dir, "bootstrap")
	built(b, f.binary, f.source, "-trimpath", "-tags", "lambda.norpc", "-ldflags", "-s -w")
	f.size = expect.Get(os.Stat(f.binary))(b).Size()
	expect.OK(b, os.WriteFile(filepath.Join(dir, app.CatalogFile), manyOfferings(b, f.offerings), 0o600))
}

// manyOfferings is a compiled catalog of so many offerings, each with three of the demo's plans and their schemas.
func manyOfferings(b *testing.B, count int) []byte {
	b.Helper()
	demo := testkit.Demo().Offerings()[0]
	var all []catalog.Offering
	for i := range count {
		o := demo
		o.ID, o.Name, o.Plans = fmt.Sprintf("%s-%d", o.ID, i), fmt.Sprintf("%s-%d", o.Name, i), nil
		for _, p := range demo.Plans[:3] {
			p.ID = fmt.Sprintf("%s-%d", p.ID, i)
			o.Plans = append(o.Plans, p)
		}
		all = append(all, o)
	}
	return expect.Get(catalog.Encode(all, nil))(b)
}

// A start is what one start was measured at: milliseconds, and megabytes of 1024 kB, as Lambda counts them.
type start [peak + 1]float64

const (
	ready  = iota // from the start of the process until it asks for work
	cpu           // of all its threads, until then
	calls         // of AWS, until then
	waited        // how long they took
	rss           // then
	event         // from the event until its answer
	asking        // calls of AWS, for that
	peak          // the most memory that it had until it asks again
)

// patience is for a machine on which everything hangs.
const patience = time.Minute

// start starts the function, has it answer one event, and ends it.
func (f coldFunction) start(b *testing.B, cloud *watchedAWS) (s start) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	lambda := newRuntimeAPI(expect.Get(json.Marshal(f.event))(b))
	server := httptest.NewServer(lambda)
	defer server.Close()
	defer server.CloseClientConnections()

	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, f.binary)
	cmd.Env = f.environ(strings.TrimPrefix(server.URL, "http://"), cloud.url)
	cmd.Stdout, cmd.Stderr = &said, &said
	cloud.count()
	began := time.Now()
	expect.OK(b, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		if err := <-ended; b.Failed() {
			b.Logf("%s has ended with %v: %s", f.name, err, said.String())
		}
	}()
	next := func(what string, from <-chan moment) moment {
		b.Helper()
		select {
		case m := <-from:
			expect.OK(b, m.err, what)
			return m
		case err := <-ended:
			ended <- err
			b.Fatalf("waiting until %s %s: it has ended", f.name, what)
			return moment{}
		}
	}

	s[ready] = milliseconds(next("asks for work", lambda.asked).at.Sub(began))
	s[cpu], s[rss] = processed(b, cmd.Process.Pid), memory(b, cmd.Process.Pid, "VmRSS")
	s[calls], s[waited] = cloud.count()

	given := time.Now()
	close(lambda.give)
	answered := next("answers", lambda.answered)
	s[event] = milliseconds(answered.at.Sub(given))
	if !f.check(answered.body) {
		b.Fatalf("%s answers %s", f.name, answered.body)
	}
	next("asks for more", lambda.asked)
	s[asking], _ = cloud.count()
	s[peak] = memory(b, cmd.Process.Pid, "VmHWM")
	return s
}

// environ is what Lambda gives a function, and the stack's settings.
func (f coldFunction) environ(runtimeAPI, endpoint string) []string {
	set := []string{
		"AWS_LAMBDA_RUNTIME_API=" + runtimeAPI, "AWS_LAMBDA_FUNCTION_NAME=" + f.name, "AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"_HANDLER=bootstrap", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_SESSION_TOKEN=test",
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=en_US.UTF-8", "TZ=:UTC",
		"AWS_ENDPOINT_URL=" + endpoint, "AWS_ACCOUNT_ID=000000000000",
	}
	for name, value := range f.environment {
		set = append(set, name+"="+value)
	}
	return set
}

// A moment is when a function did something.
type moment struct {
	at   time.Time
	body []byte
	err  error
}

// A runtimeAPI is the side of Lambda that a function talks to. It has one event.
type runtimeAPI struct {
	*http.ServeMux
	asked, answered chan moment
	give            chan struct{} // closed when the event may be given
}

func newRuntimeAPI(event []byte) *runtimeAPI {
	const version = "/2018-06-01/runtime/"
	l := &runtimeAPI{
		ServeMux: http.NewServeMux(), asked: make(chan moment, 2), answered: make(chan moment, 1), give: make(chan struct{}),
	}
	var once sync.Once
	l.HandleFunc("GET "+version+"invocation/next", func(w http.ResponseWriter, r *http.Request) {
		l.asked <- moment{at: time.Now()}
		var give chan struct{} // the second time there is nothing to give
		once.Do(func() { give = l.give })
		select {
		case <-give:
		case <-r.Context().Done():
			return
		}
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", "request")
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(app.APITimeout).UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:us-east-1:000000000000:function:f")
		_, _ = w.Write(event) // whether it arrives shows in the answer
	})
	l.HandleFunc("POST "+version+"invocation/request/{how}", func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, err := io.ReadAll(r.Body)
		if r.PathValue("how") == "error" {
			err = errors.Join(fmt.Errorf("it has failed: %s", body), err)
		}
		l.answered <- moment{at, body, err}
		w.WriteHeader(http.StatusAccepted)
	})
	return l
}

// memory is a member of a process's status.
func memory(b *testing.B, pid int, name string) float64 {
	b.Helper()
	for line := range strings.Lines(string(expect.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(b))) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kB := expect.Get(strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB"))))(b)
			return float64(kB) / 1024
		}
	}
	b.Fatalf("process %d has no %s", pid, name)
	return 0
}

// processed is the time that a process's threads have run for; Go ends none.
func processed(b *testing.B, pid int) float64 {
	b.Helper()
	threads := expect.Get(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)))(b)
	if len(threads) == 0 {
		b.Fatalf("process %d has no threads", pid)
	}
	var all time.Duration
	for _, path := range threads {
		ran, _, _ := strings.Cut(string(expect.Get(os.ReadFile(path))(b)), " ")
		all += time.Duration(expect.Get(strconv.ParseInt(ran, 10, 64))(b, path))
	}
	return milliseconds(all)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ordered is one measure of each start, from the smallest to the largest.
func ordered(starts []start, measure int) (all []float64) {
	for _, s := range starts {
		all = append(all, s[measure])
	}
	slices.Sort(all)
	return all
}

// middle is their median, the lower of two.
func middle(starts []start, measure int) float64 { return ordered(starts, measure)[(len(starts)-1)/2] }

// report writes one table, in Markdown. Where it names one number of many, it is the median.
func report(w io.Writer, functions []coldFunction, taken map[string][]start) {
	least := taken[functions[0].name]
	_, _ = fmt.Fprintf(w, "\n%s/%s, %d processors, %s, %d starts of each\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		runtime.Version(), len(least))
	_, _ = fmt.Fprintln(w, "| function | binary MB | ready ms: min / median / max | to empty | CPU ms | AWS calls: n, ms "+
		"| first event: ms, AWS calls | memory MB: ready / peak | to empty |")
	_, _ = fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, f := range functions {
		times := ordered(taken[f.name], ready)
		m := func(measure int) float64 { return middle(taken[f.name], measure) }
		_, _ = fmt.Fprintf(w,
			"| %s | %.1f | %.1f / %.1f / %.1f | ×%.1f | %.1f | %.0f, %.1f | %.1f, %.0f | %.1f / %.1f | ×%.1f |\n",
			f.name, float64(f.size)/(1<<20), times[0], m(ready), times[len(times)-1], m(ready)/middle(least, ready), m(cpu),
			m(calls), m(waited), m(event), m(asking), m(rss), m(peak), m(rss)/middle(least, rss))
	}
	// On a busy machine the fastest start says more than the median.
	for what, of := range map[string]func([]start, int) float64{
		"the medians":        middle,
		"the fastest starts": func(starts []start, measure int) float64 { return ordered(starts, measure)[0] },
	} {
		empty, one, many := of(least, ready), of(taken["api"], ready), of(taken[manyName], ready)
		_, _ = fmt.Fprintf(w, "\nBy %s, the API is ready within ×%.2f of an empty function; with 40 offerings of three plans "+
			"within ×%.2f of that, and within ×%.2f of what it needs with one.\n", what, one/empty, many/empty, many/one)
	}
	_, _ = fmt.Fprintln(w)
}
