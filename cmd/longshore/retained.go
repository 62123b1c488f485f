package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
)

func newRetained() *cobra.Command {
	return table[operator.Kept]{
		list: operator.Retained,
		head: "INSTANCE\tPLATFORM\tORGANIZATION\tSPACE\tDELETED\tKEPT UNTIL\tSTATE\tNAME",
		row: func(r operator.Kept) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s/%s",
				r.Handle(), platformOf(r.PlatformName, r.Key.Platform), orDash(r.OrganizationGUID), orDash(r.SpaceGUID),
				stamp(r.Deleted), stamp(r.Until), retainedState(r.Retained), r.Provider, r.Name)
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
