package broker

import (
	"context"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/ledger"
)

// Bounds of Retry-After, unless the options have others.
const (
	MinRetryAfter     = time.Second
	MaxRetryAfter     = time.Minute
	defaultRetryAfter = 5 * time.Second
)

const (
	// paceKeep is how long a pace is used without reading it again, so that
	// accepting a request costs no reading of its own.
	paceKeep = time.Minute
	// pacesKept bounds the memory.
	pacesKept = 1000
)

// paces are those that were read lately. They are advice only: a broker that
// forgets them answers with a default.
type paces struct {
	mu   sync.Mutex
	kept map[ledger.PaceKey]keptPace
}

type keptPace struct {
	mean time.Duration
	read time.Time
}

// expected is how long an operation is likely to take; zero if that is not
// known.
func (b *Broker) expected(ctx context.Context, k ledger.PaceKey, now time.Time) time.Duration {
	b.paces.mu.Lock()
	found, ok := b.paces.kept[k]
	b.paces.mu.Unlock()
	if ok && now.Sub(found.read) < paceKeep {
		return found.mean
	}
	p, err := b.Records.Pace(ctx, k)
	if err != nil {
		b.Log.WarnContext(ctx, "how long operations take cannot be read", "plan", k.PlanID, "kind", string(k.Kind), "error", err)
		return found.mean
	}
	b.paces.mu.Lock()
	defer b.paces.mu.Unlock()
	if b.paces.kept == nil || len(b.paces.kept) >= pacesKept {
		b.paces.kept = map[ledger.PaceKey]keptPace{}
	}
	b.paces.kept[k] = keptPace{mean: p.Mean, read: now}
	return p.Mean
}
