package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// mostHandle is the greatest length, in bytes, of a text that may name a source.
const mostHandle = 2 * limits.Identifier

// made reads the source that a request names: a live instance to restore from, or a kept life to take over.
// It completes fresh, and returns the live source and the change to commit when the operation begins. It
// refuses every unusable name in the same words, so that a developer cannot learn what exists.
func (b *Broker) made(
	ctx context.Context, q ProvisionRequest, plan catalog.Plan, fresh lifecycle.Record,
) (_ lifecycle.Record, source *lifecycle.Source, with ledger.Change, err error) {
	named := member(q.Parameters, plan.RestoreParameter)
	if named == nil {
		return fresh, nil, with, nil
	}
	refused := lifecycle.RefuseSource(plan.RestoreParameter)
	var id string
	if json.Unmarshal(named, &id) != nil || id == "" || len(id) > mostHandle {
		return fresh, nil, with, refused
	}
	if instance, incarnation, ok := lifecycle.ParseHandle(id); ok {
		kept, err := b.record(ctx, q.key(instance, "").Former(incarnation))
		if err != nil {
			return fresh, nil, with, err
		}
		if undeleted := kept.Undelete(fresh.Provider, q.attributes()); undeleted != nil {
			undeleted.Provider, undeleted.Attributes = fresh.Provider, fresh.Attributes
			undeleted.Made.State, err = b.resealed(ctx, kept.Key, q.key(q.InstanceID, ""), kept.Made.State)
			return *undeleted, nil, ledger.Delete(kept), err
		}
	}
	if len(id) > limits.Identifier {
		return fresh, nil, with, refused
	}
	live, err := b.record(ctx, q.key(id, ""))
	if err != nil {
		return fresh, nil, with, err
	}
	if source = live.AsSource(fresh.Provider, q.attributes()); source == nil {
		return fresh, nil, with, refused
	}
	fresh.Made.Target = live.Made.Target // the instance is restored where its source is
	return fresh, source, ledger.Check(live), nil
}

// resealed opens the provider's state of one record and seals it for another.
func (b *Broker) resealed(ctx context.Context, from, to lifecycle.Key, state lifecycle.Sealed) (lifecycle.Sealed, error) {
	plain, err := b.open(ctx, from, vault.State, state)
	switch {
	case errors.Is(err, vault.ErrSealed): // the key is lost: the provider finds its things by their tags
		return nil, nil
	case err != nil:
		return nil, err
	}
	return b.seal(ctx, to, vault.State, plain)
}

// sourceStays refuses an update that names another source than the one that the instance was
// restored from, since an update does not restore.
func sourceStays(plan catalog.Plan, before, after json.RawMessage) error {
	name := plan.RestoreParameter
	if bytes.Equal(member(before, name), member(after, name)) {
		return nil
	}
	return lifecycle.RefuseSourceChange(name)
}

// member returns a member of an object; nil if the member is absent or null, or name is empty.
func member(object json.RawMessage, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if name == "" || json.Unmarshal(object, &members) != nil || string(members[name]) == "null" {
		return nil
	}
	return members[name]
}
