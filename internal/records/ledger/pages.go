package ledger

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// A PagesKey is the data key of the pages, under which their links and sessions are sealed. It
// is itself sealed by the vault.
type PagesKey struct {
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

// PagesKey reads the data key of the pages; version 0 for none.
func (l *Ledger) PagesKey(ctx context.Context) (PagesKey, error) {
	return read(ctx, l, pagesKey(sortKey), PagesKey{})
}
