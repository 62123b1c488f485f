// Package waiting waits for a time, or until a context ends.
package waiting

import (
	"context"
	"time"
)

// For waits for a time, or until the context ends, and returns the context's error.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
