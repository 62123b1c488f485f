// Package storetest owns the proof that an adapter keeps the contract of
// package store: one suite, Run, which every adapter passes. It also has the
// wrappers Faulty and LoseAnswers, with which the tests of other rooms make
// commits fail before they happen or lose their answers after they did.
//
// It needs from an adapter a Factory of fresh stores that can be opened
// again. It asserts nothing that the contract does not promise: an index of
// what is due may lag and be spread over shards, pages may have any size and
// be empty, cursors are opaque. What an adapter has beyond the contract
// (files, locks, tables, page sizes) it leaves to the adapter's own tests.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/records/store"
)

// patience bounds all waiting, so that a store that never gets there fails
// the test instead of hanging it.
const patience = time.Minute

// A Factory makes a fresh and empty store, which nobody else uses. What has
// to be closed or removed it gives to t.Cleanup.
type Factory func(t *testing.T) *Harness

// A Harness is one store under test and what the suite must know about it.
type Harness struct {
	// Store is open. Reopen replaces it.
	Store store.Store
	// Again opens the same records as the next process would. The Store
	// before is used no more: it may be closed first.
	Again func(t *testing.T) store.Store
	// Ordered says that the index of what is due is one order, not one for
	// each shard: every page of Due then holds the earliest first.
	Ordered bool
	// Drops says that the store drops by itself what has expired, and does not
	// list it as due.
	Drops bool
	// Pause waits for a moment before an index that lags is read again, and
	// returns early if the context ends. Nil says that the index never lags:
	// whatever is not right at the first look is a failure.
	Pause func(ctx context.Context)
}

// Reopen opens the store again, over the same records.
func (h *Harness) Reopen(t *testing.T) {
	t.Helper()
	h.Store = h.Again(t)
}

// Eventually fails the test unless look returns nil: at once where the index
// never lags, else before the context ends.
func (h *Harness) Eventually(ctx context.Context, t *testing.T, look func() error) {
	t.Helper()
	for {
		err := look()
		if err == nil {
			return
		}
		if h.Pause == nil || ctx.Err() != nil {
			t.Fatal(err)
		}
		h.Pause(ctx)
	}
}

// Run proves a store. Each of its tests opens a store of its own.
func Run(t *testing.T, open Factory) {
	for _, suite := range []struct {
		name  string
		tests map[string]func(*testing.T, *Harness)
	}{
		{"Contract", contractTests},
		{"Records", recordTests},
		{"Commit", commitTests},
		{"List", listTests},
		{"Due", dueTests},
		{"Scan", scanTests},
		{"Races", raceTests},
		{"Load", loadTests},
	} {
		t.Run(suite.name, func(t *testing.T) {
			for name, test := range suite.tests {
				t.Run(name, func(t *testing.T) { test(t, open(t)) })
			}
		})
	}
}
