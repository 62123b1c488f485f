package providertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/providertest"
)

func TestDrive(t *testing.T) {
	failure := provider.Failf("for good")
	type answer struct {
		st  provider.Status
		err error
	}
	cases := map[string]struct {
		reason  string
		answers []answer
		failure *provider.Failure
		took    time.Duration
	}{
		"Done": {reason: "what is done at once takes no time", answers: []answer{{st: provider.Status{Done: true}}}},
		"Waits": {reason: "the clock moves on by what is asked for, a second if nothing is",
			answers: []answer{{st: provider.Status{After: time.Minute}}, {}, {st: provider.Status{Done: true}}},
			took:    time.Minute + time.Second},
		"Fails": {reason: "a failure ends it", answers: []answer{{}, {err: failure}}, failure: failure, took: time.Second},
		"Faults": {reason: "any other error passes",
			answers: []answer{{err: providertest.ErrFault}, {st: provider.Status{Done: true}}}, took: time.Second},
	}
	for name, c := range cases {
		start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
		clock := providertest.NewClock(start)
		n := 0
		st, f := providertest.Drive(t, clock, func(context.Context) (provider.Status, error) {
			n++
			return c.answers[n-1].st, c.answers[n-1].err
		})
		took := clock.Now().Sub(start)
		if f != c.failure || st.Done != (c.failure == nil) || n != len(c.answers) || took != c.took {
			t.Errorf("%s: %s: done %v, failure %v after %d steps and %v, want %v", name, c.reason, st.Done, f, n, took, c.took)
		}
	}
}
