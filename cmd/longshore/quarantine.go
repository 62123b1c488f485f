package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
)

func newReaperQuarantine() *cobra.Command {
	return table[operator.Row]{
		list: operator.Quarantined,
		head: "NAME\tSTATE\tSINCE\tDELETED FROM\tPLATFORM\tINSTANCE\tBINDING",
		row: func(r operator.Row) string {
			state, ends := r.State, stamp(r.Kept.Until)
			switch lifecycle.State(r.State) {
			case lifecycle.Releasing:
				ends = "-"
			case lifecycle.Ready:
				state, ends = "released", "-"
			}
			return fmt.Sprintf("%s/%s\t%s\t%s\t%s\t%s\t%s\t%s", r.Provider, r.Kept.Name, state, stamp(r.Kept.Since), ends,
				platformOf(r.PlatformName, r.Platform), r.Instance, orDash(r.Binding))
		},
		none: "Nothing is in quarantine.",
	}.command(&cobra.Command{
		Use: "quarantine", Short: "List what the reaper has put out of use", Args: takes(0, 0, ""),
		Long: `List what the reaper has put out of use, since no record and no tombstone says
what it is. Almost always its record was lost: ` + "`longshore rebuild`" + ` gives it one
and puts it into use again. What is listed is deleted when its time is over.`,
	})
}

const aThing = "a thing's NAME: `longshore reaper quarantine` lists them"

func newReaperRelease() *cobra.Command {
	var p whichBroker
	c := &cobra.Command{
		Use: "release NAME", Short: "Put a thing that is in quarantine into use again", Args: takes(1, 1, aThing),
		Long: `Put a thing that is in quarantine into use again, and leave it alone from then
on: for something that no platform of this broker is to know of. To have it known
again, there is ` + "`longshore rebuild`" + `.`,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := ask(c.Context(), p, operator.Release, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s/%s is put into use again, and left alone.\n", r.Provider, r.Kept.Name)
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	p.flags(c)
	return c
}

func newReaperDelete() *cobra.Command {
	var (
		p   whichBroker
		yes bool
	)
	c := &cobra.Command{
		Use: "delete NAME --yes", Short: "Delete a thing that is in quarantine, without waiting for its time", Args: takes(1, 1, aThing),
		Long: "Delete a thing that is in quarantine, or was released from it, with all that is in it, without waiting for its time.",
		RunE: func(c *cobra.Command, args []string) error {
			if !yes {
				return errors.New("the thing and what is in it are deleted for good: say --yes if nobody needs it")
			}
			row, err := ask(c.Context(), p, operator.Discard, args[0])
			if err != nil {
				return err
			}
			_, _ = fmt.Fprint(c.OutOrStdout(), "It is being deleted.\n\n")
			return show(c.OutOrStdout(), row)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	p.flags(c)
	c.Flags().BoolVar(&yes, "yes", false, "it is meant: it is deleted for good")
	return c
}
