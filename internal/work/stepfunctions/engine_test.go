package stepfunctions_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/workflowtest"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

// relay is the package of a function that asks a test what to answer.
var relay = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "longshore-relay-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "bootstrap")
	build := exec.Command("go", "build", "-o", path, "./testdata/relay")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the relay: %w\n%s", err, out)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate}
	header.SetMode(0o755)
	w, err := z.CreateHeader(header)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(program)
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
})

// A deployment is a state machine and a function of their own.
type deployment struct {
	sfn               *sfn.Client
	lambda            *lambda.Client
	machine, function string // ARNs
}

const role = "arn:aws:iam::000000000000:role/longshore-test"

// deploy deploys a provisioner that makes the steps here.
func deploy(t *testing.T, step workflow.Step, wait func(time.Duration)) *deployment {
	t.Helper()
	config := emulator.Config(t)
	d := &deployment{sfn: sfn.NewFromConfig(config), lambda: lambda.NewFromConfig(config)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := provision(r, step, wait)
		if err != nil {
			kind, text := reflect.TypeOf(err).Name(), err.Error() // as Lambda tells of it
			if kind == "" {
				kind = "StepError"
			}
			http.Error(w, kind+" "+text, http.StatusInternalServerError)
			return
		}
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Errorf("answering the relay: %v", err)
		}
	}))
	t.Cleanup(server.Close)
	code := expect.Get(relay())(t)
	name := emulator.Name("longshore-test")
	function, err := d.lambda.CreateFunction(t.Context(), &lambda.CreateFunctionInput{FunctionName: &name,
		Role: aws.String(role), Runtime: lambdatypes.RuntimeProvidedal2023, Handler: aws.String("bootstrap"),
		Code: &lambdatypes.FunctionCode{ZipFile: code}, Timeout: aws.Int32(60),
		Environment: &lambdatypes.Environment{Variables: map[string]string{"RELAY_URL": server.URL}}})
	expect.OK(t, err)
	d.function = *function.FunctionArn
	t.Cleanup(func() {
		if _, err := d.lambda.DeleteFunction(context.Background(), &lambda.DeleteFunctionInput{FunctionName: &name}); err != nil {
			t.Errorf("deleting function: %v", err)
		}
	})
	waiter := lambda.NewFunctionActiveV2Waiter(d.lambda, func(o *lambda.FunctionActiveV2WaiterOptions) { o.MinDelay = 50 * time.Millisecond })
	expect.OK(t, waiter.Wait(t.Context(), &lambda.GetFunctionInput{FunctionName: &name}, time.Minute))
	machine, err := d.sfn.CreateStateMachine(t.Context(), &sfn.CreateStateMachineInput{
		Name: &name, RoleArn: aws.String(role), Definition: aws.String(stepfunctions.Definition(d.function, time.Minute, time.Hour)),
	})
	expect.OK(t, err)
	d.machine = *machine.StateMachineArn
	t.Cleanup(func() {
		if _, err := d.sfn.DeleteStateMachine(context.Background(), &sfn.DeleteStateMachineInput{StateMachineArn: &d.machine}); err != nil {
			t.Errorf("deleting state machine: %v", err)
		}
	})
	return d
}

// provision is what a provisioner does with its input, but for one step only.
func provision(r *http.Request, step workflow.Step, wait func(time.Duration)) (out stepfunctions.Output, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the step panicked: %v", p)
		}
	}()
	var in stepfunctions.Input
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return out, err
	}
	ref, err := in.Ref()
	if err != nil {
		return out, err
	}
	outcome, err := step(r.Context(), ref)
	if err != nil {
		return out, err
	}
	if !outcome.Settled {
		wait(stepfunctions.OutputOf(outcome).Wait())
	}
	return stepfunctions.Answer(in, outcome, time.Now())
}

func (d *deployment) engine(o stepfunctions.Options) *stepfunctions.Engine {
	o.StateMachine, o.Provisioner, o.Log = d.machine, d.function, slog.New(slog.DiscardHandler)
	return stepfunctions.New(d.sfn, d.lambda, o)
}

// The real state machine drives a real function, on the emulator.
func TestEngine(t *testing.T) {
	workflowtest.Run(t, func(t *testing.T, step workflow.Step, wait func(time.Duration)) workflow.Engine {
		return deploy(t, step, wait).engine(stepfunctions.Options{
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, // provision tells of the pause
		})
	})
}

