package deployed_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/deployed/api"
	"github.com/longshore/longshore/internal/app/deployed/provisioner"
	sweeper "github.com/longshore/longshore/internal/app/deployed/reaper"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/gateway"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/provider/remote"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/test/dynamotest"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

// here stands in for Step Functions and Lambda: executions are kept for the
// test to drive, and the provisioner is called in this process.
type here struct {
	provisioner provisioner.Steps
	inside      *remote.Handler // the function inside a VPC; nil for none
	called      int             // how often that was called
	started     []stepfunctions.Input
	invoked     int // how often the API called the provisioner
}

const callsARN = "arn:aws:lambda:us-east-1:000000000000:function:calls"

func (h *here) StartExecution(_ context.Context, in *sfn.StartExecutionInput,
	_ ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	var input stepfunctions.Input
	if err := json.Unmarshal([]byte(*in.Input), &input); err != nil {
		return nil, err
	}
	h.started = append(h.started, input)
	return &sfn.StartExecutionOutput{}, nil
}

func (h *here) Invoke(ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	if *in.FunctionName == callsARN {
		h.called++
		payload, err := h.inside.Invoke(ctx, in.Payload)
		return &lambda.InvokeOutput{Payload: payload}, err
	}
	var input stepfunctions.Input
	if err := json.Unmarshal(in.Payload, &input); err != nil {
		return nil, err
	}
	h.invoked++
	out, err := h.provisioner(ctx, input)
	if err != nil {
		return nil, err
	}
	payload, err := json.Marshal(out)
	return &lambda.InvokeOutput{Payload: payload}, err
}

// state is a table, a key, and the secret of a platform u with the password p, in an emulated AWS.
func state(t testing.TB, cfg aws.Config) (table, key, secret string) {
	t.Helper()
	made := expect.Get(kms.NewFromConfig(cfg).CreateKey(t.Context(), &kms.CreateKeyInput{}))(t)
	kept := expect.Get(secretsmanager.NewFromConfig(cfg).CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String(emulator.Name("secret")), SecretString: aws.String(`{"username":"u","password":"p"}`),
	}))(t)
	return dynamotest.NewTable(t, dynamodb.NewFromConfig(cfg)), *made.KeyMetadata.Arn, *kept.ARN
}

// order is the body that orders a plan, and has more members.
func order(service, plan, more string) string {
	return fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"%s}`, service, plan, more)
}

func binding(service, plan string) string {
	return fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, service, plan)
}

// together are the three functions' handlers over an emulated DynamoDB, KMS, and Secrets Manager: the same rooms as embedded,
// wired for AWS. Their deployment is tested elsewhere.
type together struct {
	testing.TB
	here   *here
	api    gateway.Handler
	sweep  func(context.Context) (reaper.Report, error)
	table  *datakey.Vault
	counts bytes.Buffer // what the functions measured
}

func newTogether(t testing.TB, cfg aws.Config, more ...map[string]string) *together {
	t.Helper()
	f := &together{TB: t, here: &here{}}
	table, key, secret := state(t, cfg)
	set := map[string]string{
		app.EnvTable: table, app.EnvKey: key, app.EnvSecret: secret,
		app.EnvStateMachine: "arn:aws:states:us-east-1:000000000000:stateMachine:m",
		app.EnvProvisioner:  "arn:aws:lambda:us-east-1:000000000000:function:f",
		app.EnvProviders:    app.ProviderDemo, app.EnvDemoDelay: "200ms", app.EnvStack: "test",
		app.EnvBroker: "identity-of-test",
	}
	for _, more := range more {
		maps.Copy(set, more)
	}
	quiet := slog.New(slog.DiscardHandler)
	parts := deployed.Parts{Config: cfg, Getenv: func(name string) string { return set[name] }, Log: quiet, Starter: f.here,
		Invoker: f.here, Metrics: metrics.New("test", &f.counts, time.Now),
		Offered: func() (*catalog.Catalog, error) { return offeringfiles.Load("") }}
	if set[app.EnvInVPC] != "" {
		// It is told nothing of records, keys or secrets.
		told := deployed.Parts{Log: quiet, Getenv: func(name string) string {
			return map[string]string{app.EnvRole: app.RoleCalls, app.EnvInVPC: set[app.EnvInVPC], app.EnvStack: "test",
				app.EnvBroker: set[app.EnvBroker], app.EnvDemoDelay: "200ms"}[name]
		}}
		f.here.inside = expect.Get(provisioner.New(t.Context(), told))(t).(*remote.Handler)
	}
	f.table = datakey.New(parts.Records(), parts.Vault())
	f.api = expect.Get(api.New(t.Context(), parts))(t)
	f.here.provisioner = expect.Get(provisioner.NewSteps(parts))(t)
	f.sweep = expect.Get(sweeper.New(t.Context(), parts))(t)
	return f
}

