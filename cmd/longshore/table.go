package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/operator"
)

// columns is a line of a table. A column without a value has a dash.
func columns(values ...string) string {
	for i, v := range values {
		values[i] = orDash(v)
	}
	return strings.Join(values, "\t")
}

// A table is a command's listing of everything of one sort.
type table[T any] struct {
	list operator.Method[string, operator.Page[T]]
	head string
	row  func(T) string
	none string // what is said instead of an empty table
}

// command completes the command that prints the table.
func (l table[T]) command(c *cobra.Command) *cobra.Command {
	var (
		p whichBroker
		f format
	)
	c.RunE = func(c *cobra.Command, _ []string) error {
		link, closing, err := p.open(c.Context())
		if err != nil {
			return err
		}
		defer closing()
		return l.print(paging.All(c.Context(), func(ctx context.Context, after string) ([]T, string, error) {
			page, err := l.list.Ask(ctx, link, after)
			return page.Items, page.Next, err
		}), f.machine(), c.OutOrStdout())
	}
	p.flags(c)
	f.flag(c)
	return c
}

func (l table[T]) print(found iter.Seq2[T, error], machine bool, out io.Writer) error {
	var all []T
	var unread []error
	for one, err := range found {
		if err != nil {
			unread = append(unread, err)
			continue
		}
		all = append(all, one)
	}
	if len(all) == 0 && len(unread) > 0 { // which is no list of nothing
		return notAll(unread)
	}
	return errors.Join(l.printed(all, machine, out), notAll(unread))
}

func (l table[T]) printed(all []T, machine bool, out io.Writer) error {
	switch {
	case machine:
		return printJSON(out, each(all))
	case len(all) == 0:
		_, err := fmt.Fprintln(out, l.none)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, l.head)
	for _, one := range all {
		_, _ = fmt.Fprintln(w, l.row(one))
	}
	return w.Flush()
}
