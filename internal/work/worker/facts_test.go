package worker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// describing is a provider that tells facts as given.
type describing struct {
	provider.Provider
	tell func(ctx context.Context, in provider.Instance) (provider.Facts, error)
}

func (d describing) Describe(ctx context.Context, in provider.Instance) (provider.Facts, error) {
	return d.tell(ctx, in)
}

// Facts are written by the inquiry that was claimed last, once, and about the life that it was claimed for. An error, a
// dead process and what overtakes an inquiry leave the last facts, and the record is never touched.
func TestFacts(t *testing.T) {
	w := newWorld(t)
	var log bytes.Buffer
	asked, tells := 0, errors.New("dial 10.0.0.4: refused")
	meanwhile := func() {}
	steps := w.by(describing{Provider: w.tells(func(provider.Instance) (provider.Status, error) { return finished(nil) }),
		tell: func(ctx context.Context, in provider.Instance) (provider.Facts, error) {
			asked++
			if _, ends := ctx.Deadline(); !ends || in.Parameters != nil || in.Operation != (provider.Operation{}) ||
				in.Incarnation == "" {
				t.Errorf("the provider is asked about %v, by a context that ends: %v", in.Incarnation, ends)
			}
			meanwhile()
			return provider.Facts{Region: strings.Repeat("r", asked)}, tells
		}})
	steps.Log = slog.New(slog.NewTextHandler(&log, nil))
	made := w.asks(provision)
	stored := func() ledger.Facts {
		t.Helper()
		return expect.Get(w.ledger().Facts(t.Context(), w.instance().Key))(t).Of(w.instance())
	}
	claim := func() workflow.Inquiry {
		t.Helper()
		w.clock = w.clock.Add(time.Minute)
		f := stored()
		f.Asked = w.clock
		w.commits(ledger.Put(f))
		return workflow.Inquiry{Key: f.Key, Incarnation: f.Incarnation, Asked: f.Asked, Version: f.Version + 1}
	}
	inquire := func(q workflow.Inquiry, calls int, region string) {
		t.Helper()
		before, version := asked, w.instance().Version
		steps.Inquire(t.Context(), q)
		if got := stored(); asked-before != calls || got.Facts.Region != region || w.instance().Version != version {
			t.Errorf("the provider was asked %d times, want %d; facts %+v, want region %q; the record changed: %v", asked-before,
				calls, got, region, w.instance().Version != version)
		}
	}
	inquire(claim(), 0, "") // it is being made
	w.step(steps, made)
	inquire(claim(), 1, "")
	if !strings.Contains(log.String(), "10.0.0.4") || !stored().Answered.IsZero() {
		t.Errorf("a failed inquiry left %+v and the log %q", stored(), log.String())
	}
	log.Reset()
	tells = nil
	claim() // and the process that claimed it dies
	q := claim()
	inquire(q, 1, "rr")
	want := ledger.Facts{Version: q.Version + 1, Key: q.Key, Incarnation: q.Incarnation, Asked: q.Asked, Answered: q.Asked,
		Facts: provider.Facts{Region: "rr"}}
	expect.Same(t, "facts", want, stored())
	inquire(q, 1, "rr") // Lambda delivers it twice
	late := claim()
	inquire(claim(), 1, "rrrr")
	inquire(late, 1, "rrrr")
	meanwhile = func() { // the instance is deleted, and its id used again, while the provider answers
		meanwhile = func() {}
		w.step(steps, w.asks(deprovision))
		w.step(steps, w.asks(provision))
	}
	old := claim()
	steps.Inquire(t.Context(), old)
	if f := stored(); f.Facts != (provider.Facts{}) || f.Incarnation == old.Incarnation || f.Version == 0 {
		t.Errorf("a new life has the facts of the old one: %+v", f)
	}
	inquire(old, 0, "")
	inquire(claim(), 1, strings.Repeat("r", asked+1))
	if strings.Contains(log.String(), "level=WARN") {
		t.Errorf("what is no fault is logged: %s", log.String())
	}
	steps.Providers = testkit.AsDemo(struct{ provider.Provider }{}) // tells nothing
	inquire(claim(), 0, "")
	if f := stored(); f.Answered != f.Asked {
		t.Errorf("a provider that tells nothing has not answered: %+v", f)
	}
}
