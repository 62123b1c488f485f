package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
)

// waits returns once so many commits wait to be written.
func waits(s *bolt.Store, commits int) {
	for s.Waiting() != commits {
		runtime.Gosched()
	}
}

// grouped starts the commits one after the other while none may write, so that they make one group in this order, calls
// meanwhile while they wait, and returns their errors.
func grouped(s *bolt.Store, meanwhile func(), commits ...func() error) []error {
	release, answers := s.HoldCommits(), make([]error, len(commits))
	var all sync.WaitGroup
	for i, commit := range commits {
		all.Go(func() { answers[i] = commit() })
		waits(s, i+1)
	}
	if meanwhile != nil {
		meanwhile()
	}
	release()
	all.Wait()
	return answers
}

// Commits that wait for the disk are written together, in one transaction.
func TestWaitingCommitsShareATransaction(t *testing.T) {
	s := open(t, newPath(t))
	var commits []func() error
	for i := range 64 {
		r := fixture("partition", fmt.Sprint("record ", i))
		commits = append(commits, func() error { return s.Commit(t.Context(), store.Put(r)) })
	}
	before := s.Transactions()
	for i, err := range grouped(s, nil, commits...) {
		expect.OK(t, err, "commit", i)
	}
	expect.Same(t, "transactions of 64 commits that waited", 1, s.Transactions()-before)
	expect.Same(t, "records", 64, len(expect.Get(s.List(t.Context(), "partition", "", "", 0))(t).Records))

	// A group in which all is refused writes nothing: its commits are at version 0, and the records at 1.
	before = s.Transactions()
	for _, err := range grouped(s, nil, commits[0], commits[1]) {
		expect.Fails(t, "a commit", store.ErrConflict, err)
	}
	expect.Same(t, "transactions of commits that are refused", 0, s.Transactions()-before)
}

// Each set of a group is checked as a whole against the sets before it, and is then written as a whole.
func TestAGroupIsCheckedInOrder(t *testing.T) {
	s := open(t, newPath(t))
	a, b := fixture("partition", "a"), fixture("partition", "b")
	second := a
	second.Version, second.Writer = 1, "the second"
	cancelled, cancel := context.WithCancel(t.Context())
	defer cancel()
	put := func(ctx context.Context, changes ...store.Change) func() error {
		return func() error { return s.Commit(ctx, changes...) }
	}
	leaves := func() { // while it waits
		cancel()
		waits(s, 4)
	}
	answers := grouped(s, leaves, put(t.Context(), store.Put(a)),
		put(t.Context(), store.Put(b), store.Put(a)),               // a exists by now: nothing of it is written
		put(t.Context(), store.Put(second), store.Check(b.Key, 0)), // builds on the first
		put(cancelled, store.Put(b)),
		put(t.Context(), store.Put(b)),
	)
	for i, want := range []error{nil, store.ErrConflict, nil, context.Canceled, nil} {
		expect.Fails(t, fmt.Sprintf("commit %d", i), want, answers[i])
	}
	for key, want := range map[store.Key]int64{a.Key: 2, b.Key: 1} {
		expect.Same(t, "the version of "+key.Sort, want, expect.Get(s.Get(t.Context(), key))(t).Version)
	}
	expect.Same(t, "the last writer", "the second", expect.Get(s.Get(t.Context(), a.Key))(t).Writer)
}

// Where the disk fails, nobody is told of a conflict: it may have been one with a set that is not on the disk.
func TestAGroupThatFailsIsUnknownToAll(t *testing.T) {
	path := newPath(t)
	s := expect.Get(bolt.Open(path, bolt.Options{}))(t)
	r := fixture("partition", "sort")
	commit := func() error { return s.Commit(t.Context(), store.Put(r)) }
	for i, err := range grouped(s, func() { expect.OK(t, s.LoseFile()) }, commit, commit) {
		if err == nil || errors.Is(err, store.ErrConflict) {
			t.Errorf("commit %d answers %v although nothing can be written", i, err)
		}
	}
	_ = s.Close() // its file is gone
	again := open(t, path, bolt.Options{MustExist: true})
	expect.Fails(t, "a commit that failed happened", store.ErrNotFound, expect.Err(again.Get(t.Context(), r.Key)))
}

// Commits that have been answered leave nothing in memory.
func TestAnsweredCommitsAreForgotten(t *testing.T) {
	s := open(t, newPath(t))
	var bodies []weak.Pointer[byte]
	var commits []func() error
	for i := range 5 {
		r := fixture("partition", fmt.Sprint("record ", i))
		r.Body = make([]byte, 1<<16)
		bodies = append(bodies, weak.Make(&r.Body[0]))
		commits = append(commits, func() error { return s.Commit(t.Context(), store.Put(r)) })
	}
	for _, err := range grouped(s, nil, commits...) {
		expect.OK(t, err)
	}
	clear(commits)
	s.HoldCommits()() // the writer has ended
	runtime.GC()
	for i, body := range bodies {
		if body.Value() != nil {
			t.Errorf("the body of commit %d is still in memory", i)
		}
	}
}

// A disk that hangs keeps nobody waiting whose context has ended.
func TestADiskThatHangs(t *testing.T) {
	writes, goOn := make(chan bool, 2), make(chan bool)
	s := open(t, newPath(t), bolt.Options{Clock: func() time.Time {
		writes <- true
		<-goOn
		return due
	}})
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	r := fixture("partition", "sort")
	go func() { answer <- s.Commit(ctx, store.Put(r)) }()
	<-writes
	cancel()
	if err := <-answer; !errors.Is(err, bolt.ErrUnknown) || errors.Is(err, context.Canceled) {
		t.Errorf("a commit that is being written: got %v, want %v, since it may happen yet", err, bolt.ErrUnknown)
	}
	close(goOn)
	expect.OK(t, s.Commit(t.Context(), store.Put(fixture("partition", "next"))))
	expect.Get(s.Get(t.Context(), r.Key))(t)
}

// After a commit that the disk did not keep, nothing is answered from the file: what it says now may not be on the disk.
func TestADiskThatFails(t *testing.T) {
	path := newPath(t)
	var s *bolt.Store
	s, err := bolt.Open(path, bolt.Options{Clock: func() time.Time {
		if err := s.LoseFile(); err != nil { // in the midst of the commit
			t.Error(err)
		}
		return due
	}})
	expect.OK(t, err)
	r := fixture("partition", "sort")
	for call, err := range map[string]error{
		"the commit itself": s.Commit(t.Context(), store.Put(r)),
		"the next one":      s.Commit(t.Context(), store.Put(r)),
		"a read":            expect.Err(s.Get(t.Context(), r.Key)),
	} {
		expect.Fails(t, call, bolt.ErrDiskFailed, err)
	}
	_ = s.Close() // its file is gone
	expect.Fails(t, "after the next start", store.ErrNotFound,
		expect.Err(open(t, path, bolt.Options{MustExist: true}).Get(t.Context(), r.Key)))
}
