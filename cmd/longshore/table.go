package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/operator"
)

// A table is a command's listing of all items of one kind.
type table[T any] struct {
	what operator.What // empty for a list of anything but records
	list operator.Method[operator.Query, operator.Page]
	// The columns have the names of the members in JSON, with spaces between them. The first one is that which other commands
	// take as an argument; it is never shortened.
	columns string
	wide    string // those that only a wide table shows
	// of returns what an item has in a column: a string, a number or a time.
	of    func(item T, column string) any
	order string // the column to sort by unless --sort names another
	none  string // printed in place of an empty table
	bare  bool   // the rows have neither an offering nor a place
}

// all returns the columns of the wide table.
func (t table[T]) all() []string { return strings.Fields(t.columns + " " + t.wide) }

// A view is the form in which a command prints.
type view struct {
	output, order string
	noHeaders     bool
}

// flag adds the flag of a command that prints one item.
func (v *view) flag(c *cobra.Command) {
	choose(c, &v.output, "output,o", "table", "`FORMAT` of the output: table, which fits 80 columns, wide or json",
		"table", "wide", "json")
}

// json reports whether JSON was asked for.
func (v view) json() bool { return v.output == "json" }

// flags adds the flags of a command that prints the table.
func (t table[T]) flags(c *cobra.Command, v *view) {
	v.flag(c)
	names := t.all()
	v.order = t.order
	c.Flags().Var(choice{&v.order, names, true}, "sort", "`COLUMN` to sort by; -COLUMN downwards")
	completed(c, "sort", func(*cobra.Command, string) []string { return names })
	c.Flags().BoolVar(&v.noHeaders, "no-headers", false, "print the rows of a table without its header")
}

// print prints a table, or JSON.
func (t table[T]) print(out io.Writer, v view, all []T) {
	switch {
	case v.json():
		printJSON(out, append([]T{}, all...)) // null would not be a list
		return
	case len(all) == 0:
		if !v.noHeaders {
			printf(out, "%s\n", t.none)
		}
		return
	}
	columns, now, lines := strings.Fields(t.columns), time.Now(), [][]string{nil}
	if v.output == "wide" {
		columns = t.all()
	}
	for _, name := range columns {
		lines[0] = append(lines[0], strings.ToUpper(strings.ReplaceAll(name, "_", " ")))
	}
	for _, one := range all {
		var line []string
		for _, name := range columns {
			line = append(line, cell(t.of(one, name), v, now))
		}
		lines = append(lines, line)
	}
	if v.noHeaders {
		lines = lines[1:]
	}
	if v.output != "wide" {
		fit(lines)
	}
	w := tabwriter.NewWriter(out, 0, 0, gap, ' ', 0)
	for _, line := range lines {
		printf(w, "%s\n", strings.Join(line, "\t"))
	}
	_ = w.Flush()
}

// cell formats a value for a table: a time as how long ago it is or, in a wide table, as the time
// itself. An empty value becomes a dash.
func cell(value any, v view, now time.Time) string {
	at, isTime := value.(time.Time)
	switch {
	case !isTime:
		return cmp.Or(oneLine(fmt.Sprint(value)), "-")
	case at.IsZero():
		return "-"
	case v.output == "wide":
		return stamp(at)
	case at.After(now):
		return "in " + largest(at.Sub(now))
	}
	return largest(now.Sub(at)) + " ago"
}

// oneLine returns a text without control characters. Hazard: users and other brokers choose many texts, which
// must neither look like lines of their own nor command the operator's terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// largest formats a duration in its largest unit.
func largest(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

const (
	screen   = 80 // the width of a screen, in columns
	gap      = 2  // the space between two columns
	narrow   = 4  // the least width of a shortened column
	shortage = "…"
)

// fit shortens the widest columns until a line fits on a screen. It never shortens the first column.
func fit(lines [][]string) {
	widths := make([]int, len(lines[0]))
	total := -gap
	for n := range widths {
		for _, line := range lines {
			widths[n] = max(widths[n], utf8.RuneCountInString(line[n]))
		}
		total += widths[n] + gap
	}
	for ; total > screen && len(widths) > 1; total-- {
		widest := 1
		for n := range widths[1:] {
			if widths[n+1] > widths[widest] {
				widest = n + 1
			}
		}
		if widths[widest] <= narrow {
			break
		}
		widths[widest]--
	}
	for _, line := range lines {
		for n, text := range line {
			if runes := []rune(text); len(runes) > widths[n] {
				line[n] = string(runes[:widths[n]-1]) + shortage
			}
		}
	}
}

// sort sorts the items by a column.
func (t table[T]) sort(all []T, order string) {
	name, down := strings.CutPrefix(order, "-")
	if name == "" {
		return // the given order stays
	}
	slices.SortStableFunc(all, func(a, b T) int {
		order := compare(t.of(a, name), t.of(b, name))
		if down {
			return -order
		}
		return order
	})
}

// compare compares two values of a column.
func compare(a, b any) int {
	switch a := a.(type) {
	case int:
		return cmp.Compare(a, b.(int))
	case time.Time:
		return a.Compare(b.(time.Time))
	}
	return strings.Compare(a.(string), b.(string))
}

// An asking is the flags of a command that lists.
type asking struct {
	of     rowTable
	broker whichBroker
	view
	query        operator.Query
	limit        int
	older, newer time.Duration
}

// lists makes a command list the rows of a table.
func lists(c *cobra.Command, t rowTable) *cobra.Command {
	a := asks(c, t)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return a.answer(c, func(out io.Writer, all []operator.Row) error {
			t.print(out, a.view, all)
			return nil
		})
	}
	return c
}

