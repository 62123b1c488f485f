package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
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
		h := newMemory(os.Getenv(mutantVariable)).harness()
		h.Ordered = true
		return h
	})
}

// TestLaggingMemory proves that the suite asks for nothing that a store spread over many machines cannot give.
func TestLaggingMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) *storetest.Harness {
		m := newMemory(lagging)
		h := m.harness()
		h.Drops, h.Pause = true, func(context.Context) { m.settle() }
		return h
	})
}

// TestMutants proves that the suite finds what is wrong with a store, and that the test that is meant to find it does.
func TestMutants(t *testing.T) {
	program := expect.Get(os.Executable())(t)
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
	third := func(changes []store.Change) error {
		if changes[0].Record.Sort == "3" {
			return boom
		}
		return nil
	}
	over := func(f storetest.Faulty) func(store.Store) *storetest.Faulty {
		return func(s store.Store) *storetest.Faulty { f.Store = s; return &f }
	}
	loses := func(nth int) func(store.Store) *storetest.Faulty {
		return func(s store.Store) *storetest.Faulty { return storetest.LoseAnswers(s, nth) }
	}
	for name, test := range map[string]struct {
		reason string
		wrap   func(store.Store) *storetest.Faulty
		errs   [3]error // of the first commits
		stored []string
	}{
		"Nothing": {"without functions everything passes", over(storetest.Faulty{}), [3]error{}, []string{"1", "2", "3"}},
		"Before": {"the second commit fails and never happens", over(storetest.Faulty{Before: storetest.Nth(2, boom)}),
			[3]error{1: boom}, []string{"1", "3"}},
		"After": {"the second commit happens and fails", over(storetest.Faulty{After: storetest.Nth(2, boom)}),
			[3]error{1: boom}, []string{"1", "2", "3"}},
		"AfterFailure": {"a commit that fails by itself has no answer to lose", loses(4), [3]error{}, []string{"1", "2", "3"}},
		"LoseAnswers":  {"the first answer is lost", loses(1), [3]error{storetest.ErrLost}, []string{"1", "2", "3"}},
		"ChoosesByChange": {"a function sees the changes", over(storetest.Faulty{Before: third}), [3]error{2: boom},
			[]string{"1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory("")
			s := test.wrap(m)
			for i, sort := range []string{"1", "2", "3", "1"} {
				want := append(test.errs[:], store.ErrConflict)[i] // the last is of a record that is there
				put := store.Put(store.Record{Key: store.Key{Partition: "p", Sort: sort}})
				expect.Fails(t, fmt.Sprintf("%s\ncommit %d", test.reason, i+1), want, s.Commit(t.Context(), put))
			}
			var stored []string
			for k := range m.records {
				stored = append(stored, k.Sort)
			}
			slices.Sort(stored)
			expect.Same(t, fmt.Sprintf("%s\nstored", test.reason), test.stored, stored)
		})
	}
}