// send has the API answer a request as the gateway hands it over.
func (f *together) send(method, path, query, body string, headers map[string][]string) events.APIGatewayProxyResponse {
	f.Helper()
	return expect.Get(f.api(f.Context(), events.APIGatewayProxyRequest{
		HTTPMethod: method, Path: path, Body: body, MultiValueHeaders: headers,
		MultiValueQueryStringParameters: expect.Get(url.ParseQuery(query))(f),
		RequestContext: events.APIGatewayProxyRequestContext{Stage: "prod", Path: "/prod" + path,
			RequestTimeEpoch: time.Now().UnixMilli()},
	}))(f)
}

func (f *together) call(method, path, query, body string, status int) map[string]any {
	f.Helper()
	encoded := base64.StdEncoding.EncodeToString
	response := f.send(method, path, query, body, map[string][]string{
		"Authorization": {"Basic " + encoded([]byte("u:p"))}, "X-Broker-API-Version": {"2.17"},
		// A platform says with each request who asks.
		"X-Broker-API-Originating-Identity": {"cloudfoundry " + encoded([]byte(`{"user_id":"of-a-person"}`))},
	})
	if response.StatusCode != status {
		f.Fatalf("%s %s: %d %s, want %d", method, path, response.StatusCode, response.Body, status)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(response.Body), &out); method != "HEAD" && err != nil ||
		method == "HEAD" && response.Body != "" {
		f.Fatalf("%s %s: %q", method, path, response.Body)
	}
	if location := response.MultiValueHeaders["Location"]; status == 202 &&
		(len(location) != 1 || !strings.HasPrefix(location[0], "/prod/operations/")) {
		f.Errorf("NFR-04: Location %v", location)
	}
	return out
}

// page opens the page of an instance by a link; look loads it.
func (f *together) page(instance string) (look func() events.APIGatewayProxyResponse) {
	f.Helper()
	k := lifecycle.Key{Platform: "default", Instance: instance}
	until := time.Now().Add(time.Minute)
	link := expect.Get(pages.Link{Scope: pages.ScopeOf(k), ID: "once", Until: until}.Seal(f.Context(), f.table))(f)
	entered := f.send("POST", "/dashboard/enter", "", url.Values{"link": {link}}.Encode(),
		map[string][]string{"Content-Type": {"application/x-www-form-urlencoded"}})
	if len(entered.MultiValueHeaders["Set-Cookie"]) != 1 {
		f.Fatalf("the link is answered %d: %s", entered.StatusCode, entered.Body)
	}
	session, _, _ := strings.Cut(entered.MultiValueHeaders["Set-Cookie"][0], ";")
	at, query, _ := strings.Cut(pages.InstancePath(k), "?")
	return func() events.APIGatewayProxyResponse {
		return f.send("GET", at, query, "", map[string][]string{"Cookie": {session}})
	}
}

// facts looks at the page of an instance twice: the first look has facts asked for, and the second shows them.
func (f *together) facts(instance string, want ...string) {
	f.Helper()
	look := f.page(instance)
	first := look()
	expect.Says(f, fmt.Sprintf("the first look, answered %d", first.StatusCode), first.Body, "Not known yet")
	invoked, second := f.here.invoked, look()
	expect.Says(f, fmt.Sprintf("the page, answered %d", second.StatusCode), second.Body, append(want, "As of")...)
	expect.Same(f, "calls after a second look within a minute", invoked, f.here.invoked)
}

