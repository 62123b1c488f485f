package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

var quarantined = rowTable{
	list: operator.Quarantined, of: valueOf, order: "-since", bare: true,
	columns: "name provider state until",
	wide:    "since platform instance binding",
	none:    "Nothing is in quarantine.",
}

func newReaperQuarantine() *cobra.Command {
	return lists(&cobra.Command{
		Use: "quarantine", Short: "List what the reaper has put into quarantine",
		Long: `List what the reaper has put into quarantine, because no record and no tombstone
explains it. Almost always its record was lost: ` + "`longshore rebuild`" + ` gives it one
and puts it into use again. What is listed is deleted when its time is over.`,
	}, quarantined)
}

// orphanNames completes with the names of things in quarantine.
var orphanNames = onlyFirst(ids(operator.Quarantined, "", func(r operator.Row) string { return r.Kept.Name }))

const aThing = "a thing's NAME: `longshore reaper quarantine` lists them"

func newReaperRelease() *cobra.Command {
	return act(&cobra.Command{
		Use: "release NAME", Short: "Put a thing that is in quarantine into use again", Args: takes(1, 1, aThing),
		ValidArgsFunction: orphanNames,
		Long: `Put a thing that is in quarantine into use again, and leave it alone from then on:
for something that no platform of this broker should know. ` + "`longshore rebuild`" + `
gives it a record instead.`,
	}, whichBroker{}, operator.Release, itself, func(out io.Writer, r operator.Row) {
		printf(out, "%s/%s is put into use again, and left alone.\n", r.Provider, r.Kept.Name)
	})
}

func newReaperDelete() *cobra.Command {
	c := &cobra.Command{
		Use: "delete NAME --yes", Short: "Delete a thing that is in quarantine, without waiting for its time",
		Args: takes(1, 1, aThing), ValidArgsFunction: orphanNames,
		Long: "Delete a thing that is in quarantine, or was released from it, with all that is in it, " +
			"without waiting for its time.",
	}
	sure := meant(c, "it is deleted for good", "the thing and what is in it are deleted for good: say --yes if nobody needs it")
	return act(c, whichBroker{}, operator.Discard, func(name string) (string, error) { return name, sure() },
		after("It is being deleted."))
}
