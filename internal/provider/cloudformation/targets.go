package cloudformation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
)

// A site is a target whose identity was proven a moment ago.
type site struct {
	cloud
	principals *principal.Keeper
	enter      func(plan.Location) *principal.Keeper // opens the principals of an account
	name       string
	target     plan.Target
	who        plan.Location
	proven     time.Time
}

func (s *site) recorded() provider.Target {
	return provider.Target{Name: s.name, Identity: s.who.Account + "/" + s.who.Region}
}

// values returns the values that texts of a plan may name: the given outputs of a stack, and those
// of the site.
func (s *step) values(outputs map[string]string) map[string]string {
	all := map[string]string{
		plan.ValueRegion: s.who.Region, plan.ValueAccount: s.who.Account, plan.ValuePartition: s.who.Partition,
		plan.ValueSuffix: s.who.Suffix(),
		plan.ValuePrefix: s.p.Scope.Prefix(),
	}
	maps.Copy(all, outputs)
	return all
}

// stackValues returns the values of an instance whose stack the step has seen.
func (s *step) stackValues() map[string]string {
	all := s.values(s.now.stack.outputs)
	all[plan.ValueSpacePrefix] = s.p.Scope.SpacePrefix(s.now.Space)
	return all
}

// proofTime is how long a process trusts that its credentials still lead to the same account.
const proofTime = time.Minute

// reach opens a target by its name. Its identity was proven at most proofTime ago.
func (p *Provider) reach(ctx context.Context, name string) (*site, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := p.Options.Targets.Named(name)
	if err != nil {
		return nil, err
	}
	s, opened := p.sites.Get(name)
	if !opened {
		t.Region = cmp.Or(t.Region, p.Config.Region)
		s = site{name: name, target: t}
		s.cloud, s.enter = p.open(name, t)
	}
	if now := p.Now(); now.Sub(s.proven) >= proofTime || now.Before(s.proven) {
		who, err := s.identify(ctx)
		if err != nil {
			return nil, s.explain(ctx, err)
		}
		if who != s.who {
			s.principals = s.enter(who)
		}
		s.who, s.proven = who, now
		p.sites.Put(name, s)
	}
	if account := s.target.Account; account != "" && account != s.who.Account {
		return nil, &target.Trouble{Kind: target.Other, Target: name, Message: fmt.Sprintf(
			"its credentials belong to the account %q, but the settings say %q: have its role lead to the "+
				"right one", s.who.Account, account)}
	}
	return &s, nil
}

// at reaches the target of an instance. The first step of an instance only learns the target's
// identity and makes nothing: later steps look for things in that target.
func (p *Provider) at(ctx context.Context, in provider.Instance) (*site, *provider.Target, error) {
	name := in.Target.Name
	if name == "" {
		name = p.Options.Targets.Choose(in)
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
		Message: fmt.Sprintf("it answers as %q, and this was made in %q: other credentials, or another region. "+
			"Have the settings lead to the right one", is.Identity, in.Target.Identity)}
}
