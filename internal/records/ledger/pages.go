package ledger

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// A DataKey is the table's data key, under which names, links and sessions are sealed. The key
// itself is sealed by the vault.
type DataKey struct {
	Version int64            `json:"-"`
	Sealed  lifecycle.Sealed `json:"sealed"`
}

// A UsedLink says that a link was exchanged for a session. It is kept for as long as the link
// would have been valid. Writing it at version 0 is the exchange, so of two attempts one wins.
type UsedLink struct {
	Version int64     `json:"-"`
	ID      string    `json:"id"`
	Expires time.Time `json:"expires"`
}

// DataKey reads the data key of the table; version 0 if there is none.
func (l *Ledger) DataKey(ctx context.Context) (DataKey, error) {
	return read(ctx, l, DataKey{})
}

// A PlatformAPI is the address of a platform's API, as the platform gave it in its last request.
type PlatformAPI struct {
	Version  int64  `json:"-"`
	Platform string `json:"platform"`
	Origin   string `json:"origin"`
}

// PlatformAPI reads the address of a platform's API; version 0 if it is unknown.
func (l *Ledger) PlatformAPI(ctx context.Context, platform string) (PlatformAPI, error) {
	return read(ctx, l, PlatformAPI{Platform: platform})
}
