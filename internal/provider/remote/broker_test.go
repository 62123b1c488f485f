package remote_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/provider/remote"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/inprocess"
	"github.com/longshore/longshore/kit/conformance"
)

// whole is a provider that does what the reference does, and no more.
type whole struct {
	provider.Provider
	provider.Inventory
	provider.Adopter
}

// A whole broker conforms whose provider is called through another function, also
// while Lambda refuses one call in twenty.
func TestABrokerOverARemoteProvider(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s, by the clock of the wall")
	}
	made := cloudtest.Demo(cloudtest.NewCloud(time.Now), time.Second)
	inside := remote.NewHandler(map[string]remote.Open{"demo": func(json.RawMessage) (wired.Provider, error) {
		return wired.Of(made), nil
	}}, slog.New(slog.DiscardHandler))
	var calls atomic.Int64
	called := remote.New(invoke(func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
		if calls.Add(1)%20 == 0 {
			return nil, refusal()
		}
		out, err := inside.Invoke(ctx, in.Payload)
		return &lambda.InvokeOutput{Payload: out}, err
	}), remote.Options{Provider: "demo", Outside: wired.Of(made)})

	kit := testkit.New(testkit.Options{
		Now:             func() time.Time { return time.Now().UTC() },
		Providers:       map[string]provider.Provider{"demo": whole{called.Provider, called.Inventory, called.Adopter}},
		SynchronousWait: 15 * time.Second, CallTimeout: 20 * time.Second, Alone: true,
	})
	engine := inprocess.New(kit.Worker().Step, inprocess.Options{})
	defer engine.Close()
	kit.Engine = engine
	server := httptest.NewServer(kit.Handler(kit.Broker(), testkit.Platforms{"u": {ID: platforms.Default}}))
	defer server.Close()

	target := conformance.Target{URL: server.URL, Username: "u", Password: testkit.Password}
	result, err := conformance.Run(t.Context(), target,
		conformance.Options{Now: time.Now, Parallel: 64, Service: "demo", Plan: "async-bind"})
	if err != nil {
		t.Fatal(err)
	}
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
