// Command longshore is the operator's command line; `longshore serve` is the
// whole broker in one process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/records/store/bolt"
)

func main() {
	bolt.BeChecker()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C then ends the process at once
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// A usageError says that the command line cannot be understood; the exit status is 2.
type usageError struct{ error }

// misused returns a usageError.
func misused(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// A cannotRun says that there was nothing to judge, or that not everything could be read; the exit status is 2.
type cannotRun struct{ error }

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *cannotRun) Unwrap() error { return e.error }

// An output keeps the first error of writing to it. Commands print without checking for one; run
// reports it in the end.
type output struct {
	io.Writer
	failed error
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if o.failed == nil {
		o.failed = err
	}
	return n, err
}

// run executes a command and returns the exit status: 0 for success, 1 for a failure, 2 for a wrong
// call, or for a check or a list that could not be completed.
func run(ctx context.Context, args []string, getenv func(string) string, out, diagnostics io.Writer) int {
	printed := &output{Writer: out}
	root := newRoot(getenv, printed, diagnostics)
	root.SetArgs(args)
	began := false
	root.PersistentPreRun = func(*cobra.Command, []string) { began = true }
	called, err := root.ExecuteContextC(ctx)
	if err == nil && began && ctx.Err() == nil { // an interrupted command has done what it could
		err = printed.failed
	}
	if err == nil {
		return 0
	}
	printf(diagnostics, "longshore: %v\n", err)
	switch {
	case !began || errors.As(err, new(*usageError)):
		printf(diagnostics, "See `%s --help`.\n", called.CommandPath())
		return 2
	case errors.As(err, new(*cannotRun)):
		return 2
	default:
		return 1
	}
}
