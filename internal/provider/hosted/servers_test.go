package hosted_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
)

// A counted server says what it is told to, and counts.
type counted struct {
	said   hosted.Said
	closed int
	late   func() // what others do between a look and an advance; nil for nothing
	held   []string
	away   error
	acts   []any
	fails  func(act any) error // the error of an act; nil for none
}

func (c *counted) Identify(context.Context, string, bool) (hosted.Said, error) { return c.said, c.away }

func (c *counted) Look(context.Context, provider.Tags) (seen, error) { return seen(len(c.acts)), nil }

func (c *counted) Do(_ context.Context, _ provider.Tags, _ seen, act any) error {
	if c.fails != nil {
		return c.fails(act)
	}
	c.acts = append(c.acts, act)
	return nil
}

func (c *counted) List(_ context.Context, _, after string, limit int) (page []hosted.Listed, last string, err error) {
	for _, name := range c.held {
		if name > after && len(page) < limit {
			page = append(page, hosted.Listed{Name: name})
		}
	}
	if len(page) == limit {
		last = page[limit-1].Name
	}
	return page, last, nil
}

func (c *counted) Advance(_ context.Context, _ string, seen, to target.Epoch) (bool, error) {
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

// seen is how many acts there were. Nothing stands anywhere.
type seen int

func (seen) Label(provider.Tags) (hosted.Label, bool) { return hosted.Label{}, false }

func (seen) Relabel(provider.Tags, hosted.Label) any { return nil }

func (seen) Enforce(provider.Tags, hosted.Label) any { return nil }

type servers = hosted.Provider[*counted, seen]

// known is the target of a server that says that it is id.
var known = provider.Target{Name: "t", Identity: "id"}

func newServers(one *counted, pool int) (s *servers, opened *int) {
	opened = new(int)
	o := hosted.Options{Broker: "b", Accesses: hosted.Accesses{"t": {Host: "h"}, "locked": {Unreadable: "denied"}}, Pool: pool}
	return opening(o, func(hosted.Access, int) (*counted, error) { *opened++; return one, nil }), opened
}

func opening(o hosted.Options, open func(hosted.Access, int) (*counted, error)) *servers {
	return hosted.New(o, hosted.Engine[*counted, seen]{
		Open: open, Close: (*counted).Close,
		Class: func(err error) hosted.Class { return classes[err] },
	})
}

var errLocked, errFull = errors.New("locked"), errors.New("full")

var classes = map[error]hosted.Class{errLocked: hosted.Locked, errFull: hosted.Full}

// The server of an instance is the one that its plan names, also for a deletion before the first step, until another one
// is recorded.
func TestThePlanNamesTheServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		snapshot string
		recorded provider.Target
		want     string
	}{
		"Named":    {snapshot: `{"target":"big"}`, want: "big"},
		"Unnamed":  {snapshot: `{}`, want: hosted.DefaultTarget},
		"NoPlan":   {want: hosted.DefaultTarget},
		"Recorded": {`{"target":"big"}`, provider.Target{Name: hosted.DefaultTarget}, hosted.DefaultTarget},
	} {
		s, _ := newServers(&counted{said: hosted.Said{Identity: "id"}}, 0)
		s.Accesses = hosted.Accesses{hosted.DefaultTarget: {}, "big": {}}
		for verb, step := range map[string]func(context.Context, provider.Instance) (provider.Status, error){
			"provision": s.Provision, "deprovision": s.Deprovision,
		} {
			st, err := step(t.Context(), provider.Instance{Snapshot: []byte(tc.snapshot), Target: tc.recorded})
			if err != nil || st.Target == nil || st.Target.Name != tc.want {
				t.Errorf("%s, %s: %+v, error %v, want target %q", name, verb, st.Target, err, tc.want)
			}
		}
	}
}

