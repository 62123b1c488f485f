package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/kit/cloudcontroller"
)

// A trial is the flags of `longshore try`.
type trial struct {
	brokerFlags
	client          *cloudcontroller.Client
	bind, key, keep bool
	transcript      string
}

func newTry(getenv func(string) string) *cobra.Command {
	client := &cloudcontroller.Client{
		HTTP: cloudcontroller.HTTP(nil), Now: time.Now, Sleep: waiting.For, NewID: app.NewUUID, UserID: app.NewUUID(),
		// The trial deletes orphans itself; the client would go on trying for 34 hours.
		KeepOrphans: true,
	}
	t := trial{brokerFlags: brokerFlags{getenv: getenv}, client: client}
	c := &cobra.Command{
		Use: "try URL", Short: "Create, bind, unbind and delete with any broker, as Cloud Controller would", Args: oneURL,
		Long: `Do with any broker what Cloud Controller would: create an instance, bind it, unbind
it, delete it. The exit status is 0 if all went right and nothing is
left, 1 if something failed, and 2 if the broker could not be asked.`,
		Example: `  longshore try https://broker.example.com --username broker
  longshore try https://broker.example.com --username broker --service postgres --plan small --parameters '{"size":1}'`,
	}
	t.flags(c, cloudcontroller.NewestMinor)
	f := c.Flags()
	f.BoolVar(&t.bind, "bind", true, "make a binding; --bind=false makes none")
	f.BoolVar(&t.key, "key", false, "a binding for no application, as cf create-service-key makes it")
	f.BoolVar(&t.keep, "keep", false, "keep the instance and the binding, and print their ids, if all went well")
	f.StringVar(&t.transcript, "transcript", "", "`FILE` for each exchange; - is standard output")
	f.DurationVar(&client.MinInterval, "interval", time.Second, "shortest `DURATION` between two polls")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := t.complete(args); err != nil {
			return err
		}
		return try(c.Context(), t, c.OutOrStdout(), c.ErrOrStderr())
	}
	return c
}

func try(ctx context.Context, t trial, out, diagnostics io.Writer) (err error) {
	transcript, end := out, func() error { return nil }
	if t.transcript != "" && t.transcript != "-" { // opened now, so that a mistake shows before the work
		f, err := os.OpenFile(t.transcript, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
		if err != nil {
			return &cannotRun{fmt.Errorf("the file of --transcript cannot be written: name another: %w", err)}
		}
		transcript, end = f, f.Close
	}
	l := &life{trial: t, out: out, line: newProgress(diagnostics)}
	err = l.live(ctx)
	if t.transcript != "" {
		if failed := errors.Join(transcribe(transcript, l.exchanges), end()); failed != nil {
			return errors.Join(err, fmt.Errorf("writing the transcript: %w", failed))
		}
	}
	return err
}

// complete reads the flags, and refuses values that make no sense.
func (t *trial) complete(args []string) (err error) {
	c := t.client
	if c.APIVersion, err = t.minor(cloudcontroller.NewestMinor); err != nil {
		return err
	}
	if t.options.OperationTimeout <= 0 || c.MinInterval <= 0 {
		return misused("--timeout and --interval must be above zero")
	}
	c.PollLimit = t.options.OperationTimeout
	err = t.broker("try", args[0])
	c.URL, c.Credential = t.target.URL, cloudcontroller.Credential{Username: t.target.Username, Password: t.target.Password}
	return err
}

// transcribe writes the transcript, with one paragraph for each exchange.
func transcribe(out io.Writer, exchanges []cloudcontroller.Exchange) error {
	var b strings.Builder
	for _, e := range exchanges {
		status := "no answer"
		if e.Status != 0 {
			status = strconv.Itoa(e.Status)
		}
		fmt.Fprintf(&b, "\n%7.2fs  %s %s\n          %s after %v: %s\n          → %s\n",
			e.Began.Sub(exchanges[0].Began).Seconds(), e.Method, e.Path, status,
			e.Took.Round(time.Millisecond), oneLine(e.Said), oneLine(e.Decided))
	}
	_, err := io.WriteString(out, b.String())
	return err
}
