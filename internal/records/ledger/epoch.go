package ledger

import (
	"context"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

// sortEpoch begins the sort keys of the epochs of targets in the reaper's partition.
const sortEpoch = "EPOCH#"

func epochKey(provider, identity string) store.Key {
	return reaperKey(sortEpoch + escape.Replace(provider) + "#" + identity)
}

// Epoch reads the latest epoch of a target; version 0 if none is known.
func (l *Ledger) Epoch(ctx context.Context, provider, identity string) (lifecycle.TargetEpoch, error) {
	e := lifecycle.TargetEpoch{Provider: provider, Identity: identity}
	version, err := l.read(ctx, epochKey(provider, identity), &e)
	e.Version = version
	return e, err
}

// PutEpoch writes an epoch at the version it was read at.
func PutEpoch(e lifecycle.TargetEpoch) Change {
	return Change{key: epochKey(e.Provider, e.Identity), was: e.Version, body: e}
}
