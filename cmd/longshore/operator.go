package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/offered"
	"github.com/longshore/longshore/internal/base/pages"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
)

// A place is the broker that a command is for: the one over a data folder, or a
// deployed one.
type place struct {
	data, stack string
	offerings   string // the operator's own, as for serve or at deploy
	// lost has new records begun where those of a folder are lost, and is told what that
	// loses; nil for neither.
	lost func(what string)
	// getenv has what providers are set up by where no broker runs; nil for nothing.
	getenv func(string) string
}

// dataFolder is the data folder unless another is named.
const dataFolder = ".longshore"

func (p *place) flags(c *cobra.Command) {
	c.Flags().StringVar(&p.data, "data", dataFolder, "data `DIR` of the broker, which may run or not")
	c.Flags().StringVar(&p.stack, "stack", "", "`NAME` of the stack that the broker is on AWS, in place of --data")
	c.PreRunE = oneBroker
	c.Flags().StringVar(&p.offerings, "offerings", "", "`DIR` of the broker's own offerings")
	folders(c, "data", "offerings")
}

// oneBroker refuses a folder and a stack at once: whoever gives both would not be sure
// which of the two brokers is meant.
func oneBroker(c *cobra.Command, _ []string) error {
	if c.Flags().Changed("data") && c.Flags().Changed("stack") {
		return &usageError{"--data is a broker over a folder, and --stack one on AWS: give one of the two"}
	}
	return nil
}

func (p *place) open(ctx context.Context) (app.Console, func(), error) {
	if p.stack != "" {
		all, err := offered.Load(p.offerings)
		if err != nil {
			return nil, nil, err
		}
		c, err := app.StackConsole(ctx, p.stack, all)
		return c, func() {}, err
	}
	return app.FolderConsole(ctx, p.data, func() (*catalog.Catalog, error) { return offered.Load(p.offerings) }, p.getenv, p.lost)
}

// A format is how a command prints: a table or JSON.
type format string

func (f *format) flag(c *cobra.Command) {
	c.Flags().StringVar((*string)(f), "format", "table", "`FORMAT` of what is printed: table or json")
	choice(c, "format", "table", "json")
}

