// Command longshore is the operator's command line; `longshore serve` is the
// whole broker in one process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `Longshore, a service broker.

  longshore serve [--listen HOST:PORT] [--data DIR] [--offerings DIR]
        run the broker in this process, with no cloud account
  longshore catalog validate [DIR]
        check the shipped offering files and those in DIR
  longshore platform list
  longshore platform add NAME [--path /PATH] [--offering NAME[/PLAN]]... [--offerings DIR]
  longshore platform rotate NAME [--overlap 24h] [--now]
  longshore platform remove NAME
        who may use the broker: the one over a data folder (--data DIR), or the
        one that a stack on AWS is (--stack NAME)
  longshore version
        say which version this is

Settings from the environment (serve):
  LONGSHORE_USERNAME, LONGSHORE_PASSWORD
        what the platform logs in with; generated and kept in DIR unless set
  LONGSHORE_DEMO_DELAY
        how long the demo's asynchronous steps take, such as 500ms; 3s unless set
  LONGSHORE_MIN_RETRY_AFTER, LONGSHORE_MAX_RETRY_AFTER
        bounds of Retry-After; 1s and 1m unless set
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run gives the exit status: 0 done, 1 failed, 2 called wrongly.
func run(ctx context.Context, args []string, getenv func(string) string, out, diagnostics io.Writer) int {
	err := dispatch(ctx, args, getenv, out, diagnostics)
	var wrong *usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &wrong):
		_, _ = fmt.Fprintf(diagnostics, "longshore: %v\n\n%s", err, usage)
		return 2
	default:
		_, _ = fmt.Fprintf(diagnostics, "longshore: %v\n", err)
		return 1
	}
}
