package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/work/reaper"
)

const lease = 90 * time.Second

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// counted counts what is written.
type counted struct {
	*ledger.Ledger
	commits atomic.Int32
	// refuse, if set, is what every commit meets.
	refuse error
	// before, if set, happens just before a commit of several records.
	before func()
}

func (c *counted) Commit(ctx context.Context, changes ...ledger.Change) error {
	c.commits.Add(1)
	if c.refuse != nil {
		return c.refuse
	}
	if c.before != nil && len(changes) > 1 {
		c.before()
	}
	return c.Ledger.Commit(ctx, changes...)
}

// a scene is a table, and the time.
type scene struct {
	*testing.T
	records *counted
	now     time.Time
	serial  atomic.Int32
}

func newScene(t *testing.T) *scene {
	t.Helper()
	out := &scene{T: t, now: epoch}
	out.records = &counted{Ledger: ledger.New(memory.New(), out.id)}
	return out
}

func (s *scene) id() string { return fmt.Sprintf("serial-%015d", s.serial.Add(1)) }

// overdue records an operation that nothing drives.
func (s *scene) overdue(id string) lifecycle.Key {
	s.Helper()
	key := lifecycle.Key{Platform: "p", Instance: id}
	start := lifecycle.Start{ID: s.id(), Now: s.now, Received: s.now, Timeout: 24 * time.Hour}
	i, err := s.record(key).BeginCreate(start, lifecycle.Record{Provider: "demo"})
	expect.OK(s, err)
	s.commit(ledger.Put(i))
	return key
}

func (s *scene) record(key lifecycle.Key) lifecycle.Record {
	s.Helper()
	return expect.Get(s.records.Record(s.Context(), key, s.now))(s)
}

func (s *scene) commit(changes ...ledger.Change) {
	s.Helper()
	expect.OK(s, s.records.Ledger.Commit(s.Context(), changes...))
}

func (s *scene) reaper(start func(context.Context, workflow.Ref) error) *reaper.Reaper {
	return reaper.New(reaper.Options{Records: s.records, Start: start, Now: func() time.Time { return s.now }, NewID: s.id,
		OperationTimeout: 24 * time.Hour, Lease: lease, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
}

func (s *scene) sweep(want reaper.Report, start func(context.Context, workflow.Ref) error) {
	s.Helper()
	if got, err := s.reaper(start).Sweep(s.Context()); err != nil || got != want {
		s.Errorf("swept %+v %v, want %+v", got, err, want)
	}
}

func started(context.Context, workflow.Ref) error { return nil }

func TestSweepsDoNotOverlap(t *testing.T) {
	s := newScene(t)
	s.overdue("a")
	s.now = epoch.Add(time.Hour)
	s.sweep(reaper.Report{Swept: ledger.Swept{Redriven: 1}}, func(context.Context, workflow.Ref) error {
		s.overdue("b")
		before := s.now
		s.now = epoch.Add(time.Hour + lease - time.Second)
		s.sweep(reaper.Report{Busy: true}, func(context.Context, workflow.Ref) error {
			t.Error("an operation was driven beside the run that is at work")
			return nil
		})
		s.now = before
		return nil
	})
	// The next run finds at once the record that the second left alone.
	s.now = epoch.Add(3 * time.Hour)
	s.sweep(reaper.Report{Swept: ledger.Swept{Redriven: 2}}, started)
}

func TestALeaseOfADeadRunEnds(t *testing.T) {
	s := newScene(t)
	s.overdue("a")
	s.now = epoch.Add(time.Hour)
	held := ledger.SweepLease{Holder: "dead", Until: s.now.Add(lease)}
	expect.OK(t, s.records.Commit(t.Context(), ledger.Put(held)))
	s.now = held.Until.Add(-time.Millisecond)
	s.sweep(reaper.Report{Busy: true}, started)
	s.now = held.Until
	s.sweep(reaper.Report{Swept: ledger.Swept{Redriven: 1}}, started)
}

// A sweep that is cut off reports what it has done until then.
func TestASweepThatIsCutOffIsReported(t *testing.T) {
	s := newScene(t)
	s.overdue("a")
	s.now = epoch.Add(time.Hour)
	ctx, cut := context.WithCancel(t.Context())
	swept, err := s.reaper(func(context.Context, workflow.Ref) error {
		cut()
		return nil
	}).Sweep(ctx)
	if !errors.Is(err, context.Canceled) || swept.Redriven != 1 {
		t.Fatalf("swept %+v, error %v: the test proves nothing", swept, err)
	}
	reports := expect.Get(s.records.Reports(t.Context(), time.Time{}))(t)
	expect.Same(t, "reports", []ledger.Report{{Started: s.now, Ended: s.now, Swept: &swept.Swept}}, reports)
}

// A schedule that has nothing to do costs no write.
func TestAnEmptySweepWritesNothing(t *testing.T) {
	s := newScene(t)
	s.overdue("a") // not yet
	s.sweep(reaper.Report{}, started)
	expect.Same(t, "commits", 0, s.records.commits.Load())
}

func TestWithoutALeaseNothingIsDone(t *testing.T) {
	s := newScene(t)
	s.overdue("a")
	s.now = epoch.Add(time.Hour)
	s.records.refuse = ledger.ErrConflict // another run was first
	s.sweep(reaper.Report{Busy: true}, started)
	s.records.refuse = errors.New("unreachable")
	report, err := s.reaper(started).Sweep(t.Context())
	if !errors.Is(err, s.records.refuse) || !report.Empty() {
		t.Errorf("swept %+v, error %v", report, err)
	}
}