// drive does what the state machine does, and counts the steps that left something to do and those that ended an execution.
func (f *together) drive() (rounds, executions int) {
	f.Helper()
	for ; len(f.here.started) > 0; executions++ {
		in := f.here.started[0]
		f.here.started = f.here.started[1:]
		for tries := 0; ; tries++ {
			_, err := f.here.provisioner(f.Context(), in)
			if err == nil {
				break
			}
			if pending := (stepfunctions.Pending{}); !errors.As(err, &pending) || tries == 20 {
				f.Fatal(err)
			}
			rounds++
		}
	}
	return rounds, executions
}

func TestFunctionsTogether(t *testing.T) { newTogether(t, emulator.Config(t)).live() }

// live goes through the life of an instance and a binding. Operators see of it that each operation began and ended once, and no
// text of a user.
func (f *together) live() {
	f.Helper()
	t, call, drive := f.TB, f.call, f.drive
	service, plan := f.plan("demo", "async")
	const path = "/v2/service_instances/canary-5d%2Fb"
	put := func(parameters string) string {
		return strings.Replace(order(service, plan, `,"parameters":`+parameters), `"o"`, `"canary-5d"`, 1)
	}
	f.counts.Reset()
	created := call("PUT", path, "accepts_incomplete=true", put(`{"note":"canary-5d"}`), 202)
	call("PUT", path, "accepts_incomplete=true", put(`{"note":"canary-5d"}`), 202) // the same one
	expect.Same[any](t, "the first state", "in progress", call("GET", path+"/last_operation", "", "", 200)["state"])
	drive()
	ended := call("GET", path+"/last_operation", "operation="+created["operation"].(string), "", 200)
	expect.Same[any](t, "the state", "succeeded", ended["state"])
	f.facts("canary-5d/b", "Demo", "nowhere", "16 kB")
	// A bind is synchronous: the API calls the provisioner and waits.
	bound := call("PUT", path+"/service_bindings/b", "", binding(service, plan), 201)
	expect.Same(t, "a binding without credentials", false, bound["credentials"] == nil)
	call("DELETE", path, "accepts_incomplete=true&service_id="+service+"&plan_id="+plan, "", 202)
	drive()
	call("GET", path, "", "", 404)
	call("PUT", "/v2/service_instances/other", "accepts_incomplete=true", put(`{"fail":true}`), 202)
	drive()
	expect.Same(t, "nothing was due", true, expect.Get(f.sweep(t.Context()))(t).Empty())
	call("GET", "/nope", "", "", 404)
	call("HEAD", "/v2/catalog", "", "", 200)
	expect.Same(t, "counts", map[string]int{
		"Accepted provision": 2, "Accepted bind": 1, "Accepted deprovision": 1, "Settled provision succeeded": 1,
		"Settled provision failed": 1, "Settled bind succeeded": 1, "Settled deprovision succeeded": 1,
		"Answered 2xx": 8, "Answered 4xx": 2, // and nothing of a sweep that found nothing
	}, f.counted())
	expect.Never(t, "what is measured, a user's text", f.counts.String(), "canary")
}

// counted adds up what the functions have measured, by name and dimensions.
func (f *together) counted() map[string]int {
	f.Helper()
	got := map[string]int{}
	for line := range strings.Lines(f.counts.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["Stack"] != "test" {
			f.Fatalf("line %q: %v", line, err)
		}
		for _, name := range []string{metrics.Accepted, metrics.Settled, metrics.Answered, metrics.PastDue} {
			if n, ok := m[name].(float64); ok {
				for _, dimension := range []string{"Kind", "Result", "Class"} {
					if of, ok := m[dimension].(string); ok {
						name += " " + of
					}
				}
				got[name] += int(n)
			}
		}
	}
	return got
}

// plan is an offered plan.
func (f *together) plan(offering, name string) (service, plan string) {
	f.Helper()
	services, _ := f.call("GET", "/v2/catalog", "", "", 200)["services"].([]any)
	for _, s := range services {
		s, _ := s.(map[string]any)
		plans, _ := s["plans"].([]any)
		for _, p := range plans {
			if p, _ := p.(map[string]any); s["name"] == offering && p["name"] == name {
				return s["id"].(string), p["id"].(string)
			}
		}
	}
	f.Fatalf("%s has no plan %s", offering, name)
	return "", ""
}

