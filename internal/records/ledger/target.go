package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

// sortTarget begins the sort keys of the uses of targets in the reaper's partition:
// those of one target stand together.
const sortTarget = "TARGET#"

// pastAll follows on each incarnation.
const pastAll = "\U0010ffff"

func targetOf(u lifecycle.TargetUse) string {
	return sortTarget + escape.Replace(u.Provider) + "#" + escape.Replace(u.Target) + "#"
}

func targetKey(u lifecycle.TargetUse) store.Key { return reaperKey(targetOf(u) + u.Incarnation) }

// TargetUse reads the version at which a use stands; 0 if it does not.
func (l *Ledger) TargetUse(ctx context.Context, u lifecycle.TargetUse) (lifecycle.TargetUse, error) {
	version, err := l.read(ctx, targetKey(u), &lifecycle.TargetUse{})
	u.Version = version
	return u, err
}

// PutTargetUse writes a use at the version it was read at.
func PutTargetUse(u lifecycle.TargetUse) Change {
	return Change{key: targetKey(u), was: u.Version, body: u, due: u.Due}
}

// FirstTargetUse is written with the record that first names the target of an
// incarnation: from then on the inventory looks there.
func FirstTargetUse(was, is lifecycle.Record, now time.Time) Change {
	known := was.Made.Target.Name != "" && was.Incarnation == is.Incarnation
	if known || is.Made.Target.Name == "" || is.IsBinding() {
		return Change{}
	}
	return PutTargetUse(is.TargetUse(now))
}

// DeleteTargetUse drops a use.
func DeleteTargetUse(u lifecycle.TargetUse) Change {
	return Change{action: store.ActionDelete, key: targetKey(u), was: u.Version}
}

// NextTargetUse reads the use that follows on another one, or the first use of the
// target that follows on the other one's; nil at the end. The zero use is before all.
func (l *Ledger) NextTargetUse(ctx context.Context, after lifecycle.TargetUse, elsewhere bool) (*lifecycle.TargetUse, error) {
	from := ""
	switch {
	case after == lifecycle.TargetUse{}:
	case elsewhere:
		from = targetOf(after) + pastAll
	default:
		from = targetKey(after).Sort
	}
	page, err := l.store.List(ctx, ReaperPartition, sortTarget, from, 1)
	if err != nil {
		return nil, fmt.Errorf("listing the targets in use: %w", err)
	}
	if len(page.Records) == 0 {
		return nil, nil
	}
	u := &lifecycle.TargetUse{}
	err = decode(page.Records[0], u)
	u.Version = page.Records[0].Version
	return u, err
}
