package main

import (
	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

// upgradeColumns are columns of a row, with the versions of the instance and its plan.
func upgradeColumns() (all []column[operator.Upgrade]) {
	for _, c := range []rowColumn{instanceColumn, offeringColumn, planColumn} {
		all = append(all, column[operator.Upgrade]{c.name, false, func(u operator.Upgrade) any { return c.of(u.Row) }})
	}
	all = append(all,
		column[operator.Upgrade]{"is_at", false, func(u operator.Upgrade) any { return u.IsAt }},
		column[operator.Upgrade]{"plan_is_at", false, func(u operator.Upgrade) any { return u.PlanIsAt }},
		column[operator.Upgrade]{"edited", false, func(u operator.Upgrade) any { return map[bool]string{true: "yes"}[u.Edited] }})
	for _, c := range []rowColumn{stateColumn, createdColumn, platformColumn, organization, spaceColumn} {
		all = append(all, column[operator.Upgrade]{c.name, true, func(u operator.Upgrade) any { return c.of(u.Row) }})
	}
	return all
}

var upgrades = table[operator.Upgrade]{
	list: operator.Upgrades, order: "-created", columns: upgradeColumns(), none: "No instance is behind its plan.",
}

func newUpgrades() *cobra.Command {
	return upgrades.command(&cobra.Command{
		Use: "upgrades", Short: "List the instances that are behind their plans",
		Long: `List the instances that are of an earlier version than their plan's
maintenance_info, and those that were made when the plan meant something else
under the same version (edited): no platform asks for those until the plan has a
newer version.

Each is upgraded by its platform, with an update that names the plan's version.`,
	})
}
