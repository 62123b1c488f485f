package main

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

func newReconcile(getenv func(string) string) *cobra.Command {
	p := whichBroker{getenv: getenv}
	c := &cobra.Command{
		Use: "reconcile [PROVIDER] [TARGET]", Short: "Use a restored database server again",
		Args: takes(0, 2, ""),
		Long: `Use a database server again that was restored from a backup, that has taken the
place of another one, or that a broker on a copy of the records has changed. The
broker leaves such a server alone: logins that were removed may be valid on it
again, and what another broker made there would count as left behind.

Without --yes, the command changes nothing: it says of each server whether it has
changed, and what the command would do. With --yes, it locks every login that no
binding owns and keeps its data; the reaper removes it later. Then the waiting
operations go on. It lists the instances that are not on the server, and the bindings
without a login there: bind those again. The command may be stopped and run again.`,
	}
	yes := c.Flags().Bool("yes", false, "lock what no binding owns, and go on")
	tell := viewed(c, func(out io.Writer, all []operator.Reconciled) { printReconciled(out, all, *yes) })
	c.RunE = func(c *cobra.Command, args []string) error {
		args = append(args, "", "")
		all, err := ask(c.Context(), p, operator.Reconcile, operator.Scope{Provider: args[0], Target: args[1], Meant: *yes})
		if err != nil && len(all) == 0 { // an empty list would say that all is well
			return err
		}
		tell(c.OutOrStdout(), append([]operator.Reconciled{}, all...)) // null would not be a list
		if err == nil && slices.ContainsFunc(all, func(r operator.Reconciled) bool { return r.Unreached != "" }) {
			err = errors.New("not all servers were reached: mend that, and run the command again")
		}
		return err
	}
	p.flags(c)
	return c
}

// printReconciled prints the outcome for each server.
func printReconciled(out io.Writer, all []operator.Reconciled, meant bool) {
	if len(all) == 0 {
		printf(out, "No provider here uses servers that can be restored.\n")
	}
	for _, r := range all {
		name := r.Provider + "/" + r.Target
		switch {
		case r.Unreached != "":
			printf(out, "%s: not reached, or not finished: %s\n", name, r.Unreached)
		case r.Trouble == "":
			printf(out, "%s: unchanged; there is nothing to do.\n", name)
		case r.Done:
			printf(out, "%s: was restored, and is in use again.\n", name)
		default:
			printf(out, "%s: was restored: %s\n", name, r.Trouble)
		}
		locked := "Logins that no binding owns, and databases of deleted instances, that are locked now:"
		if !meant {
			locked = "Logins that no binding owns, and databases of deleted instances, that would be locked:"
		}
		for _, list := range []struct {
			what string
			of   []string
		}{
			{locked, r.Locked},
			{"Bindings without a login on the server: bind them again:", r.Unbound},
			{"Instances that are not on the server: delete them, and make them again:", r.Gone},
		} {
			if len(list.of) > 0 {
				printf(out, "  %s\n    %s\n", list.what, strings.Join(list.of, "\n    "))
			}
		}
		if r.Trouble != "" && !meant {
			printf(out, "  %d logins are owned by a binding and stay. Nothing was changed: say --yes.\n", r.Logins)
		}
	}
}
