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
  longshore instances [ID] [--platform NAME] [--state STATE] [--plan NAME] [--format table|json] [--watch]
  longshore bindings [ID] ...
  longshore operations [TOKEN] ...
        what there is, or one in full; STATE is of the instance or binding, or
        running or failed, of its operation; --watch follows what runs
  longshore retry TOKEN
        drive an operation that runs again, or delete what failed
  longshore settle TOKEN --failed "MESSAGE" --yes
        end an operation that runs; the platform's user is told the message
  longshore reaper report [--last N] | resume
        what the reaper saw and did; lift its halt
  longshore rebuild --yes
        give a record to all that exists and has none, after records were lost
        (these are for the broker over a data folder, running or not (--data
        DIR, and --offerings DIR if it has its own), or the one that a stack on
        AWS is (--stack NAME))
  longshore check URL [--username USER] [--password PASSWORD] [--list]
                [--format text|json|junit] [--output FILE]
                [--only REGEXP] [--level MUST|SHOULD|REC|MAY] [--api-version 2.17]
                [--service NAME] [--plan NAME] [--jobs N] [--timeout DURATION]
                [--parameters JSON] [--update-parameters JSON] [--bind-parameters JSON]
        ask any broker whether it keeps to the Open Service Broker API; exit
        status 0 if it does, 1 if something failed, 2 if it could not be asked
  longshore try URL [--username USER] [--password PASSWORD] [--service NAME] [--plan NAME]
              [--parameters JSON] [--bind-parameters JSON] [--bind=false] [--key] [--keep]
              [--api-version 2.17] [--timeout DURATION] [--interval DURATION]
              [--transcript FILE|-]
        live one life with any broker, as Cloud Controller would: make an
        instance, bind it, unbind it, delete it; exit status 0 if all went right
        and nothing is left, 1 if something failed, 2 if it could not be asked
  longshore version
        say which version this is

Settings from the environment:
  LONGSHORE_USERNAME, LONGSHORE_PASSWORD
        what the platform logs in with (serve: generated and kept in DIR unless
        set; check: unless given by --username and --password)
  LONGSHORE_DEMO_DELAY
        how long the demo's asynchronous steps take (serve), such as 500ms; 3s
        unless set
  LONGSHORE_REAPER_DRY_RUN
        true has the reaper only report what no record knows of (serve)
  LONGSHORE_MIN_RETRY_AFTER, LONGSHORE_MAX_RETRY_AFTER
        bounds of Retry-After (serve); 1s and 1m unless set
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends at once
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run gives the exit status: 0 done, 1 failed, 2 called wrongly or, for a
// check, could not be done.
func run(ctx context.Context, args []string, getenv func(string) string, out, diagnostics io.Writer) int {
	err := dispatch(ctx, args, getenv, out, diagnostics)
	var wrong *usageError
	var cannot *cannotRun
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprint(out, usage)
		return 0
	case errors.As(err, &wrong):
		_, _ = fmt.Fprintf(diagnostics, "longshore: %v\n\n%s", err, usage)
		return 2
	case errors.As(err, &cannot):
		_, _ = fmt.Fprintf(diagnostics, "longshore: %v\n", err)
		return 2
	default:
		_, _ = fmt.Fprintf(diagnostics, "longshore: %v\n", err)
		return 1
	}
}
