//go:build deployed

package localstack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

// TestFaults breaks the deployed broker in the middle of its work. Each fault is made while nothing else is; then, side by side,
// every operation has to come to its end by what the broker does itself, its schedule included, and a deletion after it.
func TestFaults(t *testing.T) {
	type fault struct {
		name string
		// inject makes an instance whose operation meets the fault.
		inject          func(t *testing.T, p platform, c *cloud, path string) (operation string)
		path, operation string
	}
	p, c := newPlatform(t), newCloud(t)
	var all []fault
	for _, f := range []fault{
		{name: "ExecutionAborted", inject: aborted}, // it takes longest to be noticed
		{name: "KilledBetweenCallAndRecord", inject: killed}, {name: "StartFails", inject: startFails},
		{name: "StepDeliveredTwice", inject: deliveredTwice}, {name: "DeployInTheMiddle", inject: deployed},
	} {
		f.path = instancePath(id("i"))
		injected := t.Run("Inject"+f.name, func(t *testing.T) { f.operation = f.inject(t, p, c, f.path) })
		if injected && f.operation != "" { // else it has failed, or been skipped
			all = append(all, f)
		}
	}
	t.Parallel() // the rest is waiting
	for _, f := range all {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			path := f.path
			if state := p.settled(t, path, f.operation); state != "succeeded" {
				t.Fatalf("the operation ended %q", state)
			}
			p.call(t, "GET", path, "", 200)
			p.ends(t, "DELETE", path, hints(planAsync), "")
			p.call(t, "GET", path, "", 404)
		})
	}
}

// accepted orders an instance that takes a time.
func accepted(t *testing.T, p platform, path string, seconds float64) (operation string) {
	t.Helper()
	body := order(service, planAsync, fmt.Sprintf(`,"parameters":{"delay_seconds":%g,"note":%q}`, seconds, canary))
	return p.call(t, "PUT", path+"?accepts_incomplete=true", body, 202).text("operation")
}

// The intent is durable before the start: it is a 202 all the same, and the rule has the reaper start it.
func startFails(t *testing.T, p platform, c *cloud, path string) string {
	undo := c.with(t, "api", 0, map[string]string{app.EnvStateMachine: c.machine + "-is-not-there"})
	operation := accepted(t, p, path, 1)
	undo()
	expect.Same(t, "the execution has started: it is", "", c.execution(t, operation))
	return operation
}

// The provisioner has its answer, and its time is over before it can record it.
func killed(t *testing.T, p platform, c *cloud, path string) string {
	target := expect.Get(url.Parse(c.endpoint))(t)
	if os.Getenv("EMULATOR") == "docker" {
		t.Skip("functions run in containers, from where this process cannot be reached")
	}
	// In front of what the provisioner calls: once it has its lease, nothing is written any more.
	var leased atomic.Bool
	var withheld atomic.Int32
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action := r.Header.Get("X-Amz-Target")
		writes := strings.HasSuffix(action, ".PutItem") || strings.HasSuffix(action, ".TransactWriteItems")
		if writes && leased.Load() {
			withheld.Add(1)
			select { // until whoever waits is dead
			case <-r.Context().Done():
			case <-t.Context().Done():
			}
			return
		}
		forward.ServeHTTP(w, r)
		if writes {
			leased.Store(true)
		}
	}))
	t.Cleanup(front.Close)
	undo := c.with(t, "provisioner", 10*time.Second, map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": front.URL})
	operation := accepted(t, p, path, 1)
	eventually(t, "the provisioner has been killed, and the execution has ended", 5*time.Minute, func() bool {
		return c.execution(t, operation) == "FAILED"
	})
	if withheld.Load() == 0 {
		t.Error("it was killed too early: no record was withheld")
	}
	undo()
	return operation
}

// An operator stops the execution by hand. LocalStack calls one failed that was
// stopped during a step which then throws: it is stopped while it waits.
func aborted(t *testing.T, p platform, c *cloud, path string) string {
	operation := accepted(t, p, path, 45)
	eventually(t, "the execution waits", 5*time.Minute, func() bool { return c.waits(t, operation) })
	expect.Get(c.sfn.StopExecution(t.Context(),
		&sfn.StopExecutionInput{ExecutionArn: aws.String(c.executionARN(t, operation))}))(t)
	eventually(t, "the execution has ended", 5*time.Minute, func() bool { return c.execution(t, operation) == "ABORTED" })
	eventually(t, "a dead letter tells of it", 5*time.Minute, func() bool {
		told, err := messages(t.Context(), c.sqs, c.letters)
		if errors.Is(err, errOnlyTLS) {
			t.Log(err)
			return true
		}
		expect.OK(t, err)
		return strings.Contains(strings.Join(told, "\n"), c.executionARN(t, operation))
	})
	return operation
}

// AWS delivers at least once.
func deliveredTwice(t *testing.T, p platform, c *cloud, path string) string {
	operation := accepted(t, p, path, 3)
	input := expect.Get(json.Marshal(stepfunctions.Input{Token: operation, Attempt: 1, Until: time.Now().Add(time.Minute)}))(t)
	answers := make(chan error)
	for range 3 {
		go func() {
			out, err := c.lambda.Invoke(t.Context(),
				&lambda.InvokeInput{FunctionName: aws.String(c.functions["provisioner"]), Payload: input})
			if err == nil && out.FunctionError != nil {
				err = fmt.Errorf("%s: %s", *out.FunctionError, out.Payload)
			}
			answers <- err
		}()
	}
	for range 3 {
		expect.Fails(t, "a step that was delivered again", nil, <-answers)
	}
	return operation
}

// The whole stack is deployed again, with another setting, and then with the one that it had.
func deployed(t *testing.T, p platform, c *cloud, path string) string {
	operation := accepted(t, p, path, 12)
	was := c.environment(t, "provisioner")[app.EnvDemoDelay]
	other := "1100ms"
	deploy(t, other)
	expect.Same(t, "the deployment changed nothing: the delay is", other, c.environment(t, "provisioner")[app.EnvDemoDelay])
	deploy(t, was)
	return operation
}

func deploy(t *testing.T, delay string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "./deploy.sh")
	command.Env = append(os.Environ(), "LONGSHORE_DEMO_DELAY="+delay)
	out, err := command.CombinedOutput()
	expect.OK(t, err, "deploying", string(out))
}
