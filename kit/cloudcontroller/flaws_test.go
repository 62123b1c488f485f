package cloudcontroller_test

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

// forgetful records do not tell when something was deleted.
func forgetful(r broker.Records) broker.Records { return forgetfulRecords{r} }

type forgetfulRecords struct{ broker.Records }

func (f forgetfulRecords) Record(ctx context.Context, key lifecycle.Key, at time.Time) (lifecycle.Record, error) {
	r, err := f.Records.Record(ctx, key, at)
	r.DeleteReceived = time.Time{}
	return r, err
}

// overwriting takes the version that it meets for the one that it was told.
func overwriting(s store.Store) store.Store { return overwritingStore{s} }

type overwritingStore struct{ store.Store }

func (s overwritingStore) Commit(ctx context.Context, changes ...store.Change) error {
	for {
		err := s.Store.Commit(ctx, changes...)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		for n := range changes {
			r, err := s.Get(ctx, changes[n].Record.Key)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			changes[n].Record.Version = r.Version
		}
	}
}
