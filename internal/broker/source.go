package broker

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// An origin is what an instance is made from: a live instance, or what was retained of
// a deleted one. The zero origin is nothing.
type origin struct {
	source *lifecycle.Source
	live   lifecycle.Record
	kept   lifecycle.Retained
}

// target is the place where the instance is made.
func (o origin) target() lifecycle.Target {
	if o.source.Retained {
		return o.kept.Made.Target
	}
	return o.live.Made.Target
}

// commit is written with the beginning of the operation. It requires that a live source
// is unchanged, and reserves a retained one for the new instance.
func (o origin) commit(r lifecycle.Record) ledger.Change {
	if o.kept.Version > 0 {
		return ledger.Put(o.kept.Taken(r.Key, r.Operation.ID, r.Operation.Started))
	}
	return ledger.Check(o.live)
}

// mostHandle is the longest text that may name a source, in bytes.
const mostHandle = 2 * limits.Identifier

// origin finds what the request restores. It refuses every unusable name in the same
// words, so that nobody learns whether such a thing exists.
func (b *Broker) origin(ctx context.Context, q ProvisionRequest, provider string, plan catalog.Plan) (o origin, err error) {
	named := member(q.Parameters, plan.RestoreParameter)
	if named == nil {
		return o, nil
	}
	refused := lifecycle.RefuseSource(plan.RestoreParameter)
	var id string
	if json.Unmarshal(named, &id) != nil || id == "" || len(id) > mostHandle {
		return o, refused
	}
	if instance, incarnation, ok := lifecycle.ParseHandle(id); ok {
		o.kept, err = b.Records.Retained(ctx, lifecycle.Key{Platform: q.Platform, Instance: instance}, incarnation)
		if err != nil {
			return o, err
		}
		if o.source = o.kept.AsSource(provider, q.attributes()); o.source != nil {
			return o, nil
		}
	}
	o.kept = lifecycle.Retained{}
	if len(id) > limits.Identifier {
		return o, refused
	}
	if o.live, err = b.record(ctx, lifecycle.Key{Platform: q.Platform, Instance: id}); err != nil {
		return o, err
	}
	if o.source = o.live.AsSource(provider, q.attributes()); o.source == nil {
		return origin{}, refused
	}
	return o, nil
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
