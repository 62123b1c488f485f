package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/pages"
)

func newRetained() *cobra.Command {
	var (
		p place
		f format
	)
	c := &cobra.Command{
		Use: "retained", Short: "List what is kept of deleted instances, and until when", Args: takes(0, 0, ""),
		Long: "List what is kept of deleted instances by a rule of their plans, where each was ordered, and until when it is kept.",
		RunE: func(c *cobra.Command, _ []string) error {
			machine, err := f.machine()
			if err != nil {
				return err
			}
			return p.with(c.Context(), func(console app.Console) error {
				return listRetained(c.Context(), console, machine, c.OutOrStdout())
			})
		},
	}
	p.flags(c)
	f.flag(c)
	return c
}

func listRetained(ctx context.Context, console app.Console, machine bool, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var all []lifecycle.Retained
	listed := 0
	for r, err := range pages.All(ctx, console.Retained) {
		switch {
		case err != nil:
			return err
		case machine:
			all = append(all, r)
			continue
		case listed == 0:
			_, _ = fmt.Fprintln(w, "INSTANCE\tPLATFORM\tORGANIZATION\tSPACE\tDELETED\tKEPT UNTIL\tNAME")
		}
		listed++
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s/%s\n", r.Key.Instance, r.Key.Platform, orDash(r.OrganizationGUID), orDash(r.SpaceGUID),
			stamp(r.Deleted), stamp(r.Until), r.Provider, r.Name)
	}
	switch {
	case machine:
		return printJSON(out, each(all))
	case listed == 0:
		_, err := fmt.Fprintln(out, "Nothing is retained.")
		return err
	}
	return w.Flush()
}
