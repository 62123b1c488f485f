package inprocess_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/workflowtest"
	"github.com/longshore/longshore/internal/work/inprocess"
)

func TestEngine(t *testing.T) {
	workflowtest.Run(t, func(t *testing.T, step workflow.Step, wait func(time.Duration)) workflow.Engine {
		log := slog.New(slog.DiscardHandler)
		e := inprocess.New(step, inprocess.Options{Log: log, After: func(d time.Duration, f func()) func() bool {
			go func() {
				wait(d)
				f()
			}()
			return func() bool { return false }
		}})
		t.Cleanup(e.Close)
		return e
	})
}

func ref(id string) workflow.Ref {
	return workflow.Ref{Token: lifecycle.Token{Operation: strings.Repeat(id, lifecycle.OperationIDLength),
		Key: lifecycle.Key{Platform: "p", Instance: "i"}}, Attempt: 1}
}

// Close ends the pause of every execution, waits for steps that are being made, and refuses whatever comes later.
func TestClose(t *testing.T) {
	inStep, leave := make(chan struct{}), make(chan struct{})
	var steps, asked atomic.Int32
	e := inprocess.New(func(ctx context.Context, _ workflow.Ref) (workflow.Outcome, error) {
		steps.Add(1)
		close(inStep)
		<-ctx.Done()
		<-leave
		return workflow.Outcome{Wait: time.Hour}, nil
	}, inprocess.Options{Log: slog.New(slog.DiscardHandler), Inquire: func(ctx context.Context, _ workflow.Inquiry) {
		if asked.Add(1) > 2 {
			t.Error("more than two inquiries run at once")
		}
		defer asked.Add(-1)
		<-ctx.Done()
		panic("ends this inquiry, and not the process")
	}})
	expect.OK(t, e.Start(context.Background(), ref("A")))
	<-inStep
	for range 10 { // more than run at once
		expect.OK(t, e.Inquire(context.Background(), workflow.Inquiry{}))
	}
	closed := make(chan struct{})
	go func() {
		e.Close()
		close(closed)
	}()
	select {
	case <-closed:
		t.Error("Close did not wait for the step")
	default:
	}
	close(leave)
	<-closed // the hour's pause was given up
	expect.Same(t, "steps", 1, steps.Load())
	expect.Fails(t, "asked after the end", inprocess.ErrClosed, e.Inquire(context.Background(), workflow.Inquiry{}))
	expect.Fails(t, "started after the end", inprocess.ErrClosed, e.Start(context.Background(), ref("B")))
	expect.Fails(t, "finished after the end", inprocess.ErrClosed, e.Finish(context.Background(), ref("B")))
}

// A pause that ends while the engine is closed is followed by no step, and Close waits until it is known.
func TestCloseAtTheEndOfAPause(t *testing.T) {
	paused, end := make(chan struct{}), make(chan struct{})
	var steps atomic.Int32
	e := inprocess.New(func(context.Context, workflow.Ref) (workflow.Outcome, error) {
		steps.Add(1)
		return workflow.Outcome{Wait: time.Hour}, nil
	}, inprocess.Options{After: func(_ time.Duration, f func()) func() bool {
		go func() {
			<-end
			f()
		}()
		close(paused)
		return func() bool { close(end); return false }
	}})
	expect.OK(t, e.Start(context.Background(), ref("A")))
	<-paused
	e.Close()
	expect.Same(t, "steps", 1, steps.Load())
}

// Executions that pause have no goroutines.
func TestPausesAreNoGoroutines(t *testing.T) {
	const many = 100
	var stepped sync.WaitGroup
	stepped.Add(many)
	e := inprocess.New(func(context.Context, workflow.Ref) (workflow.Outcome, error) {
		stepped.Done()
		return workflow.Outcome{Wait: time.Hour}, nil
	}, inprocess.Options{})
	defer e.Close()
	before := runtime.NumGoroutine()
	for n := range many {
		r := ref("A")
		r.Attempt = n
		expect.OK(t, e.Start(context.Background(), r))
	}
	stepped.Wait()
	for began := time.Now(); runtime.NumGoroutine() > before+many/2; runtime.Gosched() { // they end after their steps
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%d goroutines while %d executions pause", runtime.NumGoroutine()-before, many)
		}
	}
}

// The pause between steps is a real one unless it is replaced.
func TestPausesAreReal(t *testing.T) {
	began := time.Now()
	var steps atomic.Int32
	e := inprocess.New(func(context.Context, workflow.Ref) (workflow.Outcome, error) {
		return workflow.Outcome{Wait: 20 * time.Millisecond, Settled: steps.Add(1) == 2}, nil
	}, inprocess.Options{})
	defer e.Close()
	expect.OK(t, e.Finish(context.Background(), ref("A")))
	if took := time.Since(began); took < 20*time.Millisecond {
		t.Errorf("two steps came within %v", took)
	}
}

// A panic's value may hold a secret.
func TestAPanicsValueIsNotLogged(t *testing.T) {
	var log bytes.Buffer
	e := inprocess.New(func(context.Context, workflow.Ref) (workflow.Outcome, error) { panic("canary-52aa") },
		inprocess.Options{Log: slog.New(slog.NewJSONHandler(&log, nil))})
	expect.OK(t, e.Start(context.Background(), ref("A")))
	expect.OK(t, e.Finish(context.Background(), ref("A")))
	e.Close()
	if strings.Contains(log.String(), "canary-52aa") || !strings.Contains(log.String(), "engine_test.go") {
		t.Errorf("log: %s", log.String())
	}
}
