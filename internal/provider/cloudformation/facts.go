package cloudformation

import (
	"cmp"
	"context"
	"net"
	"net/url"

	"github.com/longshore/longshore/internal/base/provider"
)

// Describe implements provider.Describer, from the stack alone: asking each service about its
// resources would take rights that the broker needs for nothing else.
func (p *Provider) Describe(ctx context.Context, in provider.Instance) (facts provider.Facts, err error) {
	s, _, err := p.begin(ctx, in)
	if s == nil {
		return facts, cmp.Or(err, errNone)
	}
	facts.Region = s.who.Region
	if s.m.Existing != nil {
		return facts, nil
	}
	if err := s.see(ctx); err != nil {
		return facts, err
	}
	if s.now.stack == nil || !s.now.ours() {
		return facts, errNone
	}
	// These outputs say where applications reach the resources of the stack.
	said := s.now.stack.outputs
	facts.Address = cmp.Or(said["Endpoint"], said["Address"], said["Host"], said["QueueUrl"])
	if port := said["Port"]; port != "" && facts.Address != "" {
		facts.Address = net.JoinHostPort(facts.Address, port)
	}
	facts.Console = "https://" + s.who.Console() + "/cloudformation/home?" + url.Values{"region": {s.who.Region}}.Encode() +
		"#/stacks/stackinfo?" + url.Values{"stackId": {s.now.stack.id}}.Encode()
	return facts, nil
}

// errNone says that there is no instance to describe.
var errNone error = provider.Failf(textNone)
