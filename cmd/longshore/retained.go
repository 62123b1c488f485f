package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

var retained = rowTable{
	list: operator.Retained, order: "-since",
	columns: []rowColumn{instanceColumn, offeringColumn, planColumn, sinceColumn, untilColumn},
	wide: []rowColumn{
		stateColumn, {"freed", func(r operator.Row) any { return r.Kept.Freed }},
		platformColumn, organization, spaceColumn,
		{"made", func(r operator.Row) any { return strings.Join(r.Made, ", ") }},
	},
	none: "Nothing is retained.",
}

func newRetained() *cobra.Command {
	return lists(&cobra.Command{
		Use: "retained", Short: "List what is kept of deleted instances, and until when",
		Long: `List what is kept of deleted instances by a rule of their plans, since when and
until when. A wide table says where each was ordered, and when it was freed for an
undelete.`,
	}, retained)
}