// A setting that is missing or invalid stops a function at its cold start, and is named.
func TestFunctionsNameTheirSettings(t *testing.T) {
	whole := map[string]string{
		app.EnvTable: "t", app.EnvKey: "k", app.EnvSecret: "s", app.EnvStateMachine: "m", app.EnvProvisioner: "p",
		app.EnvProviders: app.ProviderDemo, app.EnvStack: "s", app.EnvBroker: "b",
	}
	starts := map[string]func(deployed.Parts) error{
		"API":         func(p deployed.Parts) error { return expect.Err(api.New(t.Context(), p)) },
		"Provisioner": func(p deployed.Parts) error { return expect.Err(provisioner.NewSteps(p)) },
		"Calls":       func(p deployed.Parts) error { return expect.Err(provisioner.NewCalls(p)) },
		"Reaper":      func(p deployed.Parts) error { return expect.Err(sweeper.New(t.Context(), p)) },
	}
	for function, settings := range map[string][][2]string{ // each with a value
		"API": {{app.EnvTable, ""}, {app.EnvKey, ""}, {app.EnvSecret, ""}, {app.EnvStateMachine, ""}, {app.EnvProvisioner, ""},
			{app.EnvPlatformRate, "fast"}},
		"Provisioner": {{app.EnvKey, ""}, {app.EnvDemoDelay, "soon"}, {app.EnvInVPC, "unknown"}},
		"Reaper": {{app.EnvTable, ""}, {app.EnvStateMachine, ""}, {app.EnvStack, ""}, {app.EnvBroker, ""},
			{app.EnvDemoDelay, "soon"}, {app.EnvReaperDryRun, "maybe"}, {app.EnvInVPC, "unknown"}},
		"Calls": {{app.EnvInVPC, ""}, {app.EnvInVPC, "demo,unknown"}},
	} {
		for _, wrong := range settings {
			set := maps.Clone(whole)
			set[wrong[0]] = wrong[1]
			err := starts[function](deployed.Parts{Log: slog.New(slog.DiscardHandler),
				Offered: func() (*catalog.Catalog, error) { return testkit.Demo(), nil },
				Getenv:  func(name string) string { return set[name] }})
			expect.Says(t, fmt.Sprintf("%s with %q", function, wrong), fmt.Sprint(err), wrong[0])
		}
	}
}

// far is the way to a cloud whose answers come later by a time.
type far struct {
	aws.HTTPClient
	by time.Duration
}

func (f far) Do(r *http.Request) (*http.Response, error) {
	time.Sleep(f.by)
	return f.HTTPClient.Do(r)
}

// BenchmarkPage compares the page of an instance, with facts and a history, with a poll. The emulator answers one call after the
// other, which the table on AWS does not: on a longer way, the number of calls in a row decides. `make bench-page` runs it.
func BenchmarkPage(b *testing.B) {
	for _, by := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		b.Run(fmt.Sprintf("every call takes %v longer", by), func(b *testing.B) {
			cfg := emulator.Config(b)
			cfg.HTTPClient = far{cfg.HTTPClient, by}
			f := newTogether(b, cfg)
			service, plan := f.plan("demo", "sync")
			f.call("PUT", "/v2/service_instances/i", "", order(service, plan, ""), 201)
			look := f.page("i")
			look()
			var page, poll time.Duration
			for b.Loop() {
				began := time.Now()
				if got := look(); got.StatusCode != 200 {
					b.Fatal(got.StatusCode, got.Body)
				}
				page += time.Since(began)
				began = time.Now()
				f.call("GET", "/v2/service_instances/i/last_operation", "", "", 200)
				poll += time.Since(began)
			}
			b.ReportMetric(float64(page.Microseconds())/1000/float64(b.N), "ms/page")
			b.ReportMetric(float64(poll.Microseconds())/1000/float64(b.N), "ms/poll")
			b.ReportMetric(float64(page)/float64(poll), "pages/poll")
		})
	}
}
