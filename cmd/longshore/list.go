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
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
)

// newListing makes the command that lists instances, bindings or operations.
func newListing(what operator.What) *cobra.Command {
	var (
		p     whichBroker
		f     format
		watch bool
		limit int
		q     = operator.Query{What: what}
		one   = "ID"
	)
	if what == operator.Operations {
		one = "TOKEN"
	}
	c := &cobra.Command{
		Use: fmt.Sprintf("%s [%s]", what, one), Short: fmt.Sprintf("List the %s, or show one in full", what), Args: takes(0, 1, ""),
		Long: fmt.Sprintf(`List the %s, or show the one in full whose %s is given, or begins like it.`, what, one),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 0 {
				return &usageError{"--limit is negative: give a number of rows, or 0 for all"}
			}
			q.ID = strings.Join(args, "")
			return listing(c.Context(), p, q, f.machine(), watch, limit, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	p.flags(c)
	f.flag(c)
	c.Flags().StringVar(&q.Platform, "platform", "", "only those of the platform `NAME`, or of that id")
	choose(c, &q.State, "state", "", "only those in `STATE`: of the instance or binding, or running or failed, of its operation",
		operator.States()...)
	c.Flags().StringVar(&q.Plan, "plan", "", "only those of the plan `NAME`")
	c.Flags().IntVar(&limit, "limit", 1000, "list `N` at most; 0 lists all")
	c.Flags().BoolVar(&watch, "watch", false, "follow what runs, until nothing does")
	return c
}

func listing(
	ctx context.Context, p whichBroker, q operator.Query, machine, watch bool, limit int, out, diagnostics io.Writer,
) error {
	var unread []error
	link, closing, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer closing()
	if watch {
		return watchRows(ctx, link, q, out)
	}
	print, end := printed(out, q, machine)
	more, listed := false, 0
	for r, err := range paging.All(ctx, rowsOf(link, q)) {
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
		printf(diagnostics,
			"These are %d, and there are more: choose with --platform, --plan and --state, or list all with --limit 0.\n", limit)
	}
	return notAll(unread)
}

// notAll is the error after a list that lacks what could not be read.
func notAll(unread []error) error {
	if len(unread) == 0 {
		return nil
	}
	faults := operator.Faults(errors.Join(unread...))
	return &cannotRun{fmt.Errorf("not all records could be read (%d faults): %w", len(faults), errors.Join(faults...))}
}

// rowsOf reads the pages of what a query chooses.
func rowsOf(link operator.Link, q operator.Query) func(ctx context.Context, cursor string) ([]operator.Row, string, error) {
	return func(ctx context.Context, cursor string) ([]operator.Row, string, error) {
		q.After = cursor
		page, err := operator.List.Ask(ctx, link, q)
		return page.Items, page.Next, err
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
			printf(w, "%s\n%s\n", headings[q.What], line(q.What, first))
		case n%together == 0:
			_ = w.Flush()
		}
		printf(w, "%s\n", line(q.What, r))
	}
	end = func() error {
		switch {
		case n == 0 && q.ID != "":
			return fmt.Errorf("none of the %s is called %q, or begins like it: `%s` lists them", q.What, q.ID, "longshore "+q.What)
		case n == 0 && q.Plan != "":
			_, err := fmt.Fprintf(out, "No %s of a plan or an offering %q.\n", q.What, q.Plan)
			return err
		case n == 0:
			_, err := fmt.Fprintf(out, "No %s.\n", q.What)
			return err
		case n == 1 && q.ID != "":
			return show(out, first)
		case n == 1:
			printf(w, "%s\n%s\n", headings[q.What], line(q.What, first))
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

var headings = map[operator.What]string{
	operator.Operations: "KIND\tPHASE\t%\tSTARTED\tPLATFORM\tINSTANCE\tBINDING\tTOKEN",
	operator.Bindings:   "BINDING\tSTATE\tOPERATION\tOFFERING\tPLAN\tPLATFORM\tINSTANCE",
	operator.Instances:  "INSTANCE\tSTATE\tOPERATION\tOFFERING\tPLAN\tPLATFORM\tCREATED",
}

// line is a row under the heading of its list.
func line(what operator.What, r operator.Row) string {
	op, platform := r.Operation, cmp.Or(r.PlatformName, r.Platform)
	switch what {
	case operator.Operations:
		return columns(op.Kind, op.Phase, strconv.Itoa(op.Percent), stamp(op.Started), platform, r.Instance, r.Binding, op.Token)
	case operator.Bindings:
		return columns(idOf(r.Binding, r), r.State, phase(op), r.Service, r.Plan, platform, r.Instance)
	}
	return columns(idOf(r.Instance, r), r.State, phase(op), r.Service, r.Plan, platform, stamp(r.Created))
}

// idOf is the id of a row, and for a former life its handle: another may have the id.
func idOf(id string, r operator.Row) string {
	if r.Life == "" {
		return id
	}
	return lifecycle.Handle(id, r.Life)
}

func phase(op *operator.Operation) string {
	if op == nil {
		return ""
	}
	if op.Phase == string(lifecycle.InProgress) {
		return fmt.Sprintf("%s, %d %%", op.Kind, op.Percent)
	}
	return op.Kind + " " + op.Phase
}

// stamp is a time as it is printed; empty for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// show prints everything about one row.
func show(out io.Writer, r operator.Row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			printf(w, "%s\t%s\n", name, value)
		}
	}
	line("platform", cmp.Or(r.PlatformName, r.Platform))
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
	if r.Life != "" {
		line("former life", idOf(r.Instance, r)+": the id is free, or another's")
	}
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
