package main

import (
	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

var retained = rowTable{
	list: operator.Retained, of: valueOf, order: "-since",
	columns: "instance offering plan since until",
	wide:    "state freed platform organization space made",
	none:    "Nothing is retained.",
}

func newRetained() *cobra.Command {
	return lists(&cobra.Command{
		Use: "retained", Short: "List what is kept of deleted instances, and until when",
		Long: `List what is kept of deleted instances by a rule of their plans, since when and
until when. A wide table says where each was ordered, and when it was freed for an
undelete.`,
	}, retained)
}
