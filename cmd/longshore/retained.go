package main

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
)

func newRetained() *cobra.Command {
	return table[operator.Row]{
		list: operator.Retained,
		head: "INSTANCE\tPLATFORM\tORGANIZATION\tSPACE\tDELETED\tKEPT UNTIL\tSTATE\tNAME",
		row: func(r operator.Row) string {
			return columns(idOf(r.Instance, r), cmp.Or(r.PlatformName, r.Platform), r.Organization, r.Space,
				stamp(r.Kept.Since), stamp(r.Kept.Until), keptState(r), strings.Join(r.Made, ", "))
		},
		none: "Nothing is retained.",
	}.command(&cobra.Command{
		Use: "retained", Short: "List what is kept of deleted instances, and until when",
		Long: "List what is kept of deleted instances by a rule of their plans, where each was ordered, and until when it is kept.",
	})
}

// keptState is what becomes of a kept life now.
func keptState(r operator.Row) string {
	switch {
	case r.State != string(lifecycle.Quarantined):
		return r.State
	case !r.Kept.Freed.IsZero():
		return "may be given back"
	}
	return "kept"
}
