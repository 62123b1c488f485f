package storetest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/longshore/longshore/internal/records/store"
)

// ErrLost stands for an answer that never came: like any error that is not
// of package store, it says nothing about whether the commit happened.
var ErrLost = errors.New("the answer was lost")

// Faulty is a store whose commits fail when a test says so. A nil function
// lets everything pass. Both may be called by many goroutines at once.
type Faulty struct {
	store.Store
	// Before is asked before each commit. If it returns an error, that is
	// the answer, and nothing is changed.
	Before func(changes []store.Change) error
	// After is asked after each commit that has succeeded. If it returns an
	// error, that is the answer, though everything is changed.
	After func(changes []store.Change) error
}

// Commit implements store.Store.
func (f *Faulty) Commit(ctx context.Context, changes ...store.Change) error {
	if f.Before != nil {
		if err := f.Before(changes); err != nil {
			return err
		}
	}
	if err := f.Store.Commit(ctx, changes...); err != nil {
		return err
	}
	if f.After != nil {
		return f.After(changes)
	}
	return nil
}

// Nth returns a function for Faulty that fails with err when it is called for
// the nth time, counted from 1, and only then.
func Nth(n int, err error) func([]store.Change) error {
	var calls atomic.Int64
	return func([]store.Change) error {
		if calls.Add(1) == int64(n) {
			return err
		}
		return nil
	}
}

// ErrDied is the answer of a store that has died.
var ErrDied = errors.New("died")

// Dying is a store that dies after so many commits: nothing is changed any more.
func Dying(s store.Store, commits int) *Faulty {
	var made atomic.Int64
	return &Faulty{Store: s, Before: func([]store.Change) error {
		if made.Add(1) > int64(commits) {
			return ErrDied
		}
		return nil
	}}
}

// LoseAnswers wraps s so that the nth commit that succeeds, counted from 1,
// happens, but is answered with ErrLost.
func LoseAnswers(s store.Store, nth int) *Faulty {
	return &Faulty{Store: s, After: Nth(nth, ErrLost)}
}

// Overwriting is a store that takes the version that it meets for the one that it was told: of two writers, both win.
func Overwriting(s store.Store) store.Store { return overwriting{s} }

type overwriting struct{ store.Store }

func (s overwriting) Commit(ctx context.Context, changes ...store.Change) error {
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
