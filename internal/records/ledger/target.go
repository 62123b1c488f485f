package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/lifecycle"
)

// A TargetEpoch records the latest epoch that a target of a provider was raised to. All work in
// the target shares this one record.
type TargetEpoch struct {
	// Version is the version that was read; 0 for none.
	Version  int64  `json:"-"`
	Provider string `json:"provider"`
	Identity string `json:"identity"` // the target's identity
	target.Known
}

// Epoch reads the latest epoch of a target; version 0 if none is known.
func (l *Ledger) Epoch(ctx context.Context, provider, identity string) (TargetEpoch, error) {
	return read(ctx, l, TargetEpoch{Provider: provider, Identity: identity})
}

// pastAll sorts after every incarnation.
const pastAll = "\U0010ffff"

// TargetUse returns the use with the version at which it is stored; 0 if it is not stored.
func (l *Ledger) TargetUse(ctx context.Context, u lifecycle.TargetUse) (lifecycle.TargetUse, error) {
	stored, err := read(ctx, l, u)
	u.Version = stored.Version
	return u, err
}

// FirstTargetUse returns the change to commit with the record that first names the target of an
// incarnation. From then on, the inventory looks at that target.
func FirstTargetUse(was, is lifecycle.Record, now time.Time) Change {
	known := was.Made.Target.Name != "" && was.Incarnation == is.Incarnation
	if known || is.Made.Target.Name == "" || is.IsBinding() {
		return Change{}
	}
	return Put(is.TargetUse(now))
}

// NextTargetUse reads the use that follows after or, if elsewhere is set, the first use of the
// target that follows after's target; nil at the end. The zero use comes before all others.
func (l *Ledger) NextTargetUse(ctx context.Context, after lifecycle.TargetUse, elsewhere bool) (*lifecycle.TargetUse, error) {
	from := ""
	switch {
	case after == lifecycle.TargetUse{}:
	case elsewhere:
		from = targetOf(after) + pastAll
	default:
		from = targetOf(after) + after.Incarnation
	}
	page, err := l.store.List(ctx, ReaperPartition, sortTarget, from, 1)
	if err != nil {
		return nil, fmt.Errorf("listing the targets in use: %w", err)
	}
	if len(page.Records) == 0 {
		return nil, nil
	}
	return entryIn[lifecycle.TargetUse](page.Records[0])
}
