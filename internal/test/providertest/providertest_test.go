package providertest_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/providertest"
)

// A sound provider passes; in the subprocesses of TestMutants it is not sound.
func TestSound(t *testing.T) {
	providertest.Run(t, memoryFactory(os.Getenv(providertest.MutantVariable)))
}

// The suite can fail: each mutant is caught by the case that is there for it.
func TestMutants(t *testing.T) {
	providertest.RunMutants(t, map[string]providertest.Mutant{
		"absent-is-failure":    {Reason: "deleting what is gone is success", Caught: "NeverWas"},
		"adopts-foreign":       {Reason: "what is not ours is not taken for ours", Caught: "NotOurs"},
		"changes-input":        {Reason: "the arguments belong to the caller", Caught: "Repeated"},
		"deletes-foreign":      {Reason: "what is not ours is never deleted", Caught: "NotOurs"},
		"describes-foreign":    {Reason: "facts are of the own instance alone", Caught: "Describes"},
		"done-too-early":       {Reason: "deleted is only what is seen to be absent", Caught: "Lifecycle"},
		"exists-is-failure":    {Reason: "what exists and is ours is success", Caught: "Repeated"},
		"failed-update-counts": {Reason: "a failed update leaves the instance as it was", Caught: "Failures"},
		"failure-is-not-final": {Reason: "what has failed stays so", Caught: "Failures"},
		"fails-by-fault":       {Reason: "a passing fault fails no operation", Caught: "Faults"},
		"forgets-at-restart":   {Reason: "a restart does not begin the work again", Caught: "Restarts"},
		"forgets-incarnation":  {Reason: "no life takes another's things for its own", Caught: "Incarnations"},
		"one-life":             {Reason: "two lives of an id never meet", Caught: "Incarnations"},
		"hides-half-made":      {Reason: "the inventory has what a failed provision left", Caught: "InstanceStates"},
		"ignores-cancelling":   {Reason: "a cancelled call touches nothing", Caught: "Cancelled"},
		"joined-ids":           {Reason: "ids that read the same when joined never meet", Caught: "Identifiers"},
		"keeps-open":           {Reason: "credentials end with the binding", Caught: "Bindings"},
		"leaves-half-made":     {Reason: "a deletion removes what is half made", Caught: "InstanceStates"},
		"looks-then-makes":     {Reason: "a late call makes nothing twice", Caught: "LateCalls"},
		"loses-pages":          {Reason: "the inventory is whole", Caught: "Inventory"},
		"no-platform":          {Reason: "two platforms never meet", Caught: "Platforms"},
		"random-password":      {Reason: "a repeated bind gives the same grant", Caught: "LostAnswers"},
		"shared-credentials":   {Reason: "each binding has its own credentials", Caught: "Bindings"},
		"tells-parameters":     {Reason: "no failure tells a parameter", Caught: "Failures"},
		"tells-secret":         {Reason: "no description tells a secret", Caught: "Grants"},
		"unbinds-all":          {Reason: "unbinding one binding leaves the others", Caught: "Bindings"},
		"update-creates":       {Reason: "an update creates nothing", Caught: "InstanceStates"},
	})
}

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
		t.Run(name, func(t *testing.T) {
			start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
			clock := providertest.NewClock(start)
			n := 0
			st, f := providertest.Drive(t, clock, func(context.Context) (provider.Status, error) {
				n++
				return c.answers[n-1].st, c.answers[n-1].err
			})
			if f != c.failure || st.Done != (c.failure == nil) || n != len(c.answers) {
				t.Errorf("%s: done %v, failure %v after %d steps", c.reason, st.Done, f, n)
			}
			if took := clock.Now().Sub(start); took != c.took {
				t.Errorf("%s: took %v, want %v", c.reason, took, c.took)
			}
		})
	}
}
