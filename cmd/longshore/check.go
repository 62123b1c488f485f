package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/kit/conformance"
	"github.com/longshore/longshore/kit/conformance/report"
)

// A checking is one run of `longshore check`.
type checking struct {
	brokerFlags
	write  report.Writer
	report string
	list   bool
}

func newCheck(getenv func(string) string) *cobra.Command {
	k := checking{brokerFlags: brokerFlags{getenv: getenv, options: conformance.Options{Now: time.Now}}}
	c := &cobra.Command{
		Use: "check URL", Short: "Ask any broker whether it keeps to the Open Service Broker API", Args: oneURL,
		Long: `Ask any broker whether it keeps to the Open Service Broker API. It makes instances
and bindings, and removes them. The exit status is 0 if the broker does, 1 if
something failed, and 2 if it could not be asked.`,
		Example: `  longshore check https://broker.example.com --username broker
  longshore check https://broker.example.com --username broker --plan small --level MUST
  longshore check --list --only '^PROV'`,
	}
	k.flags(c, conformance.NewestMinor)
	f := c.Flags()
	var format, level string
	choose(c, &format, "output,o", "text", "`FORMAT` of the report: text, json or junit", "text", "json", "junit")
	f.StringVar(&k.report, "report", "", "`FILE` for the report; standard output unless given")
	only := f.String("only", "", "only the cases whose id and title match the `REGEXP`, such as ^BIND")
	choose(c, &level, "level", "MAY", "only the cases of this `LEVEL` and above: MUST, SHOULD, REC or MAY",
		"MUST", "SHOULD", "REC", "MAY")
	f.StringSliceVar(&k.options.Without, "without", nil, "`NAME` or id of services that are left out, with commas between them")
	f.IntVar(&k.options.Parallel, "jobs", 4, "how many cases run at a time, `N`")
	f.Var((*object)(&k.options.UpdateParameters), "update-parameters", "`JSON` object that every update is given")
	f.BoolVar(&k.list, "list", false, "print the cases, and send nothing")
	c.RunE = func(c *cobra.Command, args []string) error {
		k.write = report.Formats[format]
		k.options.Level, _ = conformance.ParseLevel(level)
		if err := k.complete(args, *only); err != nil {
			return err
		}
		if k.list {
			cases := k.options.Cases()
			for _, one := range cases {
				printf(c.OutOrStdout(), "%-28s %-6s 2.%-3d %s\n", one.ID, one.Level, one.Since, one.Title)
			}
			printf(c.OutOrStdout(), "%d cases\n", len(cases))
			return nil
		}
		return check(c.Context(), k, c.OutOrStdout(), c.ErrOrStderr())
	}
	return c
}

func check(ctx context.Context, c checking, out, diagnostics io.Writer) error {
	if c.report != "" { // opened now, so that a mistake shows before an hour of work
		f, err := os.OpenFile(c.report, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return &cannotRun{fmt.Errorf("the file of --report cannot be written: name another: %w", err)}
		}
		_ = f.Close()
	}
	line := newProgress(diagnostics)
	c.options.Observe = line.show
	result, err := conformance.Run(ctx, c.target, c.options)
	line.end()
	if err != nil {
		return &cannotRun{err}
	}
	if err := c.deliver(out, result); err != nil {
		return &cannotRun{fmt.Errorf("writing the report: %w", err)}
	}
	if !result.Conforms() {
		return errors.New("the check has failed")
	}
	return nil
}

// deliver writes the report to its file or to standard output.
func (c checking) deliver(out io.Writer, result conformance.Report) error {
	if c.report == "" {
		return c.write(out, result)
	}
	var content bytes.Buffer
	if err := c.write(&content, result); err != nil {
		return err
	}
	return os.WriteFile(c.report, content.Bytes(), 0o644)
}

// complete reads the flags, and refuses values that make no sense.
func (k *checking) complete(args []string, only string) (err error) {
	if only != "" {
		if k.options.Only, err = regexp.Compile(only); err != nil {
			return misused("--only is not a regular expression: %v", err)
		}
	}
	if k.options.Minor, err = k.minor(conformance.NewestMinor); err != nil {
		return err
	}
	if k.options.Parallel < 1 || k.options.OperationTimeout <= 0 {
		return misused("--jobs and --timeout must be above zero")
	}
	if k.list && len(args) == 0 {
		return nil
	}
	return k.broker("check", args[0])
}

// A progress shows how far a check has come: in one changing line on a terminal, in plain lines elsewhere.
type progress struct {
	out      io.Writer
	terminal bool
	failed   int
	shown    bool
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// clear moves to the start of the changing line and erases it.
const clear = "\r\x1b[K"

func (p *progress) show(now conformance.Progress) {
	bad := now.Result != nil && (now.Result.Outcome == conformance.Failed || now.Result.Outcome == conformance.Blocked)
	if bad {
		p.failed++
		p.line(fmt.Sprintf("%s %s: %s", now.Result.Outcome, now.Result.ID, now.Result.Title))
	}
	switch {
	case now.Doing != "" && p.terminal:
		p.change(now.Doing + " …")
	case now.Doing != "":
		p.line(now.Doing)
	case p.terminal:
		p.change(fmt.Sprintf("%d of %d, %d failed, %s", now.Done, now.Total, p.failed, now.Result.ID))
	case now.Done%100 == 0 || now.Done == now.Total:
		p.line(fmt.Sprintf("%d of %d, %d failed", now.Done, now.Total, p.failed))
	}
}

func (p *progress) change(text string) {
	_, _ = fmt.Fprint(p.out, clear, text)
	p.shown = true
}

func (p *progress) line(text string) {
	p.end()
	_, _ = fmt.Fprintln(p.out, text)
}

// end erases the changing line.
func (p *progress) end() {
	if p.shown {
		_, _ = fmt.Fprint(p.out, clear)
		p.shown = false
	}
}
