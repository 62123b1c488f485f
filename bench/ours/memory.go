package ours

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/store"
)

// A Memory is a store.Store that forgets everything when the process ends. It
// has what the measured requests need, and no listings.
type Memory struct {
	mu      sync.Mutex
	records map[store.Key]store.Record
}

// NewMemory makes an empty one.
func NewMemory() *Memory { return &Memory{records: map[store.Key]store.Record{}} }

// Get implements store.Store.
func (m *Memory) Get(_ context.Context, key store.Key) (store.Record, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[key]
	if !ok {
		return store.Record{}, store.ErrNotFound
	}
	r.Body = slices.Clone(r.Body)
	return r, nil
}

// Commit implements store.Store.
func (m *Memory) Commit(_ context.Context, changes ...store.Change) error {
	if err := store.CheckChanges(changes); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		if m.records[c.Record.Key].Version != c.Record.Version {
			return store.ErrConflict
		}
	}
	for _, c := range changes {
		switch r := c.Record; c.Action {
		case store.ActionPut:
			r.Version++
			r.Body = slices.Clone(r.Body)
			m.records[r.Key] = r
		case store.ActionDelete:
			delete(m.records, r.Key)
		}
	}
	return nil
}

var errNoListing = errors.New("the benchmark's store in memory has no listings")

// List implements store.Store, always with an error.
func (*Memory) List(context.Context, string, string, string) (store.Page, error) {
	return store.Page{}, errNoListing
}

// Due implements store.Store, always with an error.
func (*Memory) Due(context.Context, time.Time, string) (store.Page, error) {
	return store.Page{}, errNoListing
}