func ref(attempt int) workflow.Ref {
	key := lifecycle.Key{Platform: "p", Instance: "i/ä #1", Binding: "b"}
	return workflow.Ref{Token: lifecycle.Token{Operation: "0123456789-_abcdefGHIJ", Key: key}, Attempt: attempt}
}

// history is what became of an execution, once it has ended.
func (d *deployment) history(t *testing.T, name string) (sfntypes.ExecutionStatus, []string) {
	t.Helper()
	arn := strings.Replace(d.machine, ":stateMachine:", ":execution:", 1) + ":" + name
	for range 600 {
		out := expect.Get(d.sfn.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &arn}))(t)
		if out.Status == sfntypes.ExecutionStatusRunning {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		history := expect.Get(d.sfn.GetExecutionHistory(t.Context(), &sfn.GetExecutionHistoryInput{ExecutionArn: &arn}))(t)
		var states []string
		for _, e := range history.Events {
			if in := e.StateEnteredEventDetails; in != nil {
				states = append(states, *in.Name)
			}
		}
		return out.Status, states
	}
	t.Fatalf("execution %q does not end", name)
	return "", nil
}

// The definition does on the emulator what the test's own interpreter says.
func TestExecutions(t *testing.T) {
	var mu sync.Mutex
	steps := map[int]int{} // by attempt
	made := func(attempt, more int) int {
		mu.Lock()
		defer mu.Unlock()
		steps[attempt] += more
		return steps[attempt]
	}
	d := deploy(t, func(_ context.Context, r workflow.Ref) (workflow.Outcome, error) {
		switch n := made(r.Attempt, 1); {
		case r.Attempt == 2 && n == 2:
			return workflow.Outcome{}, errors.New("the records are away")
		case n < 3:
			return workflow.Outcome{Wait: 1500 * time.Millisecond}, nil
		}
		return workflow.Outcome{Settled: true}, nil
	}, func(time.Duration) {})
	e := d.engine(stepfunctions.Options{})
	const step, pending, wait = stepfunctions.StateStep, stepfunctions.StatePending, stepfunctions.StateWait
	for attempt, test := range map[int]struct {
		reason string
		status sfntypes.ExecutionStatus
		states []string
	}{
		1: {"it steps until it is settled", sfntypes.ExecutionStatusSucceeded, []string{step, pending, wait, step, pending, wait, step}},
		2: {"what is thrown ends it", sfntypes.ExecutionStatusFailed, []string{step, pending, wait, step, stepfunctions.StateAbandoned}},
	} {
		expect.OK(t, e.Start(t.Context(), ref(attempt)))
		status, states := d.history(t, ref(attempt).Name())
		expect.Same(t, test.reason+": status", test.status, status)
		expect.Same(t, test.reason+": states", test.states, states)
		// A name is used once, also after its execution has ended.
		before := made(attempt, 0)
		expect.OK(t, e.Start(t.Context(), ref(attempt)), "starting what has ended")
		expect.Same(t, test.reason+": its steps", before, made(attempt, 0))
	}
}

// cloud is the two services, with what they answer.
type cloud struct {
	mu      sync.Mutex
	started []*sfn.StartExecutionInput
	invoked []*lambda.InvokeInput
	start   func(ctx context.Context, n int) error
	invoke  func(ctx context.Context, n int) (*lambda.InvokeOutput, error)
}

func (c *cloud) StartExecution(ctx context.Context, in *sfn.StartExecutionInput,
	_ ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	c.mu.Lock()
	c.started = append(c.started, in)
	n, do := len(c.started), c.start
	c.mu.Unlock()
	if do != nil {
		if err := do(ctx, n); err != nil {
			return nil, err
		}
	}
	return &sfn.StartExecutionOutput{}, ctx.Err()
}

func (c *cloud) Invoke(ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	c.mu.Lock()
	c.invoked = append(c.invoked, in)
	n := len(c.invoked)
	c.mu.Unlock()
	return c.invoke(ctx, n)
}

func answered(payload string) (*lambda.InvokeOutput, error) {
	return &lambda.InvokeOutput{StatusCode: 200, Payload: []byte(payload)}, nil
}

func (c *cloud) engine(o stepfunctions.Options) *stepfunctions.Engine {
	o.StateMachine, o.Provisioner = "machine", "function"
	return stepfunctions.New(c, c, o)
}

