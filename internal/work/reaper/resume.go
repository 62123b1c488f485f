package reaper

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/records/ledger"
)

// Resume ends a halt, after an operator has looked at the reason. It restarts the day's count,
// and records which broker the table belongs to if the table does not say so. It retries while
// other runs write at the same time.
func Resume(ctx context.Context, records InventoryRecords, whose ledger.Identity, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, resumeTimeout)
	defer cancel()
	return ledger.Again(ctx, func() error {
		state, err := records.Inventory(ctx)
		if err != nil {
			return err
		}
		identity, err := records.Identity(ctx)
		if err != nil {
			return err
		}
		state.Halt, state.Unseen, state.Pass, state.Orphans, state.Since, state.Due = nil, nil, nil, 0, now, now
		changes := []ledger.Change{ledger.Put(state)}
		if identity.Deployment != whose.Deployment || identity.Broker != whose.Broker {
			identity.Deployment, identity.Broker, identity.Since = whose.Deployment, whose.Broker, now
			changes = append(changes, ledger.Put(identity))
		}
		return records.Commit(ctx, changes...)
	})
}

// resumeTimeout bounds the retries of Resume.
const resumeTimeout = 10 * time.Second
