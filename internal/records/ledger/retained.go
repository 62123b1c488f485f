package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

// sortRetained begins the sort keys of what is retained, in the reaper's partition:
// one id may have been used, deleted and retained more than once.
const sortRetained = "RETAINED#"

// A key's ids may take so many bytes of the sort key; of longer ones, as many as
// retainedHead stand there, and a hash of all.
const (
	retainedIDs  = 800
	retainedHead = 700
)

func retainedKey(key lifecycle.Key, incarnation string) store.Key {
	ids := escape.Replace(key.Platform) + "#" + escape.Replace(key.Instance) + "#" + escape.Replace(incarnation)
	if len(ids) > retainedIDs {
		sum := sha256.Sum256([]byte(ids))
		ids = strings.ToValidUTF8(ids[:retainedHead], "") + "%~" + hex.EncodeToString(sum[:])
	}
	return reaperKey(sortRetained + ids)
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

// CheckRetained requires that what is retained is still as it was read; one without
// a key needs no change.
func CheckRetained(r lifecycle.Retained) Change {
	if r.Key == (lifecycle.Key{}) {
		return Change{}
	}
	return Change{action: store.ActionCheck, key: retainedKey(r.Key, r.Incarnation), was: r.Version}
}

// DeleteRetained forgets what is retained no more; one of version 0 needs no change.
func DeleteRetained(r lifecycle.Retained) Change {
	if r.Version == 0 {
		return Change{}
	}
	return Change{action: store.ActionDelete, key: retainedKey(r.Key, r.Incarnation), was: r.Version}
}

// AllRetained reads one page of what is retained, in the order of the platforms'
// and the instances' ids. What cannot be read is left out and told in the error beside the
// rest.
func (l *Ledger) AllRetained(ctx context.Context, after string) (page []lifecycle.Retained, next string, err error) {
	return listed(ctx, l, sortRetained, after, func(r *lifecycle.Retained, version int64) { r.Version = version })
}
