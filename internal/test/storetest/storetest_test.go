package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/storetest"
)

// mutantVariable names the mutant in the processes that TestMutants starts.
const mutantVariable = "STORETEST_MUTANT"

// TestMemory proves that a store can pass. TestMutants runs it with a mutant
// in a process of its own, since a suite that fails fails its test.
func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) *storetest.Harness {
		m := newMemory(os.Getenv(mutantVariable), false)
		return &storetest.Harness{Store: m, Again: func(*testing.T) store.Store { return m.reopened() }, Ordered: true}
	})
}

// TestLaggingMemory proves that the suite asks for nothing that a store
// spread over many machines cannot give.
func TestLaggingMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) *storetest.Harness {
		m := newMemory("", true)
		return &storetest.Harness{Store: m, Again: func(*testing.T) store.Store { return m.reopened() }, Drops: true,
			Pause: func(context.Context) { m.settle() }}
	})
}

// TestMutants proves that the suite finds what is wrong with a store, and
// that the test that is meant to find it does.
func TestMutants(t *testing.T) {
	program, err := os.Executable()
	expect.OK(t, err)
	tests := map[string]struct {
		reason string
		found  string // by this test
	}{
		"IgnoresVersions":      {"a stale put overwrites", "Races/SameRecord"},
		"OnlyChecksExistence":  {"a stale put overwrites, though not one of an absent record", "Contract/VersionMatrix"},
		"ChecksTooEarly":       {"two commits at once both win", "Load/Counter"},
		"AppliesHalf":          {"a conflict leaves the changes before it", "Commit/AllOrNone"},
		"IgnoresChecks":        {"a check holds always", "Commit/CheckOnly"},
		"VersionsNeverRestart": {"a record made again goes on counting", "Contract/Versions"},
		"TakesTooMuch":         {"a body may be a byte too large", "Contract/Invalid"},
		"TakesTooLittle":       {"the largest body is refused", "Contract/Boundaries"},
		"TakesTooMany":         {"a commit may have a change too many", "Contract/Invalid"},
		"TakesTwice":           {"a record may be changed twice at once", "Contract/Invalid"},
		"IgnoresContext":       {"a call goes on after its context", "Contract/Context"},
		"ForgetsSchema":        {"a field is not kept", "Records/RoundTrip"},
		"KeepsOldWriter":       {"a field is not replaced", "Records/RoundTrip"},
		"ForgetsWhenReopened":  {"nothing is durable", "Records/Reopened"},
		"KeepsTheCallersBody":  {"the caller's slice is stored", "Records/NotAliased"},
		"HandsOutItsBody":      {"the stored slice is returned", "Records/NotAliased"},
		"KeepsZones":           {"times are kept as they come", "Records/Times"},
		"RoundsTimes":          {"times are rounded up", "Records/Times"},
		"IgnoresPrefix":        {"a listing holds everything", "List/Prefixes"},
		"ListsOtherPartitions": {"a partition's name is taken for a prefix", "List/Partitions"},
		"SortsWithoutCase":     {"the order is not that of bytes", "List/Order"},
		"SkipsAtPageEnd":       {"a record between two pages is lost", "List/Many"},
		"IgnoresLimit":         {"a page has more than was asked for", "List/Limit"},
		"GoesOnAfterRecords":   {"a listing goes on only after what is recorded", "List/After"},
		"ScansOnePartition":    {"a scan ends with the partition", "Scan/Everything"},
		"DueOnlyBefore":        {"what is due now is not due", "Due/Boundary"},
		"ListsZeroDue":         {"what is never due is due", "Due/Zero"},
		"TakesEpochForZero":    {"1970 is taken for no time", "Due/Zero"},
		"ListsStaleDue":        {"what was due stays due", "Due/Moved"},
		"LeavesOutWhatExpires": {"nobody drops what has expired", "Due/Expiring"},
		"DuePlaceIsTheTime":    {"pages go on at the next time, past records of the same", "Due/SameTime"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), program, "-test.v", "-test.timeout=30s",
				"-test.run=^TestMemory$/^"+strings.ReplaceAll(test.found, "/", "$/^")+"$")
			c.Env = append(os.Environ(), mutantVariable+"="+name)
			out, err := c.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(string(out), "--- FAIL: TestMemory/"+test.found) {
				t.Errorf("%s does not find that %s: %v\n%s", test.found, test.reason, err, out)
			}
		})
	}
}

func TestFaulty(t *testing.T) {
	boom := errors.New("boom")
	change := func(sort string) store.Change {
		return store.Put(store.Record{Key: store.Key{Partition: "p", Sort: sort}})
	}
	type want struct {
		errs   []error
		stored []string
	}
	tests := map[string]struct {
		reason string
		wrap   func(store.Store) store.Store
		want   want
	}{
		"Nothing": {reason: "without functions everything passes",
			wrap: func(s store.Store) store.Store { return &storetest.Faulty{Store: s} },
			want: want{errs: []error{nil, nil, nil, store.ErrConflict}, stored: []string{"1", "2", "3"}}},
		"Before": {reason: "the second commit fails and never happens",
			wrap: func(s store.Store) store.Store {
				return &storetest.Faulty{Store: s, Before: storetest.Nth(2, boom)}
			},
			want: want{errs: []error{nil, boom, nil, store.ErrConflict}, stored: []string{"1", "3"}}},
		"After": {reason: "the second commit happens and fails",
			wrap: func(s store.Store) store.Store {
				return &storetest.Faulty{Store: s, After: storetest.Nth(2, boom)}
			},
			want: want{errs: []error{nil, boom, nil, store.ErrConflict}, stored: []string{"1", "2", "3"}}},
		"AfterFailure": {reason: "a commit that fails by itself has no answer to lose",
			wrap: func(s store.Store) store.Store { return storetest.LoseAnswers(s, 4) },
			want: want{errs: []error{nil, nil, nil, store.ErrConflict}, stored: []string{"1", "2", "3"}}},
		"LoseAnswers": {reason: "the first answer is lost",
			wrap: func(s store.Store) store.Store { return storetest.LoseAnswers(s, 1) },
			want: want{errs: []error{storetest.ErrLost, nil, nil, store.ErrConflict}, stored: []string{"1", "2", "3"}}},
		"ChoosesByChange": {reason: "a function sees the changes",
			wrap: func(s store.Store) store.Store {
				return &storetest.Faulty{Store: s, Before: func(changes []store.Change) error {
					if changes[0].Record.Sort == "3" {
						return boom
					}
					return nil
				}}
			},
			want: want{errs: []error{nil, nil, boom, store.ErrConflict}, stored: []string{"1", "2"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMemory("", false)
			s := test.wrap(m)
			for i, sort := range []string{"1", "2", "3", "1"} {
				expect.Fails(t, fmt.Sprintf("%s\ncommit %d", test.reason, i+1), test.want.errs[i],
					s.Commit(t.Context(), change(sort)))
			}
			stored := map[string]bool{}
			for k := range m.dump() {
				stored[k.Sort] = true
			}
			want := map[string]bool{}
			for _, sort := range test.want.stored {
				want[sort] = true
			}
			expect.Same(t, fmt.Sprintf("%s\nstored", test.reason), want, stored)
		})
	}
}
