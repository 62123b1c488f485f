package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

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
				ends = ""
			case lifecycle.Ready:
				state, ends = "released", ""
			}
			return columns(r.Provider+"/"+r.Kept.Name, state, stamp(r.Kept.Since), ends,
				cmp.Or(r.PlatformName, r.Platform), r.Instance, r.Binding)
		},
		none: "Nothing is in quarantine.",
	}.command(&cobra.Command{
		Use: "quarantine", Short: "List what the reaper has put out of use",
		Long: `List what the reaper has put out of use, since no record and no tombstone says
what it is. Almost always its record was lost: ` + "`longshore rebuild`" + ` gives it one
and puts it into use again. What is listed is deleted when its time is over.`,
	})
}

const aThing = "a thing's NAME: `longshore reaper quarantine` lists them"

func newReaperRelease() *cobra.Command {
	return act(&cobra.Command{
		Use: "release NAME", Short: "Put a thing that is in quarantine into use again", Args: takes(1, 1, aThing),
		Long: `Put a thing that is in quarantine into use again, and leave it alone from then
on: for something that no platform of this broker is to know of. To have it known
again, there is ` + "`longshore rebuild`" + `.`,
	}, operator.Release, itself, func(out io.Writer, _ string, r operator.Row) error {
		_, err := fmt.Fprintf(out, "%s/%s is put into use again, and left alone.\n", r.Provider, r.Kept.Name)
		return err
	})
}

func newReaperDelete() *cobra.Command {
	var yes bool
	c := act(&cobra.Command{
		Use: "delete NAME --yes", Short: "Delete a thing that is in quarantine, without waiting for its time", Args: takes(1, 1, aThing),
		Long: "Delete a thing that is in quarantine, or was released from it, with all that is in it, without waiting for its time.",
	}, operator.Discard, func(name string) (string, error) {
		if !yes {
			return name, errors.New("the thing and what is in it are deleted for good: say --yes if nobody needs it")
		}
		return name, nil
	}, func(out io.Writer, _ string, row operator.Row) error {
		return showAfter(out, "It is being deleted.", row)
	})
	c.Flags().BoolVar(&yes, "yes", false, "it is meant: it is deleted for good")
	return c
}
