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

// FailBySetting is Fail of a Harness whose provider is a Failing.
func FailBySetting(_ testing.TB, kind operation.Kind) map[string]any {
	return map[string]any{"fail": string(kind)}
}

// Fails reports whether the settings of an instance have its operation fail.
func Fails(in provider.Instance) bool { return in.Settings["fail"] == string(in.Operation.Kind) }

// Failing is a provider whose operations fail for good where their settings say so: a real server refuses none of its own
// accord. Where Late is set, a provision and a bind have done their work by then: what is half made is to be found.
type Failing struct {
	provider.Provider
	Late bool
}

func (f Failing) call(in provider.Instance, late bool, step func() (provider.Status, error)) (provider.Status, error) {
	if !late && Fails(in) {
		return provider.Status{}, provider.Failf("asked to fail")
	}
	st, err := step()
	if err == nil && st.Done && Fails(in) {
		return provider.Status{}, provider.Failf("asked to fail")
	}
	return st, err
}

// Provision implements provider.Provider, as the methods below do.
func (f Failing) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return f.call(in, f.Late, func() (provider.Status, error) { return f.Provider.Provision(ctx, in) })
}

func (f Failing) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return f.call(in, false, func() (provider.Status, error) { return f.Provider.Update(ctx, in) })
}

func (f Failing) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return f.call(in, false, func() (provider.Status, error) { return f.Provider.Deprovision(ctx, in) })
}

func (f Failing) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return f.call(b.Instance, f.Late, func() (provider.Status, error) { return f.Provider.Bind(ctx, b) })
}

func (f Failing) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return f.call(b.Instance, false, func() (provider.Status, error) { return f.Provider.Unbind(ctx, b) })
}