func TestStart(t *testing.T) {
	away := errors.New("Step Functions is away")
	for reason, test := range map[string]struct{ err, want error }{
		"it is started":                   {nil, nil},
		"a name that was used is success": {&sfntypes.ExecutionAlreadyExists{}, nil},
		"all else is told":                {away, away},
	} {
		c := &cloud{start: func(context.Context, int) error { return test.err }}
		expect.Fails(t, reason, test.want, c.engine(stepfunctions.Options{}).Start(t.Context(), ref(7)))
		if len(c.started) != 1 || len(c.invoked) != 0 {
			t.Fatalf("%s: %d executions started, want 1; %d functions invoked, want none", reason, len(c.started), len(c.invoked))
		}
		in := c.started[0]
		want := `{"token":"0123456789-_abcdefGHIJ.cA.aS_DpCAjMQ.Yg","attempt":7}`
		if *in.StateMachineArn != "machine" || *in.Name != "0123456789-_abcdefGHIJ-7" || *in.Input != want {
			t.Errorf("%s: started %q of %q with %s", reason, *in.Name, *in.StateMachineArn, *in.Input)
		}
	}
}

// An inquiry is one call that nobody waits for, with ids only.
func TestInquire(t *testing.T) {
	away := errors.New("Lambda is away")
	for _, want := range []error{nil, away} {
		c := &cloud{invoke: func(context.Context, int) (*lambda.InvokeOutput, error) { return &lambda.InvokeOutput{}, want }}
		err := c.engine(stepfunctions.Options{}).Inquire(t.Context(), workflow.Inquiry{
			Key: lifecycle.Key{Platform: "p", Instance: "i"}, Incarnation: "first", Asked: time.Unix(0, 0).UTC(), Version: 3,
		})
		const payload = `{"token":"","attempt":0,"inquiry":{"key":{"platform":"p","instance":"i"},"incarnation":"first",` +
			`"asked":"1970-01-01T00:00:00Z","version":3}}`
		if in := c.invoked[0]; !errors.Is(err, want) || in.InvocationType != lambdatypes.InvocationTypeEvent ||
			*in.FunctionName != "function" || string(in.Payload) != payload {
			t.Errorf("%s call of %q with %s, error %v", in.InvocationType, *in.FunctionName, in.Payload, err)
		}
	}
}

// finished is what came of waiting for an operation.
type finished struct {
	invoked, started int
	err              error
	waits            []time.Duration
	logged           bool
}

func TestFinish(t *testing.T) {
	away := errors.New("Lambda is away")
	type invoke = func(ctx context.Context, n int, cancel func()) (*lambda.InvokeOutput, error)
	// answers are those of the calls, one after the other; the last one settles.
	answers := func(payloads ...string) invoke {
		return func(_ context.Context, n int, _ func()) (*lambda.InvokeOutput, error) {
			return answered(append(payloads, `{"settled":true}`)[n-1])
		}
	}
	overInTheCall := func(ctx context.Context, _ int, cancel func()) (*lambda.InvokeOutput, error) {
		cancel()
		return nil, ctx.Err()
	}
	for name, test := range map[string]struct {
		reason string
		invoke invoke
		start  error
		want   finished
	}{
		"AtOnce": {"one call is enough for what settles in it", answers(), nil, finished{invoked: 1}},
		"Rounds": {"it asks again as long as there is time, after the time it was told",
			answers(`{"settled":false,"wait_seconds":2}`, `{"settled":false,"wait_seconds":3}`), nil,
			finished{invoked: 3, waits: []time.Duration{2 * time.Second, 3 * time.Second}}},
		"NoWait": {"it never spins", answers(`{}`), nil, finished{invoked: 2, waits: []time.Duration{time.Second}}},
		"OverWhileWaiting": {"when the time is up it goes on in the background, which is no error",
			func(_ context.Context, _ int, cancel func()) (*lambda.InvokeOutput, error) {
				cancel()
				return answered(`{"wait_seconds":9}`)
			}, nil, finished{invoked: 1, started: 1, waits: []time.Duration{9 * time.Second}}},
		"OverInTheCall": {"also when it is up before it has answered", overInTheCall, nil, finished{invoked: 1, started: 1}},
		"OverAndAway":   {"that it may not go on is an error", overInTheCall, away, finished{invoked: 1, started: 1, err: away}},
		"OverAndHung": {"also if it is not known", overInTheCall, context.DeadlineExceeded,
			finished{invoked: 1, started: 1, err: context.DeadlineExceeded}},
		"Thrown": {"what a step throws ends the execution, here as there",
			func(_ context.Context, _ int, _ func()) (*lambda.InvokeOutput, error) {
				out, err := answered(`{"errorType":"StepError","errorMessage":"canary"}`)
				out.FunctionError = aws.String("Unhandled")
				return out, err
			}, nil, finished{invoked: 1, logged: true}},
		"Away": {"a function that cannot be invoked is told, and the operation goes on in the background",
			func(_ context.Context, _ int, _ func()) (*lambda.InvokeOutput, error) { return nil, away }, nil,
			finished{invoked: 1, started: 1, err: away}},
		"Nonsense": {"so is one that answers nonsense", answers(`nonsense`), nil, finished{invoked: 1, started: 1, err: errAny}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithDeadline(t.Context(), time.Date(2199, 1, 2, 3, 4, 5, 0, time.UTC))
			defer cancel()
			c := &cloud{start: func(ctx context.Context, _ int) error {
				// A request whose time is up has to be answered: what goes on is started in little of what is left.
				if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > workflow.HandOver {
					t.Errorf("%s: handing over may take until %v, and it has %v", test.reason, deadline, workflow.HandOver)
				}
				return test.start
			}}
			c.invoke = func(ctx context.Context, n int) (*lambda.InvokeOutput, error) { return test.invoke(ctx, n, cancel) }
			var got finished
			var log bytes.Buffer
			err := c.engine(stepfunctions.Options{
				Sleep: func(ctx context.Context, d time.Duration) error {
					got.waits = append(got.waits, d)
					return ctx.Err()
				},
				Log: slog.New(slog.NewTextHandler(&log, nil)),
			}).Finish(ctx, ref(2))
			if !errors.Is(err, test.want.err) && (test.want.err != errAny || err == nil) {
				t.Errorf("%s: got error %v, want %v", test.reason, err, test.want.err)
			}
			got.invoked, got.started, got.err, got.logged = len(c.invoked), len(c.started), test.want.err,
				strings.Contains(log.String(), ref(2).Name())
			if d := cmp.Diff(test.want, got, cmp.AllowUnexported(finished{}), cmp.Comparer(func(a, b error) bool { return a == b })); d != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, d)
			}
			if strings.Contains(log.String(), "canary") {
				t.Error("the log tells what the function said")
			}
			c.invokedWithDeadline(t)
		})
	}
}

