package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// Must drives a step to its good end.
func Must(t testing.TB, clock *Clock, step Step) provider.Status {
	t.Helper()
	st, f := Drive(t, clock, step)
	if f != nil {
		t.Fatalf("it failed: %s", f.Message)
	}
	return st
}

// Keep records in an instance what a step of it has answered, as a worker does.
func Keep(in *provider.Instance, st provider.Status, err error) {
	if err == nil && st.State != nil {
		in.State = *st.State
	}
	if err == nil && st.Target != nil {
		in.Target = *st.Target
	}
}

// Troubled requires that a step meets a trouble of the kind, which has words for the operator.
func Troubled(t testing.TB, what, kind string, err error) {
	t.Helper()
	trouble, ok := errors.AsType[*target.Trouble](err)
	if !ok || trouble.Kind != kind || trouble.Message == "" {
		t.Errorf("%s: %v, want the trouble %q", what, err, kind)
	}
}

// Note is Parameters of a Harness whose provider takes any.
func Note(canary string) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"note":%q}`, canary)) }

// FailBySetting is Fail of a Harness whose provider is Failing.
func FailBySetting(_ testing.TB, kind operation.Kind) map[string]any {
	return map[string]any{"fail": string(kind)}
}

// Fails reports whether the settings of an instance have its operation fail.
func Fails(in provider.Instance) bool { return in.Settings["fail"] == string(in.Operation.Kind) }

// Failing is a provider whose operations fail for good where their settings say so: a real server refuses none of its own
// accord. If late, a provision and a bind have done their work by then: what is half made is to be found.
func Failing(p provider.Provider, late bool) Through {
	return Through{p, func(ctx context.Context, in provider.Instance, do Step) (provider.Status, error) {
		kind := in.Operation.Kind
		if Fails(in) && !(late && (kind == operation.Provision || kind == operation.Bind)) {
			return provider.Status{}, provider.Failf("asked to fail")
		}
		st, err := do(ctx)
		if err == nil && st.Done && Fails(in) {
			return provider.Status{}, provider.Failf("asked to fail")
		}
		return st, err
	}}
}

// Through is a provider whose verbs all go through one function. It is given the instance, also a binding's, and makes the call
// by the step, if it does.
type Through struct {
	provider.Provider
	Call func(ctx context.Context, in provider.Instance, do Step) (provider.Status, error)
}

// Provision implements provider.Provider, as the methods below do.
func (p Through) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.Call(ctx, in, bound(p.Provider.Provision, in))
}

func (p Through) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.Call(ctx, in, bound(p.Provider.Update, in))
}

func (p Through) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.Call(ctx, in, bound(p.Provider.Deprovision, in))
}

func (p Through) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.Call(ctx, b.Instance, bound(p.Provider.Bind, b))
}

func (p Through) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.Call(ctx, b.Instance, bound(p.Provider.Unbind, b))
}
