package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
)

// lost is a vault whose key is gone: it neither opens nor seals.
type lost struct{}

func (lost) Seal(context.Context, vault.Label, []byte) ([]byte, error) {
	return nil, errors.New("there is no key to seal with")
}

func (lost) Open(context.Context, vault.Label, []byte) ([]byte, error) { return nil, vault.ErrSealed }

func provisionWith(parameters string) asking { return orders("i", "async-bind", []byte(parameters)) }
func bindWith(parameters string) asking      { return binds("b", "async-bind", []byte(parameters)) }

// When nothing sealed can be opened any more, everything can still be deleted,
// in whatever state it is: by the broker's answer to the DELETE, each step, the
// look that comes after it, and the reaper.
func TestDeletionNeedsNoKey(t *testing.T) {
	provision, bind := provisionWith(`{"delay_seconds":7}`), bindWith(`{"delay_seconds":5}`)
	cases := map[string]struct {
		reason string
		before func(*world)
		asks   []asking
		held   int
	}{
		"Deprovision":       {"an instance with parameters", done(provision), []asking{deprovision}, 0},
		"Unbind":            {"a binding with parameters, a secret and a grant", done(provision, bind), []asking{unbind}, 1},
		"Both":              {"one after the other", done(provision, bind), []asking{unbind, deprovision}, 0},
		"WithItsBindings":   {"the bindings go with the instance", done(provision, bind), []asking{deprovision}, 0},
		"Updated":           {"after an update", done(provision, update), []asking{deprovision}, 0},
		"HalfProvisioned":   {"overtaking the creation", begun(provision), []asking{deprovision}, 0},
		"HalfBound":         {"overtaking the bind", both(done(provision), begun(bind)), []asking{unbind}, 1},
		"HalfBoundInstance": {"with its instance", both(done(provision), begun(bind)), []asking{deprovision}, 0},
		"FailedCreation":    {"what failed", done(provisionWith(`{"fail":true,"delay_seconds":7}`)), []asking{deprovision}, 0},
		"FailingDeprovision": {"nobody knows any more that it was to fail", done(provisionWith(`{"fail":"deprovision"}`)),
			[]asking{deprovision}, 0},
		"FailingUnbind":     {"also of a binding", done(provision, bindWith(`{"fail":"unbind"}`)), []asking{unbind}, 1},
		"ReclaimedByReaper": {"a failed creation that nobody deletes", done(provisionWith(`{"fail":true}`)), nil, 0},
		"LeftoversOfRequest": {"a deletion that was lost on its way, and is driven by the reaper", done(provision, bind),
			[]asking{deprovision}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.before(w)
			w.vault = lost{}
			for _, ask := range tc.asks {
				w.must(ask)
				if name == "LeftoversOfRequest" {
					clear(w.started)
				}
				w.rest()
			}
			w.clock = w.clock.Add(lifecycle.LateLook + 2*lifecycle.Grace)
			w.rest()
			w.clock = w.clock.Add(lifecycle.ReclaimAfter)
			w.rest()
			expect.Same(t, fmt.Sprintf("%s: things that are left; the instance is %q", tc.reason, w.instance().State), tc.held,
				w.held())
			i := w.instance()
			if tc.held == 0 && i.State != lifecycle.Deleted && i.State != lifecycle.Absent {
				t.Errorf("%s: the instance is %q: %s", tc.reason, i.State, i.Operation.Description)
			}
		})
	}
}

// An update needs its parameters, and refuses a DELETE while it runs (DEPR-09):
// one that cannot open them ends at its deadline, by whoever looks then, and no
// later.
func TestAnUpdateThatCannotBeOpenedEndsAtItsDeadline(t *testing.T) {
	for _, driven := range []bool{true, false} {
		t.Run(fmt.Sprintf("Driven=%v", driven), func(t *testing.T) {
			w := newWorld(t)
			done(provision)(w)
			ref := w.asks(update)
			w.vault = lost{}
			if _, err := w.worker().Step(context.Background(), ref); !errors.Is(err, vault.ErrSealed) {
				t.Fatalf("the step ends with %v: the test proves nothing", err)
			}
			if i := w.instance(); !i.InProgress() || len(i.Leases) != 0 {
				t.Fatalf("before its deadline: %+v", i.Operation)
			}
			if !driven {
				clear(w.started)
			}
			w.clock = w.instance().Operation.Deadline.Add(lifecycle.Grace)
			w.rest()
			if i := w.instance(); i.State != lifecycle.Ready || i.Operation.Phase != lifecycle.Failed {
				t.Fatalf("at its deadline the instance is %q, the update %q", i.State, i.Operation.Phase)
			}
			done(deprovision)(w)
			if w.held() != 0 || w.instance().State != lifecycle.Deleted {
				t.Errorf("%d things are left; the instance is %q", w.held(), w.instance().State)
			}
		})
	}
}
