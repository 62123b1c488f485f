package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
)

// located is a provider whose targets are proven by its caller.
type located struct {
	stub
	account string
	fails   error
	refused int // how often it was asked whether it refuses a deletion
}

func (p *located) Identify(_ context.Context, in provider.Instance) (provider.Target, error) {
	return provider.Target{Name: "east", Identity: p.account}, p.fails
}

func (p *located) Refuses(context.Context, provider.Instance) error {
	p.refused++
	return nil
}

// The first step of an instance learns its target and makes nothing. At another account,
// and where nobody says which one it is, a step calls nothing and the operation waits.
func TestATargetIsProvenBeforeEachStep(t *testing.T) {
	w := newWorld(t)
	calls := 0
	p := &located{account: "one", stub: w.tells(func(in provider.Instance) (provider.Status, error) {
		calls++
		expect.Same(t, "a step is at", provider.Target{Name: "east", Identity: "one"}, in.Target)
		return provider.Status{Done: true}, nil
	})}
	ref, by := w.asks(provision), w.by(p)
	step := func() {
		t.Helper()
		w.clock = w.clock.Add(max(w.step(by, ref).Wait, time.Second))
	}
	step()
	if at := w.instance().Made.Target; calls != 0 || at != (lifecycle.Target{Name: "east", Identity: "one"}) {
		t.Fatalf("the first step made %d calls, and %v is recorded", calls, at)
	}
	for name, c := range map[string]struct {
		account string
		fails   error
		says    string
	}{
		"Other":   {"two", nil, `it answers as "two", and this was made in "one"`},
		"Unknown": {"one", errors.New("no answer"), ""},
	} {
		p.account, p.fails = c.account, c.fails
		step()
		if op := w.instance().Operation; calls != 0 || op.Phase != lifecycle.InProgress || op.Faults == 0 ||
			!strings.Contains(op.Trouble, c.says) {
			t.Errorf("%s: %d calls, and the operation is %+v", name, calls, op)
		}
	}
	p.account, p.fails = "one", nil
	step()
	if state := w.instance().State; calls != 1 || state != lifecycle.Ready {
		t.Errorf("at its own account again: %d calls, and it is %q", calls, state)
	}
}

// A provider is not asked at another account whether it refuses a deletion, and no binding
// is removed meanwhile.
func TestARefusalIsAskedOfTheRightTarget(t *testing.T) {
	w := newWorld(t)
	done(provision, bind)(w)
	p := &located{stub: stub{cloud: w.cloud()}, account: "two"}
	i := w.instance()
	i.Made.Target = lifecycle.Target{Name: "east", Identity: "one"}
	w.commits(ledger.Put(i))
	w.step(w.by(p), w.asks(deprovision))
	b := w.recorded(bindingKey)
	if p.refused != 0 || b.State != lifecycle.Ready || w.instance().Operation.Faults == 0 {
		t.Errorf("asked %d times, the binding is %q, the operation is %+v", p.refused, b.State, w.instance().Operation)
	}
}

// refusing is a provider that refuses deletions.
type refusing struct{ cloud }

func (refusing) Refuses(context.Context, provider.Instance) error {
	return &provider.Failure{Message: "it is not empty", InstanceUsable: new(true), Untouched: true}
}

// A deletion that the provider refuses takes no binding away: the instance is ready
// as before, can be bound so that it can be emptied, and is deleted when it is empty.
func TestARefusedDeletionTakesNothing(t *testing.T) {
	w := newWorld(t)
	done(provision, bind)(w)
	w.settles(w.by(refusing{cloud{w, nil}}), w.asks(deprovision))
	i := w.instance()
	if op := i.Operation; i.State != lifecycle.Ready || op.Phase != lifecycle.Failed || op.InstanceUsable == nil ||
		!*op.InstanceUsable || op.Description != "it is not empty" {
		t.Errorf("state %q, operation %+v", i.State, op)
	}
	if b := w.recorded(bindingKey); b.State != lifecycle.Ready || b.Grant == nil {
		t.Errorf("the binding is %q", b.State)
	}
	w.must(bind) // the same again: there it is
	done(deprovision)(w)
	if state, n := w.instance().State, w.held(); state != lifecycle.Deleted || n != 0 {
		t.Errorf("once it is empty: %q, and %d things are left", state, n)
	}
}
