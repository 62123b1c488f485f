// Package workflowtest is the one suite that every workflow engine passes.
package workflowtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/test/expect"
)

// A Factory makes an engine that calls step and, between steps, does not wait
// longer than it must: wait is told each pause that the engine was asked for.
// A Factory makes an engine, and stops it by t.Cleanup.
type Factory func(t *testing.T, step workflow.Step, wait func(time.Duration)) workflow.Engine

// limit is how long anything may take.
const limit = 30 * time.Second

func ref(t *testing.T, attempt int) workflow.Ref {
	return workflow.Ref{
		Token: lifecycle.Token{
			Operation: strings.Repeat("A", lifecycle.OperationIDLength),
			Key:       lifecycle.Key{Platform: "p", Instance: t.Name() + "/ä #1", Binding: "b"},
		},
		Attempt: attempt,
	}
}

// A script is a step whose outcomes are given; it counts its calls.
type script struct {
	mu       sync.Mutex
	outcomes []workflow.Outcome
	errs     []error
	calls    []workflow.Ref
	running  int
	most     int           // calls at one time
	hold     chan struct{} // each call waits for it, unless it is nil
	ended    chan struct{} // closed when the outcomes are used up
}

func newScript(outcomes ...workflow.Outcome) *script {
	return &script{outcomes: outcomes, ended: make(chan struct{})}
}

func (s *script) step(ctx context.Context, r workflow.Ref) (workflow.Outcome, error) {
	s.mu.Lock()
	n := len(s.calls)
	s.calls = append(s.calls, r)
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if n == len(s.outcomes)-1 {
		defer close(s.ended)
	}
	if n >= len(s.outcomes) {
		return workflow.Outcome{Settled: true}, nil
	}
	if n < len(s.errs) && s.errs[n] != nil {
		return workflow.Outcome{}, s.errs[n]
	}
	return s.outcomes[n], nil
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(limit):
		t.Fatalf("waited %v for %s", limit, what)
	}
}

// Run runs the suite.
func Run(t *testing.T, factory Factory) {
	for name, holds := range map[string]func(*testing.T, Factory){
		"StartDrivesToTheEnd":         startDrivesToTheEnd,
		"StartingTwiceIsStartingOnce": startingTwiceIsStartingOnce,
		"AnErrorEndsTheExecution":     anErrorEndsTheExecution,
		"APanicEndsOnlyItsExecution":  aPanicEndsOnlyItsExecution,
		"FinishDoesNotWaitForEver":    finishDoesNotWaitForEver,
		"FinishWaitsForWhatRuns":      finishWaitsForWhatRuns,
	} {
		t.Run(name, func(t *testing.T) { holds(t, factory) })
	}
}

func startDrivesToTheEnd(t *testing.T, factory Factory) {
	s := newScript(workflow.Outcome{Wait: 3 * time.Second}, workflow.Outcome{}, workflow.Outcome{Settled: true})
	var mu sync.Mutex
	var waits []time.Duration
	e := factory(t, s.step, func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, d)
	})
	expect.OK(t, e.Start(context.Background(), ref(t, 1)))
	await(t, "the last step", s.ended)
	expect.OK(t, e.Finish(context.Background(), ref(t, 1)))
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(waits, 3*time.Second) {
		t.Errorf("waited %v, want 3s among them", waits)
	}
	for _, r := range s.calls {
		if r != ref(t, 1) {
			t.Errorf("a step was given %+v", r)
		}
	}
}

func startingTwiceIsStartingOnce(t *testing.T, factory Factory) {
	s := newScript(workflow.Outcome{}, workflow.Outcome{Settled: true})
	s.hold = make(chan struct{})
	e := factory(t, s.step, func(time.Duration) {})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := e.Start(context.Background(), ref(t, 1)); err != nil {
				t.Errorf("starting what runs: %v", err)
			}
		})
	}
	all.Wait()
	close(s.hold)
	await(t, "the last step", s.ended)
	s.mu.Lock()
	defer s.mu.Unlock()
	expect.Same(t, "steps of one execution at once", 1, s.most)
}

func anErrorEndsTheExecution(t *testing.T, factory Factory) {
	s := newScript(workflow.Outcome{}, workflow.Outcome{Settled: true})
	s.errs = []error{errors.New("the store is away")}
	e := factory(t, s.step, func(time.Duration) {})
	expect.OK(t, e.Finish(context.Background(), ref(t, 1)))
	expect.Same(t, "steps that were made", 1, s.count())
	expect.OK(t, e.Start(context.Background(), ref(t, 2))) // the reaper's next attempt
	await(t, "the next attempt", s.ended)
}

func aPanicEndsOnlyItsExecution(t *testing.T, factory Factory) {
	var first sync.Once
	s := newScript(workflow.Outcome{Settled: true})
	e := factory(t, func(ctx context.Context, r workflow.Ref) (workflow.Outcome, error) {
		panics := false
		first.Do(func() { panics = true })
		if panics {
			panic("a step's fault")
		}
		return s.step(ctx, r)
	}, func(time.Duration) {})
	expect.OK(t, e.Finish(context.Background(), ref(t, 1)))
	expect.OK(t, e.Start(context.Background(), ref(t, 2)))
	await(t, "another execution", s.ended)
}

func finishDoesNotWaitForEver(t *testing.T, factory Factory) {
	s := newScript(workflow.Outcome{Settled: true})
	s.hold = make(chan struct{})
	e := factory(t, s.step, func(time.Duration) {})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	expect.Fails(t, "finishing, when the time was up", nil, e.Finish(ctx, ref(t, 1)))
	close(s.hold)
	await(t, "the work to go on", s.ended)
}

func finishWaitsForWhatRuns(t *testing.T, factory Factory) {
	s := newScript(workflow.Outcome{}, workflow.Outcome{Settled: true})
	s.hold = make(chan struct{})
	e := factory(t, s.step, func(time.Duration) {})
	expect.OK(t, e.Start(context.Background(), ref(t, 1)))
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		if err := e.Finish(context.Background(), ref(t, 1)); err != nil {
			t.Errorf("finishing: %v", err)
		}
	}()
	close(s.hold)
	await(t, "Finish to return", finished)
	if n := s.count(); n < 2 {
		t.Errorf("it returned after %d steps", n)
	}
}
