package broker

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/limits"
)

// source finds the instance that the request restores, for its commit to check; nil
// if it restores none. Every name that does not lead to one is refused in the same
// words, whether or not there is such an instance.
func (b *Broker) source(
	ctx context.Context, q ProvisionRequest, provider string, plan catalog.Plan,
) (lifecycle.Record, *lifecycle.Source, error) {
	named := member(q.Parameters, plan.RestoreParameter)
	if named == nil {
		return lifecycle.Record{}, nil, nil
	}
	refused := lifecycle.RefuseSource(plan.RestoreParameter)
	var id string
	if json.Unmarshal(named, &id) != nil || id == "" || len(id) > limits.Identifier {
		return lifecycle.Record{}, nil, refused
	}
	r, err := b.record(ctx, lifecycle.Key{Platform: q.Platform, Instance: id})
	if err != nil {
		return lifecycle.Record{}, nil, err
	}
	source := r.AsSource(provider, q.attributes())
	if source == nil {
		return lifecycle.Record{}, nil, refused
	}
	return r, source, nil
}

// sourceStays refuses an update that names another source than the instance was
// restored from: it would not be restored again.
func sourceStays(plan catalog.Plan, before, after json.RawMessage) error {
	name := plan.RestoreParameter
	if bytes.Equal(member(before, name), member(after, name)) {
		return nil
	}
	return lifecycle.RefuseSourceChange(name)
}

// member is a member of an object; nil if it is absent or null, or has no name.
func member(object json.RawMessage, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if name == "" || json.Unmarshal(object, &members) != nil || string(members[name]) == "null" {
		return nil
	}
	return members[name]
}