// invokedWithDeadline requires that the function was told what to do, and until when.
func (c *cloud) invokedWithDeadline(t *testing.T) {
	t.Helper()
	for _, in := range c.invoked {
		want := `{"token":"0123456789-_abcdefGHIJ.cA.aS_DpCAjMQ.Yg","attempt":2,"until":"2199-01-02T03:04:05Z"}`
		if *in.FunctionName != "function" || in.InvocationType != lambdatypes.InvocationTypeRequestResponse || string(in.Payload) != want {
			t.Errorf("invoked %q as %s with %s", *in.FunctionName, in.InvocationType, in.Payload)
		}
	}
}

// errAny stands for any error.
var errAny = errors.New("any error")

func TestPayloads(t *testing.T) {
	for _, r := range []workflow.Ref{ref(1), ref(999),
		{Token: lifecycle.Token{Operation: strings.Repeat("A", 22), Key: lifecycle.Key{Platform: "p", Instance: "i"}}, Attempt: 1}} {
		body := expect.Get(json.Marshal(stepfunctions.InputOf(r)))(t)
		var in stepfunctions.Input
		expect.OK(t, json.Unmarshal(body, &in))
		if got, err := in.Ref(); err != nil || got != r {
			t.Errorf("%s is of %+v: %v", body, got, err)
		}
	}
	for _, in := range []stepfunctions.Input{
		{}, {Attempt: 1}, {Token: "nonsense", Attempt: 1}, {Token: ref(1).Token.String()}, {Token: ref(1).Token.String(), Attempt: -1},
	} {
		if r, err := in.Ref(); err == nil {
			t.Errorf("%+v is of %+v", in, r)
		}
	}
	for d, want := range map[time.Duration]int{0: 1, -time.Second: 1, 1: 1, time.Second: 1, time.Second + 1: 2, 90 * time.Second: 90} {
		out := stepfunctions.OutputOf(workflow.Outcome{Wait: d})
		if out.Settled || out.WaitSeconds != want {
			t.Errorf("a wait of %v is put out as %+v", d, out)
		}
		if back := out.Wait(); back < d || back != time.Duration(want)*time.Second {
			t.Errorf("a wait of %v comes back as %v", d, back)
		}
	}
	settled := stepfunctions.OutputOf(workflow.Outcome{Settled: true, Wait: time.Hour})
	if body, err := json.Marshal(settled); err != nil || string(body) != `{"settled":true,"wait_seconds":0}` {
		t.Errorf("settled is put out as %s: %v", body, err)
	}
}