// machine reports whether JSON was asked for.
func (f format) machine() (bool, error) {
	if f != "table" && f != "json" {
		return false, &usageError{fmt.Sprintf("--format %q is neither table nor json", string(f))}
	}
	return f == "json", nil
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

// newListing makes the command that lists instances, bindings or operations.
func newListing(what operator.What) *cobra.Command {
	var (
		p     place
		f     format
		watch bool
		limit int
		q     = operator.Query{What: what}
		one   = map[bool]string{true: "TOKEN", false: "ID"}[what == operator.Operations]
	)
	c := &cobra.Command{
		Use: fmt.Sprintf("%s [%s]", what, one), Short: fmt.Sprintf("List the %s, or show one in full", what), Args: takes(0, 1, ""),
		Long: fmt.Sprintf(`List the %s, or show the one in full whose %s is given, or begins like it.`, what, one),
		RunE: func(c *cobra.Command, args []string) error {
			machine, err := f.machine()
			switch {
			case err != nil:
				return err
			case limit < 0:
				return &usageError{"--limit is negative"}
			case q.State != "" && !slices.Contains(operator.States(), q.State):
				return &usageError{fmt.Sprintf("--state %q is none of: %s", q.State, strings.Join(operator.States(), ", "))}
			}
			q.ID = strings.Join(args, "")
			return listing(c.Context(), p, q, machine, watch, limit, c.OutOrStdout(), c.ErrOrStderr())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	p.flags(c)
	f.flag(c)
	c.Flags().StringVar(&q.Platform, "platform", "", "only those of the platform `NAME`, or of that id")
	c.Flags().StringVar(&q.State, "state", "", "only those in `STATE`: of the instance or binding, or running or failed, of its operation")
	c.Flags().StringVar(&q.Plan, "plan", "", "only those of the plan `NAME`")
	c.Flags().IntVar(&limit, "limit", 1000, "list `N` at most; 0 lists all")
	c.Flags().BoolVar(&watch, "watch", false, "follow what runs, until nothing does")
	return c
}

func listing(ctx context.Context, p place, q operator.Query, machine, watch bool, limit int, out, diagnostics io.Writer) error {
	var unread []error
	console, closing, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer closing()
	if watch {
		return watchRows(ctx, console, q, out)
	}
	print, end := printed(out, q, machine)
	more, listed := false, 0
	for r, err := range pages.All(ctx, rowsOf(console, q)) {
		switch {
		case err != nil && listed == 0 && (ctx.Err() != nil || errors.As(err, new(*operator.Refusal))):
			return err
		case err != nil:
			unread = append(unread, err)
			continue
		}
		if more = limit > 0 && listed == limit; more {
			break
		}
		listed++
		print(r)
	}
	if listed == 0 && len(unread) > 0 {
		return &cannotRun{errors.Join(unread...)}
	}
	if err := end(); err != nil {
		return err
	}
	if more {
		_, _ = fmt.Fprintf(diagnostics,
			"These are %d, and there are more: choose with --platform, --plan and --state, or list all with --limit 0.\n", limit)
	}
	return notAll(unread)
}

// notAll is the error after a list that lacks what could not be read.
func notAll(unread []error) error {
	if len(unread) == 0 {
		return nil
	}
	return &cannotRun{fmt.Errorf("not all records could be read: %w", errors.Join(unread...))}
}

// rowsOf reads the pages of what a query chooses.
func rowsOf(console app.Console, q operator.Query) func(ctx context.Context, cursor string) ([]operator.Row, string, error) {
	return func(ctx context.Context, cursor string) ([]operator.Row, string, error) {
		return console.List(ctx, q, cursor)
	}
}

// printed returns how a row is printed as it comes, and how the list ends.
func printed(out io.Writer, q operator.Query, machine bool) (print func(operator.Row), end func() error) {
	if machine {
		return asJSON(out)
	}
	// Columns are as wide as those of so many rows need: nothing keeps them all.
	const together = 500
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var first operator.Row
	n, waits := 0, map[string]int{}
	print = func(r operator.Row) {
		n++
		if op := r.Operation; op != nil && op.Trouble != "" {
			waits[op.Trouble]++
		}
		switch {
		case n == 1:
			first = r // which may be the only one
			return
		case n == 2:
			heading(w, q.What)
			line(w, q.What, first)
		case n%together == 0:
			_ = w.Flush()
		}
		line(w, q.What, r)
	}
	end = func() error {
		switch {
		case n == 0 && q.ID != "":
			return fmt.Errorf("nothing in the list of %s is called %q, or begins like it: `%s` lists them", q.What, q.ID, "longshore "+q.What)
		case n == 0:
			_, err := fmt.Fprintf(out, "No %s.\n", q.What)
			return err
		case n == 1 && q.ID != "":
			return show(out, first)
		case n == 1:
			heading(w, q.What)
			line(w, q.What, first)
		}
		err := w.Flush()
		for _, what := range slices.Sorted(maps.Keys(waits)) { // few: they are of targets
			_, failed := fmt.Fprintf(out, "%d of these wait for %s\n", waits[what], what)
			err = errors.Join(err, failed)
		}
		return err
	}
	return print, end
}

// asJSON prints an array, one element after the other.
func asJSON(out io.Writer) (print func(operator.Row), end func() error) {
	n, failed := 0, error(nil)
	print = func(r operator.Row) {
		text, err := json.MarshalIndent(r, "  ", "  ")
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n  %s", map[bool]string{true: "[", false: ","}[n == 0], text)
		}
		failed = errors.Join(failed, err)
		n++
	}
	end = func() error {
		if n == 0 {
			_, err := fmt.Fprintln(out, "[]")
			return err
		}
		_, err := fmt.Fprint(out, "\n]\n")
		return errors.Join(failed, err)
	}
	return print, end
}

func heading(w io.Writer, what operator.What) {
	switch what {
	case operator.Operations:
		_, _ = fmt.Fprintln(w, "KIND\tPHASE\t%\tSTARTED\tPLATFORM\tINSTANCE\tBINDING\tTOKEN")
	case operator.Bindings:
		_, _ = fmt.Fprintln(w, "BINDING\tSTATE\tOPERATION\tOFFERING\tPLAN\tPLATFORM\tINSTANCE")
	default:
		_, _ = fmt.Fprintln(w, "INSTANCE\tSTATE\tOPERATION\tOFFERING\tPLAN\tPLATFORM\tCREATED")
	}
}

func line(w io.Writer, what operator.What, r operator.Row) {
	switch op := r.Operation; what {
	case operator.Operations:
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", op.Kind, op.Phase, op.Percent, stamp(op.Started), platformOf(r), r.Instance,
			orDash(r.Binding), op.Token)
	case operator.Bindings:
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Binding, r.State, phase(op), r.Service, r.Plan, platformOf(r), r.Instance)
	default:
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Instance, r.State, phase(op), orDash(r.Service), orDash(r.Plan), platformOf(r),
			stamp(r.Created))
	}
}

// platformOf is what people call the row's platform.
func platformOf(r operator.Row) string { return cmp.Or(r.PlatformName, r.Platform) }

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

