package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
)

// A place is where the broker is that an operator's command is about.
type place struct {
	data, stack string
	offerings   string // for a folder that no broker runs on
	// anew has records begin anew that a folder has lost.
	anew bool
}

func (p *place) flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&p.data, "data", ".longshore", "")
	f.StringVar(&p.stack, "stack", "", "")
	f.StringVar(&p.offerings, "offerings", "", "")
	return f
}

func (p *place) open(ctx context.Context) (app.Console, func(), error) {
	if p.stack != "" {
		c, err := app.StackConsole(ctx, p.stack)
		return c, func() {}, err
	}
	return app.FolderConsole(ctx, p.data, p.offerings, p.anew)
}

// parse reads a command's flags and no more than so many arguments.
func parse(f *flag.FlagSet, args []string, most int) ([]string, error) {
	rest, err := interspersed(f, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, err
	case err != nil:
		return nil, &usageError{err.Error()}
	case len(rest) > most:
		return nil, &usageError{fmt.Sprintf("%s does not take %q", f.Name(), rest[most])}
	}
	return rest, nil
}

// formatted says that a command can print a table or JSON.
func formatted(f *flag.FlagSet) *string { return f.String("format", "table", "") }

// asJSON reports whether JSON was asked for.
func asJSON(format string) (bool, error) {
	if format != "table" && format != "json" {
		return false, &usageError{fmt.Sprintf("--format %q is neither table nor json", format)}
	}
	return format == "json", nil
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// each is a list that is never null.
func each[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// listing lists instances, bindings or operations.
func listing(ctx context.Context, what operator.What, args []string, out, diagnostics io.Writer) error {
	var p place
	q := operator.Query{What: what}
	f := p.flags(string(what))
	f.StringVar(&q.Platform, "platform", "", "")
	f.StringVar(&q.State, "state", "", "")
	f.StringVar(&q.Plan, "plan", "", "")
	format := formatted(f)
	watch := f.Bool("watch", false, "")
	rest, err := parse(f, args, 1)
	if err != nil {
		return err
	}
	machine, err := asJSON(*format)
	if err != nil {
		return err
	}
	if len(rest) == 1 {
		q.ID = rest[0]
	}
	console, closing, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer closing()
	if *watch {
		return watchRows(ctx, console, q, out)
	}
	rows, err := console.List(ctx, q)
	if err != nil && len(rows) == 0 {
		return err
	}
	if err != nil {
		_, _ = fmt.Fprintf(diagnostics, "some records could not be read: %v\n", err)
	}
	if machine {
		return printJSON(out, each(rows))
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(out, "No %s.\n", what)
		return err
	}
	if q.ID != "" && len(rows) == 1 {
		return show(out, rows[0])
	}
	return table(out, what, rows)
}

func table(out io.Writer, what operator.What, rows []operator.Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	switch what {
	case operator.Operations:
		_, _ = fmt.Fprintln(w, "KIND\tPHASE\t%\tSTARTED\tPLATFORM\tINSTANCE\tBINDING\tTOKEN")
	case operator.Bindings:
		_, _ = fmt.Fprintln(w, "BINDING\tSTATE\tOPERATION\tOFFERING\tPLAN\tPLATFORM\tINSTANCE")
	default:
		_, _ = fmt.Fprintln(w, "INSTANCE\tSTATE\tOPERATION\tOFFERING\tPLAN\tPLATFORM\tCREATED")
	}
	for _, r := range rows {
		switch op := r.Operation; what {
		case operator.Operations:
			_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", op.Kind, op.Phase, op.Percent, stamp(op.Started), r.Platform, r.Instance, orDash(r.Binding), op.Token)
		case operator.Bindings:
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Binding, r.State, phase(op), r.Service, r.Plan, r.Platform, r.Instance)
		default:
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Instance, r.State, phase(op), orDash(r.Service), orDash(r.Plan), r.Platform, stamp(r.Created))
		}
	}
	return w.Flush()
}

