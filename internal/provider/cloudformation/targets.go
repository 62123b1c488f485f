package cloudformation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// DefaultTarget is the name of the target of whoever chooses none: the caller's own
// account and region, unless the settings say otherwise.
const DefaultTarget = "default"

// Targets are where instances are made.
type Targets struct {
	// Named are the targets by their names. DefaultTarget is always there.
	Named map[string]plan.Target
	// Rules choose, the first that fits; then the plan's own setting target counts,
	// then DefaultTarget.
	Rules []plan.TargetRule
}

// settingTarget is the setting of a plan that names a target.
const settingTarget = "target"

// choose is the name of the target of a new instance.
func (t Targets) choose(in provider.Instance) string {
	for _, r := range t.Rules {
		if (r.Platform == "" || r.Platform == in.Platform) && (r.Plan == "" || r.Plan == in.PlanID) {
			return r.Target
		}
	}
	name, _ := in.Settings[settingTarget].(string)
	return cmp.Or(name, DefaultTarget)
}

// named looks up a target by its name.
func (t Targets) named(name string) (plan.Target, error) {
	at, ok := t.Named[name]
	if !ok && name != DefaultTarget {
		return at, &target.Trouble{Kind: target.Unknown, Target: name,
			Message: "it is not in today's settings: name it in them again"}
	}
	return at, nil
}

func (t Targets) names() []string {
	all := maps.Clone(t.Named)
	if all == nil {
		all = map[string]plan.Target{}
	}
	all[DefaultTarget] = t.Named[DefaultTarget]
	return slices.Sorted(maps.Keys(all))
}

// A site is a target whose identity is proven, in one step.
type site struct {
	cloud
	principals
	scope  plan.Scope
	name   string
	target plan.Target
	who    plan.Location
}

func (s *site) recorded() provider.Target {
	return provider.Target{Name: s.name, Identity: s.who.Account + "/" + s.who.Region}
}

// values are what texts of a plan may name beside the outputs of a stack.
func (s *site) values(outputs map[string]string) map[string]string {
	all := map[string]string{
		plan.ValueRegion: s.who.Region, plan.ValueAccount: s.who.Account, plan.ValuePartition: s.who.Partition,
		plan.ValueSuffix: s.who.Suffix(),
		plan.ValuePrefix: s.scope.Prefix(),
	}
	maps.Copy(all, outputs)
	return all
}

// stackValues are those of an instance whose stack was seen.
func (s *step) stackValues() map[string]string {
	all := s.values(s.now.stack.outputs)
	all[plan.ValueSpacePrefix] = s.scope.SpacePrefix(s.now.Space)
	return all
}

// proofTime is how long a process trusts that its credentials still lead to the
// account that they led to.
const proofTime = time.Minute

// sites are the ways to targets that a process has opened.
type sites struct {
	mu     sync.Mutex
	opened map[string]opened
}

type opened struct {
	cloud      cloud
	enter      func(plan.Location) principals
	principals principals
	who        plan.Location
	proven     time.Time
}

// reach is the way to the target of a name, proven a moment ago at most.
func (p *Provider) reach(ctx context.Context, name string) (*site, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := p.targets.named(name)
	if err != nil {
		return nil, err
	}
	t.Region = cmp.Or(t.Region, p.region)
	o, err := p.prove(ctx, name, t)
	if err != nil {
		return nil, err
	}
	who := o.who
	s := &site{cloud: o.cloud, principals: o.principals, scope: p.scope, name: name, target: t, who: who}
	if t.Account != "" && t.Account != who.Account {
		return nil, &target.Trouble{Kind: target.Other, Target: name, Message: fmt.Sprintf(
			"its credentials are of the account %q, and the settings say %q: have its role lead to the right one", who.Account,
			t.Account)}
	}
	return s, nil
}

// prove opens the way to a target, and asks whose account it leads to.
func (p *Provider) prove(ctx context.Context, name string, t plan.Target) (opened, error) {
	p.sites.mu.Lock()
	o, ok := p.sites.opened[name]
	p.sites.mu.Unlock()
	if !ok {
		o.cloud, o.enter = p.open(name, t)
	}
	now := p.now()
	if ok && now.Sub(o.proven) < proofTime && !now.Before(o.proven) {
		return o, nil
	}
	who, err := o.cloud.identify(ctx)
	if err != nil {
		return o, p.explain(ctx, name, err)
	}
	if who != o.who {
		o.principals = o.enter(who)
	}
	o.who, o.proven = who, now
	p.sites.mu.Lock()
	defer p.sites.mu.Unlock()
	p.sites.opened[name] = o
	return o, nil
}

// at reaches the target of an instance. The first step of an instance learns its
// identity and makes nothing: what it makes is looked for there.
func (p *Provider) at(ctx context.Context, in provider.Instance) (*site, *provider.Target, error) {
	name := in.Target.Name
	if name == "" {
		name = p.targets.choose(in)
	}
	s, err := p.reach(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	is := s.recorded()
	switch in.Target.Identity {
	case is.Identity:
		return s, nil, nil
	case "":
		return s, &is, nil
	}
	return nil, nil, &target.Trouble{Kind: target.Other, Target: name,
		Message: fmt.Sprintf("it answers as %q, and this was "+
			"made in %q: other credentials, or another region. Have the settings lead to the right one", is.Identity,
			in.Target.Identity)}
}
