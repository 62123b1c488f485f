package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/demo/demotest"
	"github.com/longshore/longshore/internal/provider/providertest"
	"github.com/longshore/longshore/internal/provider/remote"
)

// A way is how the nth call between the two functions goes wrong.
type way int

const (
	lost    way = iota // it is done, and its answer does not arrive
	late               // it is given up, and lands when another is made
	refused            // Lambda does not take it
	crashed            // the function ends in the middle of it
)

// A network stands between the two functions.
type network struct {
	inside *remote.Handler
	worked way // what goes wrong with a call that does its work

	mu     sync.Mutex
	left   int // calls until one goes wrong; 0 for none
	how    way
	struck bool
	held   []byte // a call that lands late
}

// arm is a providertest.Harness's Falter.
func (n *network) arm(nth int, worked bool) (disarm func() bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.left, n.struck, n.how = nth, false, n.worked
	if !worked {
		n.how = map[way]way{lost: refused, late: crashed}[n.worked]
	}
	return func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.left = 0
		return n.struck
	}
}

// Invoke implements remote.Invoker.
func (n *network) Invoke(ctx context.Context, in *lambda.InvokeInput, opts ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	n.mu.Lock()
	held, strikes, how := n.held, n.left == 1, n.how
	n.held, n.struck, n.left = nil, n.struck || strikes, max(n.left-1, 0)
	if strikes && how == late {
		n.held = in.Payload
	}
	n.mu.Unlock()
	if held != nil {
		_, _ = n.inside.Invoke(context.WithoutCancel(ctx), held)
	}
	if strikes {
		switch how {
		case lost:
			_, _ = n.inside.Invoke(ctx, in.Payload)
			return nil, errors.New("connection reset")
		case late:
			return nil, context.DeadlineExceeded
		case refused:
			return nil, refusal()
		case crashed:
			return &lambda.InvokeOutput{FunctionError: new("Unhandled"), Payload: []byte(`{"errorMessage":"exit status 2"}`)}, nil
		}
	}
	out, err := n.inside.Invoke(ctx, in.Payload)
	return &lambda.InvokeOutput{Payload: out}, err
}

// refusal is what the SDK makes of a call that is throttled.
func refusal() error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusTooManyRequests}}, Err: errors.New("throttled"),
	}
}

// behind puts a network before a harness's provider. Where it is of a way, the
// network has the faults, and not what the provider stands on.
func behind(factory providertest.Factory, worked *way) providertest.Factory {
	return func(t *testing.T) *providertest.Harness {
		h := factory(t)
		first := &network{}
		wire := func(n *network, p provider.Provider, i provider.Inventory) provider.Wired {
			n.inside = remote.NewHandler(map[string]remote.Open{"demo": func(json.RawMessage) (provider.Wired, error) {
				return provider.Wired{Provider: p, Inventory: i}, nil
			}}, slog.New(slog.DiscardHandler))
			return remote.New(n, remote.Options{Provider: "demo", Function: "function"})
		}
		w := wire(first, h.Provider, h.Inventory)
		h.Provider, h.Inventory = w.Provider, w.Inventory
		reopen := h.Reopen
		h.Reopen = func(t testing.TB) (provider.Provider, provider.Inventory) {
			t.Helper()
			p, i := reopen(t)
			w := wire(&network{}, p, i)
			return w.Provider, w.Inventory
		}
		if worked != nil {
			first.worked, h.Falter = *worked, first.arm
		}
		return h
	}
}

// A provider that is called through another function passes the suite of all
// providers: with faults of its own, and with those of the way to it.
func TestConformance(t *testing.T) {
	over := demotest.Factory(demotest.MemoryPageSize, func(*testing.T) func(testing.TB) demo.Things {
		m := demotest.NewMemory()
		return func(testing.TB) demo.Things { return m }
	})
	t.Run("FaultsInside", func(t *testing.T) { providertest.Run(t, behind(over, nil)) })
	t.Run("LostAnswers", func(t *testing.T) { providertest.Run(t, behind(over, new(lost))) })
	t.Run("LateCalls", func(t *testing.T) { providertest.Run(t, behind(over, new(late))) })
}
