package logs

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
)

// Panicked logs a panic from within the deferred function that recovered it, and returns an error in its
// place. Both name the type of the panic's value; the log also has the stack. The value may hold
// secrets, so it is shown only for the runtime's own panics, which mention only types and indexes.
func Panicked(ctx context.Context, log *slog.Logger, value any, more ...any) error {
	what := fmt.Sprintf("a %T", value)
	if err, ok := value.(runtime.Error); ok {
		what = err.Error()
	}
	log.ErrorContext(ctx, "panic", append(more, "panic", what, "stack", string(debug.Stack()))...)
	return fmt.Errorf("it panicked with %s", what)
}
