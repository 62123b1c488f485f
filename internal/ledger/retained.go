package ledger

import (
	"context"
	"fmt"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/store"
)

// sortRetained begins the sort keys of what is retained, in the reaper's partition:
// one id may have been used, deleted and retained more than once.
const sortRetained = "RETAINED#"

func retainedKey(key lifecycle.Key, incarnation string) store.Key {
	return reaperKey(sortRetained + escape.Replace(key.Platform) + "#" + escape.Replace(key.Instance) + "#" + incarnation)
}

// Retained reads what is retained of an instance; version 0 for nothing.
func (l *Ledger) Retained(ctx context.Context, key lifecycle.Key, incarnation string) (lifecycle.Retained, error) {
	var r lifecycle.Retained
	version, err := l.read(ctx, retainedKey(key, incarnation), &r)
	r.Version = version
	return r, err
}

// PutRetained writes what is retained at the version it was read at.
func PutRetained(r lifecycle.Retained) Change {
	return Change{key: retainedKey(r.Key, r.Incarnation), was: r.Version, body: r, due: r.Due}
}

// AllRetained reads one page of what is retained, in the order of the platforms'
// and the instances' ids.
func (l *Ledger) AllRetained(ctx context.Context, after string) (page []lifecycle.Retained, next string, err error) {
	found, err := l.store.List(ctx, ReaperPartition, sortRetained, after, 0)
	if err != nil {
		return nil, "", fmt.Errorf("listing what is retained: %w", err)
	}
	for _, r := range found.Records {
		var kept lifecycle.Retained
		if err := decode(r, &kept); err != nil {
			return nil, "", err
		}
		kept.Version = r.Version
		page = append(page, kept)
	}
	return page, found.Next, nil
}
