package ledger

import (
	"context"
	"time"
)

// A SweepLease says which run of the reaper may change anything, and until when. The
// lease of a run that died ends by itself.
type SweepLease struct {
	Holder string    `json:"holder"`
	Until  time.Time `json:"until,omitzero"`
	// Version is that of the record, 0 if there has never been one.
	Version int64 `json:"-"`
}

// Held reports whether somebody's lease still runs.
func (l SweepLease) Held(now time.Time) bool { return now.Before(l.Until) }

var sweepKey = reaperKey("LEASE")

// SweepLease reads the lease, whoever holds it.
func (l *Ledger) SweepLease(ctx context.Context) (SweepLease, error) {
	var lease SweepLease
	version, err := l.read(ctx, sweepKey, &lease)
	lease.Version = version
	return lease, err
}

// PutSweepLease takes the lease, or gives it back, as it was read.
func PutSweepLease(l SweepLease) Change {
	return Change{key: sweepKey, was: l.Version, body: l}
}
