package providertest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/providertest"
)

// mutantVariable names, in a subprocess, the fault that the provider has.
const mutantVariable = "LONGSHORE_PROVIDERTEST_MUTANT"

// A sound provider passes; in the subprocesses of TestMutants it is not sound.
func TestSound(t *testing.T) {
	providertest.Run(t, memoryFactory(os.Getenv(mutantVariable)))
}

// The suite can fail: each mutant is caught by the case that is there for it.
func TestMutants(t *testing.T) {
	mutants := map[string]struct {
		reason string
		caught string
	}{
		"absent-is-failure":       {"deleting what is gone is success", "NeverWas"},
		"adopts-foreign":          {"what is not ours is not taken for ours", "NotOurs"},
		"changes-input":           {"the arguments belong to the caller", "Repeated"},
		"deletes-foreign":         {"what is not ours is never deleted", "NotOurs"},
		"deletes-one-incarnation": {"a deletion removes any incarnation", "Incarnations"},
		"done-too-early":          {"deleted is only what is seen to be absent", "Lifecycle"},
		"exists-is-failure":       {"what exists and is ours is success", "Repeated"},
		"failed-update-counts":    {"a failed update leaves the instance as it was", "Failures"},
		"failure-is-not-final":    {"what has failed stays so", "Failures"},
		"fails-by-fault":          {"a passing fault fails no operation", "Faults"},
		"forgets-at-restart":      {"a restart does not begin the work again", "Restarts"},
		"forgets-incarnation":     {"an older incarnation is replaced", "Incarnations"},
		"hides-half-made":         {"the inventory has what a failed provision left", "InstanceStates"},
		"ignores-cancelling":      {"a cancelled call touches nothing", "Cancelled"},
		"joined-ids":              {"ids that read the same when joined never meet", "Identifiers"},
		"keeps-open":              {"credentials end with the binding", "Bindings"},
		"leaves-half-made":        {"a deletion removes what is half made", "InstanceStates"},
		"looks-then-makes":        {"two callers make one thing", "TwoCallers"},
		"loses-pages":             {"the inventory is whole", "Inventory"},
		"no-platform":             {"two platforms never meet", "Platforms"},
		"random-password":         {"a repeated bind gives the same grant", "LostAnswers"},
		"shared-credentials":      {"each binding has its own credentials", "Bindings"},
		"tells-parameters":        {"no failure tells a parameter", "Failures"},
		"tells-secret":            {"no description tells a secret", "Grants"},
		"unbinds-all":             {"unbinding one binding leaves the others", "Bindings"},
		"update-creates":          {"an update creates nothing", "InstanceStates"},
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caughtBy := "TestSound/Asynchronous/" + m.caught
			pattern := "^" + strings.ReplaceAll(caughtBy, "/", "$/^") + "$"
			cmd := exec.CommandContext(t.Context(), self, "-test.run="+pattern, "-test.failfast")
			cmd.Env = append(os.Environ(), mutantVariable+"="+name)
			out, err := cmd.CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); !failed {
				t.Fatalf("%s: the mutant passed %s (error %v)", m.reason, m.caught, err)
			}
			if !strings.Contains(string(out), "--- FAIL: "+caughtBy) {
				t.Errorf("%s: the mutant was not caught but broke:\n%s", m.reason, out)
			}
		})
	}
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
		"Done": {
			reason:  "what is done at once takes no time",
			answers: []answer{{st: provider.Status{Done: true}}},
		},
		"Waits": {
			reason:  "the clock moves on by what is asked for, a second if nothing is",
			answers: []answer{{st: provider.Status{After: time.Minute}}, {}, {st: provider.Status{Done: true}}},
			took:    time.Minute + time.Second,
		},
		"Fails": {
			reason:  "a failure ends it",
			answers: []answer{{}, {err: failure}},
			failure: failure,
			took:    time.Second,
		},
		"Faults": {
			reason:  "any other error passes",
			answers: []answer{{err: errFault}, {st: provider.Status{Done: true}}},
			took:    time.Second,
		},
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
