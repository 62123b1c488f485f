package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/pages"
	"github.com/longshore/longshore/internal/lifecycle"
)

func newRetained() *cobra.Command {
	return table[lifecycle.Retained]{
		read: func(ctx context.Context, c app.Console) iter.Seq2[lifecycle.Retained, error] {
			return pages.All(ctx, c.Retained)
		},
		head: "INSTANCE\tPLATFORM\tORGANIZATION\tSPACE\tDELETED\tKEPT UNTIL\tSTATE\tNAME",
		row: func(r lifecycle.Retained) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s/%s", r.Handle(), r.Key.Platform, orDash(r.OrganizationGUID), orDash(r.SpaceGUID),
				stamp(r.Deleted), stamp(r.Until), retainedState(r), r.Provider, r.Name)
		},
		none: "Nothing is retained.",
	}.command(&cobra.Command{
		Use: "retained", Short: "List what is kept of deleted instances, and until when", Args: takes(0, 0, ""),
		Long: "List what is kept of deleted instances by a rule of their plans, where each was ordered, and until when it is kept.",
	})
}

// retainedState is what becomes of it now.
func retainedState(r lifecycle.Retained) string {
	switch {
	case r.Faults > 0:
		return fmt.Sprintf("could not be removed %d times: %s", r.Faults, r.Fault)
	case r.Phase == lifecycle.Removing:
		return "being removed"
	case r.Phase == lifecycle.Restoring:
		return "being given back as " + r.Into.Instance
	case !r.Freed.IsZero():
		return "may be given back"
	}
	return "kept"
}

// A table is a command's listing of everything of one sort.
type table[T any] struct {
	read func(context.Context, app.Console) iter.Seq2[T, error]
	head string
	row  func(T) string
	none string // what is said instead of an empty table
}

// command completes the command that prints the table.
func (l table[T]) command(c *cobra.Command) *cobra.Command {
	var (
		p place
		f format
	)
	c.RunE = func(c *cobra.Command, _ []string) error {
		machine, err := f.machine()
		if err != nil {
			return err
		}
		return p.with(c.Context(), func(console app.Console) error {
			return l.print(l.read(c.Context(), console), machine, c.OutOrStdout())
		})
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