// asks adds the flags of a command that lists.
func asks(c *cobra.Command, t rowTable) *asking {
	a := &asking{of: t, query: operator.Query{What: t.what}}
	a.broker.flags(c)
	t.flags(c, &a.view)
	f, q := c.Flags(), &a.query
	f.StringVar(&q.Platform, "platform", "", "only those of the platform with this `NAME` or id")
	choose(c, &q.State, "state", "", "only those in `STATE`: a state of the instance or binding, or running or failed for "+
		"its operation", operator.States()...)
	f.DurationVar(&a.older, "older", 0, "only those that began longer ago than that `DURATION`, such as 48h")
	f.DurationVar(&a.newer, "newer", 0, "only those that began within that `DURATION`")
	f.IntVar(&a.limit, "limit", 1000, "list `N` at most; 0 lists all")
	if !t.bare {
		f.StringVar(&q.Offering, "offering", "", "only those of the offering `NAME`")
		f.StringVar(&q.Plan, "plan", "", "only those of the plan `NAME`")
		f.StringVar(&q.Organization, "organization", "", "only those in the organization `NAME`, or with that id")
		f.StringVar(&q.Space, "space", "", "only those in the space `NAME`, or with that id")
		completed(c, "offering", offered(func(o catalog.Offering, _ catalog.Plan) string { return o.Name }))
		completed(c, "plan", offered(func(_ catalog.Offering, p catalog.Plan) string { return p.Name }))
	}
	return a
}

// bound reads the flags that bound the rows.
func (a *asking) bound() error {
	switch {
	case a.limit < 0:
		return misused("--limit is negative: give a number of rows, or 0 for all")
	case a.older < 0 || a.newer < 0:
		return misused("--older and --newer are not negative: give a duration, such as 48h")
	}
	if a.older > 0 {
		a.query.Until = time.Now().Add(-a.older)
	}
	if a.newer > 0 {
		a.query.Since = time.Now().Add(-a.newer)
	}
	return nil
}

// answer prints the list of the broker. The error says what could not be read.
func (a *asking) answer(c *cobra.Command, print func(out io.Writer, all []operator.Row) error) error {
	if err := a.bound(); err != nil {
		return err
	}
	link, closing, err := a.broker.open(c.Context())
	if err != nil {
		return err
	}
	defer closing()
	all, unread := a.read(c.Context(), link)
	switch {
	case len(all) == 0 && (c.Context().Err() != nil || errors.As(unread, new(*operator.Refusal))):
		return unread
	case len(all) == 0 && unread != nil: // an unread list is not an empty one
		return &cannotRun{unread}
	}
	a.of.sort(all, a.order)
	more := a.limit > 0 && len(all) > a.limit
	if more {
		all = all[:a.limit]
	}
	if err := print(c.OutOrStdout(), all); err != nil {
		return err
	}
	if more {
		printf(c.ErrOrStderr(), "These are %d, and there are more: narrow the list with --state, --platform and other "+
			"filters, or list all with --limit 0.\n", a.limit)
	}
	return notAll(unread)
}

// read reads the rows that the query chooses, and keeps no more than the limit needs. Unless the
// broker returns them in the requested order, it must read all: the first row to print may come last.
func (a *asking) read(ctx context.Context, link operator.Link) (all []operator.Row, _ error) {
	var unread []error
	for one, err := range operator.All(ctx, link, a.of.list, a.query) {
		if err != nil {
			unread = append(unread, err)
			continue
		}
		all = append(all, one)
		switch {
		case a.limit == 0 || len(all) <= a.limit:
		case a.query.NewestFirst() && a.order == a.of.order:
			return all, errors.Join(unread...)
		case len(all) > 2*a.limit+1:
			a.of.sort(all, a.order)
			all = slices.Delete(all, a.limit+1, len(all))
		}
	}
	return all, errors.Join(unread...)
}

// notAll returns the error after a list that lacks records which could not be read.
func notAll(unread error) error {
	if unread == nil {
		return nil
	}
	faults := operator.Faults(unread)
	return &cannotRun{fmt.Errorf("not all records could be read (%d faults): %w", len(faults), errors.Join(faults...))}
}
