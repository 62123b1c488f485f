package ledger

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
)

// Facts are what a provider last told of an instance, for people. Writing a new Asked is the
// right to ask: of several pages that want newer facts at once, one asks.
type Facts struct {
	Version     int64         `json:"-"`
	Key         lifecycle.Key `json:"key"`
	Incarnation string        `json:"incarnation"`
	// Asked is when the provider was last asked, and Answered when it last answered; zero
	// for never.
	Asked    time.Time      `json:"asked"`
	Answered time.Time      `json:"answered,omitzero"`
	Facts    provider.Facts `json:"facts,omitzero"`
}

// factsKept is how long facts are kept that nobody looks at: they outlive their instance by
// no more.
const factsKept = 7 * 24 * time.Hour

// Facts reads the facts of an instance, which may be those of an earlier life: see Of. Version
// 0 is for none.
func (l *Ledger) Facts(ctx context.Context, instance lifecycle.Key) (Facts, error) {
	return read(ctx, l, factsKey(instance), Facts{})
}

// Of are the facts where they are the instance's; those of an earlier life of the id are none.
func (f Facts) Of(instance lifecycle.Record) Facts {
	if f.Incarnation == instance.Incarnation {
		return f
	}
	return Facts{Version: f.Version, Key: instance.Key, Incarnation: instance.Incarnation}
}
