package hosted_test

import (
	"cmp"
	"context"
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A counted server says what it is told to, and counts.
type counted struct {
	said   hosted.Said
	closed int
	late   func() // what others do between a look and an advance; nil for nothing
}

func (c *counted) Identify(context.Context, string, bool) (hosted.Said, error) { return c.said, nil }

func (c *counted) Advance(_ context.Context, _ string, seen, to provider.Epoch) (bool, error) {
	if c.late != nil {
		c.late()
	}
	if seen != c.said.Epoch {
		return false, nil
	}
	c.said.Epoch = to
	return true, nil
}

func (c *counted) Close() { c.closed++ }

func newServers(one *counted, pool int) (s *hosted.Servers[*counted], opened *int) {
	opened = new(int)
	return &hosted.Servers[*counted]{
		Broker: "b", Accesses: hosted.Accesses{"t": {Host: "h"}}, Pool: pool, Explain: func(_ string, err error) error { return err },
		Open: func(hosted.Access, int) (*counted, error) { *opened++; return one, nil },
	}, opened
}

// Connections are kept where there is a pool, and else end with the step.
func TestServersAreKept(t *testing.T) {
	t.Parallel()
	for pool, want := range map[int][3]int{0: {2, 2, 2}, 4: {1, 0, 1}} { // opened, closed by steps, closed in the end
		one := &counted{said: hosted.Said{Identity: "id"}}
		s, opened := newServers(one, pool)
		for range 2 {
			at, learnt, err := s.At(t.Context(), provider.Target{Name: "t", Identity: "id"}, provider.Epoch{})
			if err != nil || learnt != nil {
				t.Fatal(learnt, err)
			}
			at.Leave()
		}
		closed := one.closed
		s.Close()
		if got := [3]int{*opened, closed, one.closed}; got != want {
			t.Errorf("with a pool of %d: opened, closed and closed in the end %v, want %v", pool, got, want)
		}
	}
}

// A step learns the identity, and makes nothing elsewhere or on what was restored.
func TestSteps(t *testing.T) {
	t.Parallel()
	one := &counted{said: hosted.Said{Identity: "id", Epoch: provider.Epoch{Count: 5}}}
	s, _ := newServers(one, 0)
	known := provider.Target{Name: "t", Identity: "id"}
	_, learnt, err := s.At(t.Context(), provider.Target{Name: "t"}, provider.Epoch{})
	if err != nil || learnt == nil || *learnt.Target != known {
		t.Errorf("the first step: %+v %v", learnt, err)
	}
	for kind, c := range map[string]struct {
		target provider.Target
		was    int64
	}{
		provider.TroubleOther: {provider.Target{Name: "t", Identity: "another"}, 5}, provider.TroubleRestored: {known, 6},
		provider.TroubleUnknown: {provider.Target{Name: "gone", Identity: "id"}, 5},
	} {
		_, _, err := s.At(t.Context(), c.target, provider.Epoch{Count: c.was})
		if trouble, ok := errors.AsType[*provider.Trouble](err); !ok || trouble.Kind != kind {
			t.Errorf("%v, want the trouble %q", err, kind)
		}
	}
	if _, _, err := s.At(t.Context(), known, provider.Epoch{Count: 4}); err != nil {
		t.Error(err)
	}
	if st, err := hosted.Settle(nil, nil, provider.Status{}); err != nil || !st.Done {
		t.Errorf("in the end it answers %+v: %v", st, err)
	}
}

// A server is advanced from where it is seen to be, or not at all: it says where it is
// then.
func TestAdvance(t *testing.T) {
	t.Parallel()
	at := func(count int64, mark string) provider.Epoch {
		return provider.Epoch{Line: "l", Count: count, Mark: mark}
	}
	for name, tc := range map[string]struct {
		from, to, want provider.Epoch
		late           provider.Epoch
		identity       string
	}{
		"Advanced":   {from: at(5, "a"), to: at(6, "b"), want: at(6, "b")},
		"Again":      {from: at(4, "x"), to: at(5, "a"), want: at(5, "a")},
		"Elsewhere":  {from: at(5, "x"), to: at(6, "b"), want: at(5, "a")},
		"OtherLine":  {from: provider.Epoch{Line: "m", Count: 5, Mark: "a"}, to: at(6, "b"), want: at(5, "a")},
		"Overtaken":  {from: at(5, "a"), to: at(6, "b"), late: at(6, "c"), want: at(6, "c")},
		"JustLooked": {want: at(5, "a")},
		"Another":    {from: at(5, "a"), to: at(6, "b"), identity: "another"},
	} {
		one := &counted{said: hosted.Said{Identity: cmp.Or(tc.identity, "id"), Epoch: at(5, "a")}}
		if tc.late.Count > 0 {
			one.late = func() { one.said.Epoch = tc.late }
		}
		s, _ := newServers(one, 0)
		got, err := s.Advance(t.Context(), provider.Target{Name: "t", Identity: "id"}, tc.from, tc.to)
		if tc.identity != "" {
			if err == nil || one.said.Epoch != at(5, "a") {
				t.Errorf("%s: it is at %v: %v", name, one.said.Epoch, err)
			}
		} else if err != nil || got != tc.want || one.said.Epoch != tc.want {
			t.Errorf("%s: says %v, and is at %v, want %v: %v", name, got, one.said.Epoch, tc.want, err)
		}
	}
}

// Targets are listed one after another; one that cannot be is left out, with its error.
func TestListOfTargets(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	held := map[string][]string{"a": {"1", "2", "3"}, "b": nil, "d/e": {"4"}}
	page := func(_ context.Context, target, after string) (page []provider.Holding, more string, err error) {
		if target == "b" {
			return nil, "", away
		}
		for _, name := range held[target] {
			if name > after && len(page) < 2 {
				page = append(page, provider.Holding{Name: name})
			}
		}
		if len(page) == 2 {
			more = page[1].Name
		}
		return page, more, nil
	}
	a := hosted.Accesses{"a": {}, "b": {}, "d/e": {}}
	var names, faults []string
	for cursor, first := "", true; first || cursor != ""; first = false {
		listed, next, err := a.List(t.Context(), cursor, page)
		for _, h := range listed {
			names = append(names, h.Name)
		}
		if err != nil {
			faults = append(faults, cursor)
		}
		cursor = next
	}
	if d := gocmp.Diff([][]string{{"1", "2", "3", "4"}, {"b/"}}, [][]string{names, faults}); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if listed, next, err := a.List(t.Context(), "c/9", page); len(listed) != 1 || next != "" || err != nil {
		t.Errorf("after a target that has left the settings it lists %v, %q: %v", listed, next, err)
	}
}