// No server is asked to lock what was never made on any, nor does one learn of the broker by that. It cannot be adopted, nor
// can what is gone from its server.
func TestWhatWasNeverMade(t *testing.T) {
	t.Parallel()
	s, opened := newServers(&counted{said: hosted.Said{Identity: "id"}}, 0)
	expect.OK(t, errors.Join(s.Quarantine(t.Context(), provider.Holding{}), s.Release(t.Context(), provider.Holding{})))
	expect.Same(t, "servers asked", 0, *opened)
	for _, target := range []provider.Target{{Name: "t"}, known} {
		err := s.Adopt(t.Context(), provider.Holding{Target: target}, provider.Tags{})
		if _, failed := errors.AsType[*provider.Failure](err); !failed {
			t.Errorf("adopted at %+v: %v, want a failure", target, err)
		}
	}
}

// A step goes on until nothing is left to do, looks again where others work at the same, waits where they hold a lock,
// and tells the operator of what he has to end. What is done in vain is not done for ever.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fails  func(any) error
		inVain bool
		done   bool
		why    string
		kind   string
	}{
		"Done":    {done: true},
		"InVain":  {inVain: true, why: "Waiting for other sessions to end"},
		"Locked":  {fails: func(any) error { return errLocked }, why: "Waiting for somebody's lock"},
		"Busy":    {fails: func(any) error { return hosted.ErrChanged }, why: "Working"},
		"GoesOn":  {fails: func(any) error { return hosted.ErrGoesOn }, why: "Working"},
		"Trouble": {fails: func(any) error { return errFull }, kind: target.Full},
		"Silent":  {fails: func(any) error { return context.DeadlineExceeded }, kind: target.Silent},
	} {
		one := &counted{said: hosted.Said{Identity: "id"}, fails: tc.fails}
		s, _ := newServers(one, 0)
		s.Engine.Provision = func(context.Context, *hosted.Site[*counted, seen], provider.Instance) (hosted.Decide[seen], error) {
			return func(now seen) (any, error) {
				if tc.inVain {
					one.acts = nil
				} else if now == 3 {
					return nil, nil
				}
				return "act", nil
			}, nil
		}
		st, err := s.Provision(t.Context(), provider.Instance{Target: known})
		kind := ""
		if trouble, ok := errors.AsType[*target.Trouble](err); ok {
			kind = trouble.Kind
		}
		if st.Done != tc.done || st.Description != tc.why || kind != tc.kind || (err == nil) != (kind == "") {
			t.Errorf("%s: %+v %v", name, st, err)
		}
		if !tc.done && tc.kind == "" && st.After == 0 {
			t.Errorf("%s: it waits for no time", name)
		}
	}
}

// A broker that ends in the middle of a call blames no server, and rings no alarm.
func TestCanceledIsNoTrouble(t *testing.T) {
	t.Parallel()
	s, _ := newServers(&counted{}, 0)
	err := s.Explain("t", &net.OpError{Op: "dial", Err: context.Canceled})
	if _, troubled := errors.AsType[*target.Trouble](err); troubled || !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was canceled is %v", err)
	}
}

// Connections are kept where there is a pool, and else end with the step.
func TestServersAreKept(t *testing.T) {
	t.Parallel()
	for pool, want := range map[int][3]int{0: {2, 2, 2}, 4: {1, 0, 1}} { // opened, closed by steps, closed in the end
		one := &counted{said: hosted.Said{Identity: "id"}}
		s, opened := newServers(one, pool)
		for range 2 {
			expect.Get(s.At(t.Context(), known, target.Epoch{}))(t).Leave()
		}
		closed := one.closed
		s.Close()
		expect.Same(t, fmt.Sprintf("with a pool of %d: opened, closed and closed in the end", pool), want,
			[3]int{*opened, closed, one.closed})
	}
}