func phase(op *operator.Operation) string {
	if op == nil {
		return "-"
	}
	if op.Phase == string(lifecycle.InProgress) {
		return fmt.Sprintf("%s, %d %%", op.Kind, op.Percent)
	}
	return op.Kind + " " + op.Phase
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// show says all that there is to know of one.
func show(out io.Writer, r operator.Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" && value != "-" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", name, value)
		}
	}
	line("platform", r.Platform)
	line("instance", r.Instance)
	line("binding", r.Binding)
	line("state", r.State)
	line("offering", r.Service)
	line("plan", r.Plan)
	line("created", stamp(r.Created))
	line("updated", stamp(r.Updated))
	if r.Unusable {
		line("usable", "no, since its last update failed")
	}
	if op := r.Operation; op != nil {
		line("operation", op.Kind+", "+op.Phase)
		line("  token", op.Token)
		line("  says", op.Description)
		line("  percent", fmt.Sprint(op.Percent))
		line("  attempt", fmt.Sprint(op.Attempt))
		if op.Faults > 0 {
			line("  faults", fmt.Sprintf("%d since its last good step", op.Faults))
		}
		line("  started", stamp(op.Started))
		line("  settled", stamp(op.Settled))
		line("  expected", stamp(op.Expected))
		line("  deadline", stamp(op.Deadline))
		line("  request", op.Request)
	}
	line("note", r.Note)
	return w.Flush()
}

const watchEvery = 2 * time.Second

// watchRows follows what runs until nothing does.
func watchRows(ctx context.Context, console app.Console, q operator.Query, out io.Writer) error {
	last := map[string]string{}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		rows, err := console.List(ctx, q)
		if err != nil && len(rows) == 0 {
			return err
		}
		running := 0
		for _, r := range rows {
			if r.Operation == nil {
				continue
			}
			if r.Operation.Phase == string(lifecycle.InProgress) {
				running++
			}
			line := progressLine(r, time.Now())
			if was, seen := last[r.Operation.Token]; was != line && (seen || r.Operation.Phase == string(lifecycle.InProgress)) {
				_, _ = fmt.Fprintln(out, line)
			}
			last[r.Operation.Token] = line
		}
		if running == 0 {
			_, err := fmt.Fprintln(out, "Nothing runs.")
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

const barWidth = 20

// bar shows how much is done.
func bar(percent int) string {
	full := percent * barWidth / 100
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "]"
}

// progressLine is a line with a bar: what the provider says, or else how much of the
// expected time has passed.
func progressLine(r operator.Row, now time.Time) string {
	op := r.Operation
	percent := op.Percent
	if total := op.Expected.Sub(op.Started); percent == 0 && !op.Expected.IsZero() && total > 0 {
		percent = int(min(99, 100*now.Sub(op.Started)/total))
	}
	name := r.Instance
	if r.Binding != "" {
		name += "/" + r.Binding
	}
	if op.Phase != string(lifecycle.InProgress) {
		percent = 100
	}
	return strings.TrimSpace(fmt.Sprintf("%s %3d %%  %s of %s: %s  %s", bar(percent), percent, op.Kind, name, op.Phase, op.Description))
}

// retry drives an operation again.
func retry(ctx context.Context, args []string, out io.Writer) error {
	var p place
	rest, err := parse(p.flags("retry"), args, 1)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return &usageError{"retry needs an operation's token: `longshore operations` lists them"}
	}
	console, closing, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer closing()
	row, err := console.Retry(ctx, rest[0])
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "Driven again, as attempt %d.\n\n", row.Operation.Attempt)
	return show(out, row)
}

// settle ends an operation by the operator's word.
func settle(ctx context.Context, args []string, out io.Writer) error {
	var p place
	f := p.flags("settle")
	message := f.String("failed", "", "")
	yes := f.Bool("yes", false, "")
	rest, err := parse(f, args, 1)
	switch {
	case err != nil:
		return err
	case len(rest) != 1:
		return &usageError{"settle needs an operation's token: `longshore operations` lists them"}
	case strings.TrimSpace(*message) == "":
		return &usageError{`settle needs --failed "what the platform's user is told"`}
	case !*yes:
		return errors.New("the operation ends for good, and the platform is told that it failed: say --yes if that is what you want; `longshore retry` drives it again instead")
	}
	console, closing, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer closing()
	row, err := console.Settle(ctx, rest[0], *message)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprint(out, "It has failed.\n\n")
	return show(out, row)
}
