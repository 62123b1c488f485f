// Package demo is a provider that makes nothing: platform teams test against its instances. The plan or
// the user chooses how long its work takes, and what fails.
//
// Settings of a plan, which no parameter overrides:
//
//   - delay_seconds: how long each operation takes;
//   - fail: the kind of operation that fails, or a list of them;
//   - grant: the content of a binding: volume, route or syslog; plain
//     credentials unless set;
//   - valid_days: how long credentials are valid, in days; for ever unless set.
//
// Parameters of an instance or a binding; others have no effect:
//
//   - delay_seconds: how long the operation takes, even a synchronous one;
//   - fail: true fails the operation that the parameter is given to; the name
//     of a kind fails the operations of that kind.
//
// A deletion has no parameters of its own: those of the last provision or update count, or those of
// the bind. The State of the record keeps them, and which deletion has failed. A deletion that is to
// fail does so in one operation; the next one succeeds, so that everything can be deleted.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
)

// A Provider is the demo. Its methods may be called concurrently. The answer of a step depends only
// on its input and the time, so that a repeated step gives the same answer.
type Provider struct {
	delay time.Duration
	now   func() time.Time
}

var (
	_ provider.Provider  = (*Provider)(nil)
	_ provider.Describer = (*Provider)(nil)
)

// New returns a provider. delay is how long an asynchronous operation takes if neither the plan nor
// the parameters say.
func New(delay time.Duration, now func() time.Time) *Provider {
	return &Provider{delay: delay, now: now}
}

// Provision implements provider.Provider.
func (p *Provider) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.step(ctx, in, in.Parameters, in.State)
}

// Update implements provider.Provider.
func (p *Provider) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.step(ctx, in, in.Parameters, in.State)
}

// Deprovision implements provider.Provider.
func (p *Provider) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.step(ctx, in, nil, in.State)
}

// Bind implements provider.Provider.
func (p *Provider) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	st, err := p.step(ctx, b.Instance, b.Parameters, b.State)
	if err == nil && st.Done {
		st.Grant, err = grantOf(b)
	}
	return st, err
}

// Unbind implements provider.Provider.
func (p *Provider) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.step(ctx, b.Instance, nil, b.State)
}

// Describe implements provider.Describer: the only thing that the demo can describe is the state of
// the record.
func (p *Provider) Describe(ctx context.Context, in provider.Instance) (provider.Facts, error) {
	size := int64(len(in.State.Data))
	return provider.Facts{Engine: "Demo", Region: "nowhere", Size: &size, SizeLimit: limits.State}, ctx.Err()
}

// step makes one step of the operation of an instance or its binding. The operation ends when the delay since
// its order is over.
func (p *Provider) step(
	ctx context.Context, in provider.Instance, parameters json.RawMessage, s provider.State,
) (st provider.Status, err error) {
	if err := ctx.Err(); err != nil {
		return st, err
	}
	var was memory
	if err := s.Read(stateFormat, &was); err != nil {
		return st, err
	}
	is, op := was, in.Operation
	if !op.Kind.Deletes() {
		if is.Asked, err = askedBy(parameters); err != nil {
			return st, failed(op.Kind, err.Error())
		}
	}
	plan := settingsOf(in.Settings)
	delay := p.delay
	switch {
	case plan.Delay != nil:
		delay = seconds(*plan.Delay)
	case is.Asked.Delay != nil:
		delay = seconds(*is.Asked.Delay)
	case op.Synchronous:
		delay = 0
	}
	fails := slices.Contains(is.Asked.Fail, op.Kind) || slices.Contains(plan.Fail, op.Kind)
	if op.Kind.Deletes() {
		if fails = fails && (was.Failed == "" || was.Failed == op.ID); fails {
			is.Failed = op.ID
		}
	}
	left := min(op.Started.Add(delay).Sub(p.now()), delay)  // clocks differ
	if op.Kind != operation.Update || left <= 0 && !fails { // a failed update changes nothing
		st.State = is.since(was)
	}
	switch {
	case left > 0:
		st.Percent, st.After = 99-int(99*left/delay), min(max(left, minAfter), maxAfter)
		st.Description = fmt.Sprintf("%s, about %v left", words[op.Kind].doing, (left + time.Second - 1).Truncate(time.Second))
	case fails:
		f := failed(op.Kind, fmt.Sprintf(`The demo failed this %s because the plan or the parameter "fail" asks for it.`,
			op.Kind))
		f.State = st.State
		return provider.Status{}, f
	default:
		st.Done, st.Percent, st.Description = true, 100, words[op.Kind].did
	}
	return st, nil
}

// stateFormat is the version of a memory's format.
const stateFormat = 1

// A memory is the state of an instance or a binding.
type memory struct {
	// Asked holds the parameters that still count.
	Asked asked `json:"asked,omitzero"`
	// Failed is the id of the deletion that failed because it was asked to.
	Failed string `json:"failed,omitempty"`
}

// since returns m as a State; nil if it equals was.
func (m memory) since(was memory) *provider.State {
	is, before := provider.StateOf(stateFormat, m), provider.StateOf(stateFormat, was)
	if string(is.Data) == string(before.Data) {
		return nil
	}
	return is
}

// These are bounds of the time until the next step.
const (
	minAfter = 50 * time.Millisecond
	maxAfter = 10 * time.Second
)

// words are for the platform's users: during an operation, after its success, and as advice after
// its failure.
var words = map[operation.Kind]struct{ doing, did, remedy string }{
	operation.Provision: {"Creating the instance", "The instance is ready.",
		"Leave the parameter out or choose another plan."},
	operation.Update: {"Updating the instance", "The instance is updated.",
		"The instance is as it was. Leave the parameter out, or set it to false, and update again."},
	operation.Deprovision: {"Deleting the instance", "The instance is deleted.",
		"Delete the instance again: a deletion fails only once."},
	operation.Bind: {"Creating the binding", "The binding is ready.",
		"Leave the parameter out or choose another plan."},
	operation.Unbind: {"Deleting the binding", "The binding is deleted.",
		"Delete the binding again: a deletion fails only once."},
}

// failed returns a failure that leaves an instance as it was.
func failed(kind operation.Kind, message string) *provider.Failure {
	f := provider.Failf("%s %s", message, words[kind].remedy)
	switch kind {
	case operation.Update:
		f.InstanceUsable, f.UpdateRepeatable = new(true), new(true)
	case operation.Deprovision:
		f.InstanceUsable = new(true)
	}
	return f
}
