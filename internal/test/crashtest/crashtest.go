// Package crashtest owns the proof that nothing is lost and nothing is left
// behind: it lives through whole histories of a platform and a broker, on a
// clock of its own, and has processes die, answers be lost, requests and calls
// to the cloud arrive late, at every effect there is. At the end of each
// history, what the platform believes, what the records say and what exists
// must be the same.
//
// It needs from a provider a way to be made anew over a cloud whose calls it
// can interfere with: a Subject. Any provider is put into it by one call of
// Run.
package crashtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/catalog"
)

// An Effect is called around each change that a provider makes in its cloud,
// with the name of the call. It does the call, or not, or later, and gives what
// the caller is to be told. Reading is no effect.
type Effect func(name string, do func() error) error

// A Subject is what is proved.
type Subject struct {
	// Name is the provider's in offering files. Settings is what the operator
	// fixes in the first of two plans, and Others what in the second.
	Name             string
	Settings, Others map[string]any
	// Keeps are the settings of a third plan, which keeps what is deleted for a day; nil if
	// the provider keeps nothing. The inventory is an Adopter then.
	Keeps map[string]any
	// Opens reports whether the cloud of a provider that New made accepts a grant;
	// nil if that is not known.
	Opens func(p provider.Provider, g *provider.Grant) (bool, error)
	// Sparse has only one in so many effects be tried, others for each kind of fault,
	// where a history costs much; zero for each.
	Sparse int
	// New makes the provider over an empty cloud.
	New func(now func() time.Time, effect Effect) (provider.Provider, provider.Inventory)

	compiled *catalog.Catalog // made once: compiling takes as long as living through a short history
}

// A Tally is what came of a number of histories.
type Tally struct {
	Histories, Faults, Converged, Orphans, Duplicates int
}

// String is the last line of a run.
func (t Tally) String() string {
	return fmt.Sprintf("histories %d, faults %d, converged %d, orphans %d, duplicates %d", t.Histories, t.Faults,
		t.Converged, t.Orphans, t.Duplicates)
}

func (t *Tally) add(o outcome) {
	t.Histories++
	t.Faults += o.faults
	t.Orphans += o.orphans
	t.Duplicates += o.duplicates
	if len(o.wrong) == 0 {
		t.Converged++
	}
}

// Run proves the subject: each kind of fault at each effect of each lifecycle,
// with a patient platform or an impatient one, and then random histories with
// several faults until the budget is used up. The race detector sees a part of
// that, and -short a smaller one.
// SEED=N replays one random history and prints it; SECONDS=N goes on for so
// long instead of the budget.
func Run(t *testing.T, s Subject, budget int) {
	s.compiled = catalogOf(s)
	if seed := os.Getenv("SEED"); seed != "" {
		n, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			t.Fatalf("SEED: %v", err)
		}
		o := play(s, random(s, n), nil)
		t.Log(o.story)
		report(t, o, "")
		return
	}
	var tally Tally
	defer func() { t.Log(tally) }()
	end := time.Time{}
	if seconds := os.Getenv("SECONDS"); seconds != "" {
		n, err := strconv.Atoi(seconds)
		if err != nil {
			t.Fatalf("SECONDS: %v", err)
		}
		end = time.Now().Add(time.Duration(n) * time.Second)
	}
	part := oneIn
	if testing.Short() {
		part *= 20
	}
	each := 2 * part * max(s.Sparse, 1)
	for name, script := range s.scripts() {
		for n := range 4 {
			alone, patient := n&1 != 0, n&2 != 0
			shift := 0
			if patient { // it meets the faults that an impatient platform does not
				shift = each / 2
			}
			for kind := firstFault; kind <= lastFault; kind++ {
				for at := 1 + (int(kind)+shift)%each; ; at += each {
					o := play(s, single(name, script, alone, patient, kind, at), nil)
					tally.add(o)
					report(t, o, fmt.Sprintf("%s, alone %v, patient %v: %v at effect %d", name, alone, patient, kind, at))
					if o.faults == 0 {
						break // there is no such effect: all were tried
					}
				}
			}
		}
	}
	first := uint64(1)
	if !end.IsZero() {
		first = rand.Uint64() >> 16 // other histories each time
	}
	for n := first; !t.Failed() && (end.IsZero() && n < first+uint64(budget/part) || time.Now().Before(end)); n++ {
		o := play(s, random(s, n), nil)
		tally.add(o)
		report(t, o, fmt.Sprintf("replay it with: SEED=%d go test ./... -run '^%s$' -v", n, t.Name()))
	}
}

func report(t *testing.T, o outcome, how string) {
	t.Helper()
	for _, wrong := range o.wrong {
		t.Errorf("%s\n%s\n%s", wrong, how, o.story)
	}
}

// A Safeguard is a part of the broker that can be taken away, to prove that it
// would be missed.
type Safeguard string

// The safeguards.
const (
	Lease       Safeguard = "lease"        // that a step may be calling the cloud
	Fence       Safeguard = "fence"        // the token and attempt of a step
	Incarnation Safeguard = "incarnation"  // which of two instances with one id
	Tombstone   Safeguard = "tombstone"    // that something was deleted
	Memory      Safeguard = "memory"       // which steps live, whatever their leases say
	Owner       Safeguard = "owner"        // that a thing is adopted from its former owner alone
	FormerLease Safeguard = "former lease" // that a step may be putting out of use what is given back
	Transaction Safeguard = "transaction"  // that what belongs together is written together
)

// Without plays histories without a safeguard, and gives what went wrong in the
// first that did; nil if none did within the budget. All is well in the same
// histories with it, or the error says so.
func Without(s Subject, g Safeguard, budget int) error {
	s.compiled = catalogOf(s)
	for n := range uint64(budget) {
		o := play(s, directed(g, n+1), &g)
		if len(o.wrong) == 0 {
			continue
		}
		if whole := play(s, directed(g, n+1), nil); len(whole.wrong) > 0 {
			return nil // it is not the safeguard that was missed
		}
		return fmt.Errorf("in history %d: %w", n+1, errors.Join(o.wrong...))
	}
	return nil
}
