package ledger

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
)

// Facts are what a provider last told about an instance, for people. A page that wants newer
// facts writes a new Asked; of several pages that do so at once, one succeeds and asks.
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

// factsKept is how long facts are kept if no page asks for newer ones, and so the longest that
// they outlive their instance.
const factsKept = 7 * 24 * time.Hour

// Facts reads the facts of an instance, which may belong to an earlier life (see Of). Version 0
// means that there are none.
func (l *Ledger) Facts(ctx context.Context, instance lifecycle.Key) (Facts, error) {
	return read(ctx, l, Facts{Key: instance})
}

// Of returns the facts if they are those of the instance, and no facts if they are those of an earlier life of the id.
func (f Facts) Of(instance lifecycle.Record) Facts {
	if f.Incarnation == instance.Incarnation {
		return f
	}
	return Facts{Version: f.Version, Key: instance.Key, Incarnation: instance.Incarnation}
}
