package ledger

import (
	"context"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

// sortQuarantine begins the sort keys of quarantines in the reaper's partition.
const sortQuarantine = "QUARANTINE#"

func quarantineKey(provider, name string) store.Key {
	return reaperKey(sortQuarantine + escape.Replace(provider) + "#" + name)
}

// Quarantine reads the quarantine of a thing; version 0 if it is in none.
func (l *Ledger) Quarantine(ctx context.Context, provider, name string) (lifecycle.Quarantine, error) {
	var q lifecycle.Quarantine
	version, err := l.read(ctx, quarantineKey(provider, name), &q)
	q.Version = version
	return q, err
}

// PutQuarantine writes a quarantine at the version it was read at.
func PutQuarantine(q lifecycle.Quarantine) Change {
	return Change{key: quarantineKey(q.Provider, q.Name), was: q.Version, body: q, due: q.Due}
}

// DeleteQuarantine ends a quarantine; one of version 0 needs no change.
func DeleteQuarantine(q lifecycle.Quarantine) Change {
	if q.Version == 0 {
		return Change{}
	}
	return Change{action: store.ActionDelete, key: quarantineKey(q.Provider, q.Name), was: q.Version}
}

// Quarantines reads one page of what is in quarantine, in the order of the
// providers' and the things' names. What cannot be read is left out and told in the error
// beside the rest.
func (l *Ledger) Quarantines(ctx context.Context, after string) (page []lifecycle.Quarantine, next string, err error) {
	return listed(ctx, l, sortQuarantine, after, func(q *lifecycle.Quarantine, version int64) { q.Version = version })
}
