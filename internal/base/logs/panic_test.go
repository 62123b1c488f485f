package logs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/logs"
)

const canary = "canary-3b1f"

func throwing(value any) func() { return func() { panic(value) } }

// A panic's value may hold a secret: neither the log nor the error tells it. They
// tell its type, where it was thrown, and what the runtime itself complains of.
func TestPanicsAreToldWithoutTheirValue(t *testing.T) {
	none := []string{}
	cases := map[string]struct {
		throw func()
		want  string
	}{
		"Text":     {throwing(canary), "a string"},
		"Error":    {throwing(fmt.Errorf("password %q: %w", canary, errors.New(canary))), "a *fmt.wrapError"},
		"Stringer": {throwing(name(canary)), "a logs_test.name"},
		"Struct":   {throwing(struct{ Password string }{canary}), "a struct { Password string }"},
		"Runtime":  {func() { _ = none[len(canary)] }, "index out of range"},
	}
	for name, tc := range cases {
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
			if strings.Contains(log.String()+err.Error(), canary) {
				t.Errorf("the value is told: %v\n%s", err, log.String())
			}
			for _, want := range []string{tc.want, "TestPanicsAreToldWithoutTheirValue", "e-1"} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log lacks %q: %s", want, log.String())
				}
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %q, want it to say %q", err, tc.want)
			}
		})
	}
}
