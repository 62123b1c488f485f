package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/conformance"
	"github.com/longshore/longshore/internal/conformance/report"
)

// errNotConform says that a broker was checked, and that something failed.
var errNotConform = errors.New("the check has failed")

// A cannotRun says that there was nothing to judge: the exit status is 2.
type cannotRun struct{ cause error }

func (e *cannotRun) Error() string { return e.cause.Error() }

func (e *cannotRun) Unwrap() error { return e.cause }

// A checking is what `longshore check` was called with.
type checking struct {
	target  conformance.Target
	options conformance.Options
	write   report.Writer
	output  string
	list    bool
}

func check(ctx context.Context, args []string, getenv func(string) string, out, diagnostics io.Writer) error {
	c, err := checkFlags(args, getenv)
	switch {
	case err != nil:
		return err
	case c.list:
		return listCases(out, c.options)
	}
	if c.output != "" { // before an hour of work, not after it
		f, err := os.OpenFile(c.output, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return &cannotRun{fmt.Errorf("opening the file of the report: %w", err)}
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
		return errNotConform
	}
	return nil
}

// deliver writes the report where it is wanted.
func (c checking) deliver(out io.Writer, result conformance.Report) error {
	if c.output == "" {
		return c.write(out, result)
	}
	var content bytes.Buffer
	if err := c.write(&content, result); err != nil {
		return err
	}
	return os.WriteFile(c.output, content.Bytes(), 0o644)
}

// checkFlags reads the command line of `longshore check`.
func checkFlags(args []string, getenv func(string) string) (checking, error) {
	c := checking{options: conformance.Options{Now: time.Now}}
	var format, only, level, version string
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.target.Username, "username", getenv(app.EnvUsername), "")
	flags.StringVar(&c.target.Password, "password", getenv(app.EnvPassword), "")
	flags.StringVar(&format, "format", "text", "")
	flags.StringVar(&c.output, "output", "", "")
	flags.StringVar(&only, "only", "", "")
	flags.StringVar(&level, "level", "MAY", "")
	flags.StringVar(&version, "api-version", "2."+strconv.Itoa(conformance.NewestMinor), "")
	flags.IntVar(&c.options.Parallel, "jobs", 4, "")
	flags.StringVar(&c.options.Service, "service", "", "")
	flags.StringVar(&c.options.Plan, "plan", "", "")
	flags.DurationVar(&c.options.OperationTimeout, "timeout", 10*time.Minute, "")
	parameters := flags.String("parameters", "", "")
	update := flags.String("update-parameters", "", "")
	bind := flags.String("bind-parameters", "", "")
	flags.BoolVar(&c.list, "list", false, "")
	urls, err := interspersed(flags, args)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, &usageError{err.Error()}
	}
	wrong := func(format string, args ...any) (checking, error) {
		return c, &usageError{fmt.Sprintf(format, args...)}
	}
	var ok bool
	if c.write, ok = report.Formats[format]; !ok {
		return wrong("--format is text, json or junit, not %q", format)
	}
	if c.options.Level, ok = conformance.ParseLevel(level); !ok {
		return wrong("--level is MUST, SHOULD, REC or MAY, not %q", level)
	}
	if only != "" {
		if c.options.Only, err = regexp.Compile(only); err != nil {
			return wrong("--only is not a regular expression: %v", err)
		}
	}
	if c.options.Minor, err = minorOf(version, conformance.OldestMinor, conformance.NewestMinor); err != nil {
		return c, err
	}
	if c.options.Parallel < 1 || c.options.OperationTimeout <= 0 {
		return wrong("--jobs and --timeout are above zero")
	}
	for _, p := range []struct {
		name, text string
		into       *map[string]any
	}{{"parameters", *parameters, &c.options.Parameters}, {"update-parameters", *update, &c.options.UpdateParameters}, {"bind-parameters", *bind, &c.options.BindParameters}} {
		if p.text != "" && json.Unmarshal([]byte(p.text), p.into) != nil {
			return wrong("--%s is not a JSON object", p.name)
		}
	}
	switch {
	case c.list && len(urls) == 0:
	case len(urls) != 1:
		return wrong("check takes one URL, not %d", len(urls))
	case c.target.Username == "" || c.target.Password == "":
		return wrong("check needs --username and --password, or %s and %s", app.EnvUsername, app.EnvPassword)
	default:
		c.target.URL = urls[0]
	}
	return c, nil
}

// minorOf reads a version of the API, 2.oldest to 2.newest.
func minorOf(version string, oldest, newest int) (int, error) {
	minor, err := strconv.Atoi(strings.TrimPrefix(version, "2."))
	if !strings.HasPrefix(version, "2.") || err != nil || minor < oldest || minor > newest {
		return 0, &usageError{fmt.Sprintf("--api-version is 2.%d to 2.%d, not %q", oldest, newest, version)}
	}
	return minor, nil
}

// interspersed parses flags that may also stand after the arguments.
func interspersed(flags *flag.FlagSet, args []string) (rest []string, err error) {
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if args = flags.Args(); len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return rest, nil
}

// listCases prints the cases that would be asked.
func listCases(out io.Writer, o conformance.Options) error {
	cases := slices.DeleteFunc(conformance.Cases(), func(c conformance.Case) bool { return !o.Takes(c) })
	for _, c := range cases {
		if _, err := fmt.Fprintf(out, "%-28s %-6s 2.%-3d %s\n", c.ID, c.Level, c.Since, c.Title); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%d cases\n", len(cases))
	return err
}

// A progress tells on the diagnostics how far a check is: in one line that
// changes on a terminal, in plain lines elsewhere.
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

// clear begins the changing line anew.
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

// end removes the changing line.
func (p *progress) end() {
	if p.shown {
		_, _ = fmt.Fprint(p.out, clear)
		p.shown = false
	}
}
