package remote_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/provider/remote"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/inprocess"
	"github.com/longshore/longshore/kit/conformance"
)

// A network stands between the two functions.
type network struct {
	inside *remote.Handler
	calls  providertest.Calls
	fault  providertest.Fault
}

// arm is a providertest.Harness's Falter.
func (n *network) arm(nth int, fault providertest.Fault) (struck func() bool, disarm func()) {
	n.fault = fault
	return n.calls.Arm(nth, fault)
}

// Invoke implements remote.Invoker.
func (n *network) Invoke(ctx context.Context, in *lambda.InvokeInput, opts ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	var out []byte
	var inside error
	err := n.calls.Call(ctx, func() error {
		out, inside = n.inside.Invoke(ctx, in.Payload)
		return nil
	})
	switch {
	case !errors.Is(err, providertest.ErrFault):
		return &lambda.InvokeOutput{Payload: out}, errors.Join(err, inside)
	case n.fault == providertest.Refused:
		return nil, refusal()
	case n.fault == providertest.Killed:
		return &lambda.InvokeOutput{FunctionError: new("Unhandled"), Payload: []byte(`{"errorMessage":"exit status 2"}`)}, nil
	default:
		return nil, errors.New("connection reset")
	}
}

// refusal is what the SDK makes of a call that is throttled.
func refusal() error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusTooManyRequests}}, Err: errors.New("throttled"),
	}
}

// behind puts a network before a harness's provider: it has the faults, if it is
// said so, and otherwise what the provider stands on.
func behind(factory providertest.Factory, faults bool) providertest.Factory {
	return func(t *testing.T) *providertest.Harness {
		h := factory(t)
		first := &network{}
		wire := func(n *network, p provider.Provider, i provider.Inventory) (provider.Provider, provider.Inventory) {
			inside := wired.Of(p)
			inside.Inventory = i
			n.inside = served(inside, slog.New(slog.DiscardHandler))
			w := remote.New(n, remote.Options{Provider: "told", Function: "function", Outside: inside})
			return w.Provider, w.Inventory
		}
		h.Provider, h.Inventory = wire(first, h.Provider, h.Inventory)
		open, elsewhere := h.Open, h.Elsewhere
		h.Open = func(t testing.TB, broker string) (provider.Provider, provider.Inventory) {
			p, i := open(t, broker)
			return wire(&network{}, p, i)
		}
		h.Elsewhere = func(t testing.TB) (provider.Provider, provider.Inventory) {
			p, i := elsewhere(t)
			return wire(&network{}, p, i)
		}
		if faults {
			h.Falter = first.arm
		}
		return h
	}
}

// A provider that is called through another function passes the suite of all providers: with faults of its own, and with
// those of the way to it. On the way a whole step lands late, which here has no deadline: one that a worker has sent is
// refused then, so a secret that the cloud chose is safe from it.
func TestConformance(t *testing.T) {
	t.Run("FaultsInside", func(t *testing.T) { providertest.Run(t, behind(cloudtest.Factory("cloud", ""), false)) })
	t.Run("FaultsOnTheWay", func(t *testing.T) { providertest.Run(t, behind(cloudtest.Factory("broker", ""), true)) })
}

// The race detector needs the one case that has several callers.
func TestTwoCallers(t *testing.T) {
	providertest.RunTwoCallers(t, behind(cloudtest.Factory("cloud", ""), false))
}

// whole is a provider that does what the reference does, and no more.
type whole struct {
	provider.Provider
	provider.Inventory
	provider.Adopter
}

// A whole broker conforms whose provider is called through another function, also while Lambda refuses one call in twenty.
func TestABrokerOverARemoteProvider(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s, by the clock of the wall")
	}
	made := cloudtest.Demo(cloudtest.NewCloud(time.Now), time.Second)
	inside := by(served(wired.Of(made), slog.New(slog.DiscardHandler)))
	var calls atomic.Int64
	called := remote.New(invoke(func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
		if calls.Add(1)%20 == 0 {
			return nil, refusal()
		}
		return inside(ctx, in)
	}), remote.Options{Provider: "told", Outside: wired.Of(made)})

	kit := testkit.New(testkit.Options{
		Now:             func() time.Time { return time.Now().UTC() },
		Providers:       map[string]provider.Provider{"demo": whole{called.Provider, called.Inventory, called.Adopter}},
		SynchronousWait: 15 * time.Second, CallTimeout: 20 * time.Second, Alone: true,
	})
	engine := inprocess.New(kit.Worker().Step, inprocess.Options{Log: kit.Log})
	defer engine.Close()
	kit.Engine = engine
	server := httptest.NewServer(kit.Handler(kit.Broker(), testkit.Platforms{"u": {ID: platforms.Default}}))
	defer server.Close()

	target := conformance.Target{URL: server.URL, Username: "u", Password: testkit.Password}
	result := expect.Get(conformance.Run(t.Context(), target,
		conformance.Options{Now: time.Now, Parallel: 64, Service: "demo", Plan: "async-bind"}))(t)
	passed := 0
	for _, r := range result.Results {
		switch r.Outcome {
		case conformance.Failed, conformance.Blocked:
			t.Errorf("%s %s: %s %v", r.ID, r.Outcome, r.Reason, r.Failures)
		case conformance.Passed:
			passed++
		}
	}
	if left, _, err := made.List(t.Context(), ""); err != nil || len(left) > 0 || !result.Conforms() {
		t.Errorf("%d things are left, error %v; it conforms: %v", len(left), err, result.Conforms())
	}
	if calls.Load() < 100 || passed < 200 {
		t.Errorf("%d calls were made, and %d cases passed: it was not tried", calls.Load(), passed)
	}
}
