// Package cloudformation makes instances from a CloudFormation template: one stack for each
// instance, in an account that the operator names. It decides the next step (next.go) from the
// state of the stack and of the operation; one file (aws.go) makes the calls. Package plan holds
// the settings of plans, and package principal the principals of bindings.
package cloudformation

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
	"github.com/longshore/longshore/internal/provider/cloudformation/recent"
)

// Options configure a Provider.
type Options struct {
	// Broker is the broker's identity.
	Broker string
	// Scope begins the names of all things that the broker makes.
	Scope plan.Scope
	// Targets are the targets of today's settings.
	Targets plan.Targets
	// Config is the broker's own access to AWS: credentials, region, endpoint.
	Config aws.Config
	// Session is a policy that bounds the sessions of roles in other accounts; empty if there is
	// none.
	Session string
	// Emulated says that events carry no tokens of calls, as on LocalStack: the ids of events are
	// compared instead.
	Emulated bool
	// File reads a file of the compiled catalog by its digest.
	File func(digest string) ([]byte, bool)
	Now  func() time.Time
	// Log is for the operator; nil discards it.
	Log *slog.Logger
}

// A Provider makes instances through CloudFormation.
type Provider struct {
	Options
	// open opens a target; tests replace it.
	open  func(name string, t plan.Target) (cloud, func(plan.Location) *principal.Keeper)
	sites recent.Values[site] // opened sites, by the names of their targets
	saved recent.Values[bool] // saved templates, by target and digest
	rooms recent.Values[room] // by targets
}

var _ interface {
	provider.Provider
	provider.Refuser
	provider.Inventory
	provider.Quarantiner
	provider.Describer
} = (*Provider)(nil)

// New returns a provider. It does not reach any target yet.
func New(o Options) *Provider {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	p := &Provider{Options: o}
	p.open = func(_ string, t plan.Target) (cloud, func(plan.Location) *principal.Keeper) { return openAWS(o, t) }
	return p
}

// Targets returns the names of today's targets, in order, for a wired.Provider.
func (p *Provider) Targets(context.Context) ([]string, error) { return p.Options.Targets.Names(), nil }

// Provision implements provider.Provider.
func (p *Provider) Provision(ctx context.Context, in provider.Instance) (st provider.Status, err error) {
	s, st, err := p.begin(ctx, in)
	if s == nil {
		return st, err
	}
	switch {
	case in.Source != nil:
		return st, provider.Failf("This service cannot restore an instance from another one. Order a new one.")
	case s.m.Existing != nil:
		_, err := s.existing(ctx)
		return provider.Status{Done: err == nil, Percent: 100}, err
	}
	s.now.rule = plan.Empty // nobody has used the instance
	return s.advance(ctx, observed.provision)
}

// Update implements provider.Provider.
func (p *Provider) Update(ctx context.Context, in provider.Instance) (st provider.Status, err error) {
	s, st, err := p.begin(ctx, in)
	if s == nil {
		return st, err
	}
	if former, err := plan.Parse(in.Former); err == nil && (former.Existing == nil) != (s.m.Existing == nil) {
		// Hazard: the instance's stack would stay behind, since the broker looks for no stack when
		// the plan names an existing resource.
		return st, &provider.Failure{Message: textMoved, InstanceUsable: new(true), UpdateRepeatable: new(false)}
	}
	if s.m.Existing != nil {
		values, err := s.existing(ctx)
		if err != nil {
			return st, err
		}
		return s.rewrite(ctx, values)
	}
	return s.advance(ctx, observed.update)
}

// Deprovision implements provider.Provider.
func (p *Provider) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	s, st, err := p.begin(ctx, in)
	if s == nil {
		return st, err
	}
	if s.m.Existing != nil {
		return provider.Status{Done: true, Percent: 100, State: &provider.State{}}, nil
	}
	if in.Unfinished { // nobody has used the instance
		s.now.rule = plan.Empty
	}
	return s.advance(ctx, observed.deprovision)
}

// Refuses implements provider.Refuser. It looks into the instance before its bindings end.
func (p *Provider) Refuses(ctx context.Context, in provider.Instance) error {
	s, _, err := p.begin(ctx, in)
	if s == nil || s.m.Existing != nil || in.Unfinished {
		return err
	}
	if err := s.see(ctx); err != nil {
		return err
	}
	switch {
	case s.now.stack == nil || !s.now.ours() || !usable(s.now.stack.status):
		return nil
	case s.now.stack.protected:
		return s.fail(provider.Failure{Message: textProtected, InstanceUsable: new(true), Untouched: true})
	case s.now.rule != plan.Refuse:
		return nil
	}
	return s.full(ctx)
}

// Bind implements provider.Provider.
func (p *Provider) Bind(ctx context.Context, b provider.Binding) (st provider.Status, err error) {
	s, st, err := p.begin(ctx, b.Instance)
	if s == nil {
		return st, err
	}
	if s.m.Existing != nil {
		values, err := s.existing(ctx)
		if err != nil {
			return st, err
		}
		return s.bind(ctx, b, values)
	}
	if err := s.see(ctx); err != nil {
		return st, err
	}
	if f := s.now.bind(); f != nil {
		return st, f
	}
	if !made(s.now.stack.status) {
		return provider.Status{Description: "The instance is not ready yet"}, nil
	}
	return s.bind(ctx, b, s.stackValues())
}

func (s *step) bind(ctx context.Context, b provider.Binding, values map[string]string) (provider.Status, error) {
	st, err := s.principals.Bind(ctx, b, s.m, values)
	return st, s.explain(ctx, err)
}

// Unbind implements provider.Provider.
func (p *Provider) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	b.Instance.Snapshot = nil // a principal is found by its tags, without the plan's settings
	s, st, err := p.begin(ctx, b.Instance)
	if s == nil {
		return st, err
	}
	st, err = s.principals.Unbind(ctx, b)
	return st, s.explain(ctx, err)
}
