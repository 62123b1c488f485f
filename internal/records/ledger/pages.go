package ledger

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// A DataKey is the one of the table, under which names, links and sessions are sealed. It is
// itself sealed by the vault.
type DataKey struct {
	Version int64            `json:"-"`
	Sealed  lifecycle.Sealed `json:"sealed"`
}

// A UsedLink says that a link was exchanged for a session, for as long as the link would have
// been valid. Writing it at version 0 is the exchange: of two, one wins.
type UsedLink struct {
	Version int64     `json:"-"`
	ID      string    `json:"id"`
	Expires time.Time `json:"expires"`
}

// DataKey reads the data key of the table; version 0 for none.
func (l *Ledger) DataKey(ctx context.Context) (DataKey, error) {
	return read(ctx, l, pagesKey(sortKey), DataKey{})
}

// A PlatformAPI is where the API of a platform is, as the platform said in its last request.
type PlatformAPI struct {
	Version  int64  `json:"-"`
	Platform string `json:"platform"`
	Origin   string `json:"origin"`
}

// PlatformAPI reads where the API of a platform is; version 0 for unknown.
func (l *Ledger) PlatformAPI(ctx context.Context, platform string) (PlatformAPI, error) {
	return read(ctx, l, pagesKey(sortAPI+platform), PlatformAPI{Platform: platform})
}
