package reaper_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/work/reaper"
)

// uses has an instance be in a target of the demo.
func (s *stock) uses(id, target string, deleted bool) lifecycle.TargetUse {
	s.Helper()
	key := s.recorded(id, deleted).Key
	r := s.record(key)
	r.Provider, r.Made.Target = "demo", lifecycle.Target{Name: target}
	r.LateLook = time.Time{} // of what was deleted: it was looked at once more
	use := r.TargetUse(s.now)
	s.commit(ledger.Put(r), ledger.Put(use))
	use.Version = 1
	return use
}

// An inventory covers every target that a record names: one that is missing from
// today's settings makes it incomplete, and one that nothing is in does not.
func TestATargetThatIsNotListed(t *testing.T) {
	refused := errors.New("the settings cannot be read")
	for name, test := range map[string]struct {
		uses    []string
		deleted []string
		targets func(context.Context) ([]string, error)
		want    []string // what is said of what is not reached
	}{
		"Listed":       {[]string{"east", "east", "west"}, nil, names("east", "west"), nil},
		"Missing":      {[]string{"east", "west", "west"}, nil, names("east"), []string{`target "west"`}},
		"NoneInUse":    {[]string{"east"}, []string{"west"}, names("east"), nil},
		"OneOfTwo":     {[]string{"west"}, []string{"west"}, names("east"), []string{`target "west"`}},
		"OnePlace":     {[]string{"east"}, nil, nil, []string{`target "east"`}},
		"NotTold":      {nil, nil, func(context.Context) ([]string, error) { return nil, refused }, []string{"cannot be read"}},
		"NothingNamed": {nil, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := known(t)
			s.options.Listers["demo"] = reaper.Lister{List: s.List, Targets: test.targets}
			for i, target := range test.deleted {
				s.uses("gone-"+string(rune('a'+i)), target, true)
			}
			for i, target := range test.uses {
				s.uses("there-"+string(rune('a'+i)), target, false)
			}
			s.now = s.now.Add(time.Hour)
			_, err := s.sweeps(t.Context())
			got := s.last().Unreached
			if len(got) != len(test.want) || (err != nil) != (len(test.want) > 0) {
				t.Fatalf("not reached: %q, error %v; want %q", got, err, test.want)
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], "demo: ") || !strings.Contains(got[i], want) {
					t.Errorf("it says %q, want %q", got[i], want)
				}
			}
		})
	}
}

func names(of ...string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return of, nil }
}

// The use of a target is forgotten some time after its instance is gone.
func TestAUseIsForgotten(t *testing.T) {
	s := newStock(t)
	there, gone := s.uses("there", "east", false), s.uses("gone", "east", true)
	s.now = there.Due
	expect.Get(s.reaper(started).Sweep(t.Context()))(t)
	for use, want := range map[lifecycle.TargetUse]int64{there: 2, gone: 0} {
		if got, err := s.records.TargetUse(t.Context(), use); err != nil || got.Version != want {
			t.Errorf("%s is at version %d, want %d: %v", use.Key.Instance, got.Version, want, err)
		}
	}
	due, _, err := s.records.Due(t.Context(), s.now, "")
	expect.OK(t, err)
	for _, d := range due {
		expect.Same(t, "it is due again at once", nil, d.TargetUse)
	}
}
