package main

import (
	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

var upgrades = rowTable{
	list: operator.Upgrades, of: valueOf, order: "-created",
	columns: "instance offering plan is_at plan_is_at edited",
	wide:    "state created platform organization space",
	none:    "No instance is behind its plan.",
}

func newUpgrades() *cobra.Command {
	return lists(&cobra.Command{
		Use: "upgrades", Short: "List the instances that are behind their plans",
		Long: `List the instances that are of an earlier version than their plan's
maintenance_info, and those that were made when the plan meant something else
under the same version (edited): no platform asks for those until the plan has a
newer version.

Each is upgraded by its platform, with an update that names the plan's version.`,
	}, upgrades)
}
