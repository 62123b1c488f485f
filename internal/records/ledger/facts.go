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

// Facts reads the facts of an instance; version 0 for none. Those of an earlier life of the id
// are none.
func (l *Ledger) Facts(ctx context.Context, instance lifecycle.Record) (Facts, error) {
	fresh := Facts{Key: instance.Key, Incarnation: instance.Incarnation}
	f, err := read(ctx, l, factsKey(instance.Key), fresh)
	if f.Incarnation != fresh.Incarnation {
		fresh.Version = f.Version
		return fresh, err
	}
	return f, err
}
