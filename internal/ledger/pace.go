package ledger

import (
	"context"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/store"
)

// PaceKey names the operations that a pace is of.
type PaceKey struct {
	ServiceID, PlanID string
	Kind              lifecycle.Kind
}

func (k PaceKey) record() store.Key {
	return store.Key{Partition: "PACE#" + escape.Replace(k.ServiceID) + "#" + k.PlanID, Sort: string(k.Kind)}
}

// Pace reads how long such operations take; a zero pace if none has ended yet.
func (l *Ledger) Pace(ctx context.Context, k PaceKey) (lifecycle.Pace, error) {
	var p lifecycle.Pace
	version, err := l.read(ctx, k.record(), &p)
	p.Version = version
	return p, err
}

// PutPace writes a pace as it was read.
func PutPace(k PaceKey, p lifecycle.Pace) Change {
	return Change{key: k.record(), was: p.Version, body: p}
}