// A step learns the identity, and makes nothing elsewhere or on what was restored.
func TestSteps(t *testing.T) {
	t.Parallel()
	one := &counted{said: hosted.Said{Identity: "id", Epoch: target.Epoch{Count: 5}}}
	s, _ := newServers(one, 0)
	_, err := s.At(t.Context(), provider.Target{Name: "t"}, target.Epoch{})
	if learnt, ok := errors.AsType[*hosted.Later](err); !ok || *learnt.Status.Target != known {
		t.Errorf("the first step: %+v %v", learnt, err)
	}
	for kind, c := range map[string]struct {
		target provider.Target
		was    int64
	}{
		target.Other: {provider.Target{Name: "t", Identity: "another"}, 5}, target.Restored: {known, 6},
		target.Unknown:    {provider.Target{Name: "gone", Identity: "id"}, 5},
		target.Unreadable: {provider.Target{Name: "locked", Identity: "id"}, 5},
	} {
		_, err := s.At(t.Context(), c.target, target.Epoch{Count: c.was})
		if trouble, ok := errors.AsType[*target.Trouble](err); !ok || trouble.Kind != kind {
			t.Errorf("%v, want the trouble %q", err, kind)
		}
	}
	expect.Get(s.At(t.Context(), known, target.Epoch{Count: 4}))(t)
}

// A step that goes on later tells why, also where its error is wrapped.
func TestLaterTellsWhy(t *testing.T) {
	t.Parallel()
	if err := fmt.Errorf("target: %w", hosted.Wait("Working", time.Second)); err.Error() != "target: Working" {
		t.Errorf("%v", err)
	}
}

// A server is advanced from where it is seen to be, or not at all: it says where it is then.
func TestAdvance(t *testing.T) {
	t.Parallel()
	at := func(count int64, mark string) target.Epoch {
		return target.Epoch{Line: "l", Count: count, Mark: mark}
	}
	for name, tc := range map[string]struct {
		from, to, want target.Epoch
		late           target.Epoch
		identity       string
	}{
		"Advanced":   {from: at(5, "a"), to: at(6, "b"), want: at(6, "b")},
		"Again":      {from: at(4, "x"), to: at(5, "a"), want: at(5, "a")},
		"Elsewhere":  {from: at(5, "x"), to: at(6, "b"), want: at(5, "a")},
		"OtherLine":  {from: target.Epoch{Line: "m", Count: 5, Mark: "a"}, to: at(6, "b"), want: at(5, "a")},
		"Overtaken":  {from: at(5, "a"), to: at(6, "b"), late: at(6, "c"), want: at(6, "c")},
		"JustLooked": {want: at(5, "a")},
		"Another":    {from: at(5, "a"), to: at(6, "b"), want: at(5, "a"), identity: "another"},
	} {
		one := &counted{said: hosted.Said{Identity: cmp.Or(tc.identity, "id"), Epoch: at(5, "a")}}
		if tc.late.Count > 0 {
			one.late = func() { one.said.Epoch = tc.late }
		}
		s, _ := newServers(one, 0)
		got, err := s.Advance(t.Context(), known, tc.from, tc.to)
		if got != tc.want || (err == nil) != (tc.identity == "") || one.said.Epoch != tc.want {
			t.Errorf("%s: says %v, and is at %v, want %v: %v", name, got, one.said.Epoch, tc.want, err)
		}
	}
}

// Targets are listed one after another; one that cannot be is left out, with its error.
func TestListOfTargets(t *testing.T) {
	t.Parallel()
	id, away := hosted.Said{Identity: "id"}, &counted{away: errors.New("away")}
	held := map[string]*counted{
		"a": {said: id, held: []string{"1", "2", "3"}}, "b": away, "d/e": {said: id, held: []string{"4"}}, "z": away,
	}
	accesses := hosted.Accesses{}
	for name := range held {
		accesses[name] = hosted.Access{Host: name}
	}
	p := opening(hosted.Options{Page: 2, Accesses: accesses},
		func(a hosted.Access, _ int) (*counted, error) { return held[a.Host], nil })
	var names, faults []string
	for cursor, first := "", true; first || cursor != ""; first = false {
		listed, next, err := p.List(t.Context(), cursor)
		for _, h := range listed {
			names = append(names, h.Name)
		}
		if err != nil {
			faults = append(faults, cursor)
		}
		cursor = next
	}
	expect.Same(t, "names and faults", [][]string{{"1", "2", "3", "4"}, {"b/", "z/"}}, [][]string{names, faults})
	if listed, next, err := p.List(t.Context(), "c/9"); len(listed) != 1 || next != "z/" || err != nil {
		t.Errorf("after a target that has left the settings it lists %v, %q: %v", listed, next, err)
	}
}
