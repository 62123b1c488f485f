package reaper

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/records/ledger"
)

// Resume ends a halt: an operator has looked at what was found. It starts the count of
// the day anew, and records whose table this is if the table does not say so. It
// retries while runs write at the same time.
func Resume(ctx context.Context, records Resumed, whose ledger.Identity, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, resumeTimeout)
	defer cancel()
	return ledger.Again(ctx, func(ctx context.Context) error { return resume(ctx, records, whose, now) })
}

// resumeTimeout bounds the retries of Resume.
const resumeTimeout = 10 * time.Second

func resume(ctx context.Context, records Resumed, whose ledger.Identity, now time.Time) error {
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
}

// Resumed is what Resume needs of the ledger, which documents it.
type Resumed interface {
	Inventory(ctx context.Context) (ledger.Inventory, error)
	Identity(ctx context.Context) (ledger.Identity, error)
	Commit(ctx context.Context, changes ...ledger.Change) error
}
