package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

func newUpgrades() *cobra.Command {
	return table[operator.Upgrade]{
		list: operator.Upgrades,
		head: "PLATFORM\tINSTANCE\tSTATE\tSERVICE/PLAN\tIS AT\tPLAN IS AT",
		row:  upgradeRow,
		none: "No instance is behind its plan.",
	}.command(&cobra.Command{
		Use: "upgrades", Short: "List the instances that are behind their plans",
		Long: `List the instances that are of an earlier version than their plan's
maintenance_info, and those that were made when the plan meant something else
under the same version ("edited since"): no platform asks for those until the
plan has a newer version.

Each is upgraded by its platform, with an update that names the plan's version.`,
	})
}

func upgradeRow(u operator.Upgrade) string {
	current := orDash(u.Current)
	if u.Unpublished {
		current += ", edited since"
	}
	return columns(cmp.Or(u.PlatformName, u.Platform), u.Instance, u.State, u.Service+"/"+u.Plan, u.Recorded, current)
}
