package waiting_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestFor(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		reason string
		ctx    context.Context
		d      time.Duration
		want   error
	}{
		"Passed": {"the time has passed", t.Context(), time.Nanosecond, nil},
		"Ended":  {"a context that has ended is not waited for", ended, time.Hour, context.Canceled},
		"Both":   {"of a context that has ended nothing goes on, however short the wait", ended, 0, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) { expect.Fails(t, tc.reason, tc.want, waiting.For(tc.ctx, tc.d)) })
	}
}
