package logs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/test/expect"
)

type name string

func (n name) String() string { return string(n) }

func TestLinesSayWhatTheyAreAbout(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(logs.Handler{Handler: slog.NewTextHandler(&out,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}})})
	ctx := logs.Begin(context.Background())
	logs.AddRequest(ctx, "r1")
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	logs.AddOperation(inner, name("o1"))
	logs.AddRequest(inner, "")
	log.With("a", 1).InfoContext(ctx, "outer")
	logs.AddOperation(inner, name("o2"))
	log.InfoContext(inner, "inner", "b", 2)
	other := logs.Begin(ctx)
	logs.AddOperation(other, name("o3"))
	log.InfoContext(other, "other")
	log.InfoContext(ctx, "still")
	binding := logs.Begin(ctx)
	logs.AddSubject(binding, "p", "", "")
	logs.AddSubject(binding, "p", "i", "b")
	logs.AddRequest(binding, "r2")
	logs.AddOperation(binding, name("o4"))
	log.InfoContext(binding, "all")
	logs.AddOperation(context.Background(), name("nowhere"))
	log.Info("without")
	want := `msg=outer a=1 request_identity=r1 operation=o1
msg=inner b=2 request_identity=r1 operation=o2
msg=other operation=o3
msg=still request_identity=r1 operation=o2
msg=all platform=p instance=i binding=b request_identity=r2 operation=o4
msg=without
`
	expect.Same(t, "what was written", want, out.String())
}

const canary = "canary-3b1f"

func throwing(value any) func() { return func() { panic(value) } }

// A panic's value may hold a secret: neither the log nor the error tells it. They
// tell its type, where it was thrown, and what the runtime itself complains of.
func TestPanicsAreToldWithoutTheirValue(t *testing.T) {
	none := []string{}
	for name, tc := range map[string]struct {
		throw func()
		want  string
	}{
		"Text":     {throwing(canary), "a string"},
		"Error":    {throwing(fmt.Errorf("password %q: %w", canary, errors.New(canary))), "a *fmt.wrapError"},
		"Stringer": {throwing(name(canary)), "a logs_test.name"},
		"Struct":   {throwing(struct{ Password string }{canary}), "a struct { Password string }"},
		"Runtime":  {func() { _ = none[len(canary)] }, "index out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			err := func() (err error) {
				defer func() {
					err = logs.Panicked(context.Background(), slog.New(slog.NewJSONHandler(&log, nil)), recover(),
						"execution", "e-1")
				}()
				tc.throw()
				return nil
			}()
			expect.Never(t, "the log and the error", log.String()+err.Error(), canary)
			expect.Says(t, "the log", log.String(), tc.want, "TestPanicsAreToldWithoutTheirValue", "e-1")
			expect.Says(t, "the error", err.Error(), tc.want)
		})
	}
}