// show prints everything about one row.
func show(out io.Writer, r operator.Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" && value != "-" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", name, value)
		}
	}
	line("platform", platformOf(r))
	if r.PlatformName != "" && r.PlatformName != r.Platform {
		line("  its id", r.Platform)
	}
	line("organization", r.Organization)
	line("space", r.Space)
	line("instance", r.Instance)
	line("  called", r.InstanceName)
	line("binding", r.Binding)
	line("provider", r.Provider)
	line("target", r.Target)
	line("is there as", strings.Join(r.Made, ", "))
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
		if op.Trouble != "" {
			line("  waits for", op.Trouble)
		}
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

// watchRows shows running operations until none is left. It finds them by an index, and
// those that have ended by their tokens.
func watchRows(ctx context.Context, console app.Console, q operator.Query, out io.Writer) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	q.State = "running"
	last := map[string]string{} // of what runs, by its token
	tell := func(r operator.Row) {
		if line := progressLine(r, time.Now()); line != last[r.Operation.Token] {
			_, _ = fmt.Fprintln(out, line)
			last[r.Operation.Token] = line
		}
	}
	for {
		running := map[string]bool{}
		for r, err := range pages.All(ctx, rowsOf(console, q)) {
			if err != nil && ctx.Err() == nil {
				return err
			}
			if err == nil {
				running[r.Operation.Token] = true
				tell(r)
			}
		}
		for token := range last {
			if running[token] || ctx.Err() != nil {
				continue
			}
			settled, _, err := console.List(ctx, operator.Query{What: operator.Operations, ID: token}, "")
			if err != nil {
				return err
			}
			for _, r := range settled {
				tell(r)
			}
			delete(last, token)
		}
		if len(running) == 0 && ctx.Err() == nil {
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

// progressLine is a line with a bar: the percentage that the provider gave, or the
// share of the expected time that has passed.
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

func newRetry() *cobra.Command {
	var p place
	c := &cobra.Command{
		Use: "retry TOKEN", Short: "Start an operation again, or delete what failed", Args: takes(1, 1, tokens),
		Long: `Start a running operation again, in another execution: safe at any time. If a
creation or a deletion has failed, begin the deletion of what it left; until the
platform deletes a failed creation itself, it is still told that the creation has
failed. To create it again, use recreate.`,
		RunE:              func(c *cobra.Command, args []string) error { return retry(c.Context(), p, args[0], c.OutOrStdout()) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	p.flags(c)
	return c
}

const tokens = "an operation's TOKEN: `longshore operations` lists them"

// retry starts an operation again.
func retry(ctx context.Context, p place, token string, out io.Writer) error {
	console, closing, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer closing()
	row, err := console.Retry(ctx, token)
	if err != nil {
		return err
	}
	if row.Operation.Token == token {
		_, _ = fmt.Fprintf(out, "Started again, as attempt %d.\n\n", row.Operation.Attempt)
	} else {
		_, _ = fmt.Fprint(out, "What it left is being removed.\n\n")
	}
	return show(out, row)
}

func newRecreate() *cobra.Command {
	var p place
	c := &cobra.Command{
		Use: "recreate TOKEN", Short: "Create again what failed to be created", Args: takes(1, 1, tokens),
		Long: `Create an instance or a binding once more whose creation has failed, with what was
asked for then. Put right first what was in the way. A platform that repeats its
request finds it; a platform that has given up has to delete it.`,
		RunE:              func(c *cobra.Command, args []string) error { return recreate(c.Context(), p, args[0], c.OutOrStdout()) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	p.flags(c)
	return c
}

// recreate begins a failed creation once more.
func recreate(ctx context.Context, p place, token string, out io.Writer) error {
	console, closing, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer closing()
	row, err := console.Recreate(ctx, token)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprint(out, "It is being created again.\n\n")
	return show(out, row)
}

func newSettle() *cobra.Command {
	var (
		p       place
		message string
		yes     bool
	)
	c := &cobra.Command{
		Use: "settle TOKEN --failed MESSAGE --yes", Short: "End a running operation as failed", Args: takes(1, 1, tokens),
		Long: `End a running operation as failed. The platform's user is told the message, and the
platform does what it does after a failure.`,
		Example: `  longshore settle TOKEN --failed "The region has no room. Try again on Monday." --yes`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case strings.TrimSpace(message) == "":
				return &usageError{`settle needs --failed "what the platform's user is told"`}
			case !yes:
				return errors.New("the operation ends for good, and the platform is told that it failed: say --yes if that is what you want; " +
					"`longshore retry` starts it again instead")
			}
			return settle(c.Context(), p, args[0], message, c.OutOrStdout())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	p.flags(c)
	c.Flags().StringVar(&message, "failed", "", "`MESSAGE` for the platform's user")
	c.Flags().BoolVar(&yes, "yes", false, "it is meant: the operation ends for good")
	return c
}

// settle ends an operation as failed.
func settle(ctx context.Context, p place, token, message string, out io.Writer) error {
	console, closing, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer closing()
	row, err := console.Settle(ctx, token, message)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprint(out, "It has failed.\n\n")
	return show(out, row)
}
