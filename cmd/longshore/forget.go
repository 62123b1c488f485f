package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

func newForget() *cobra.Command {
	c := &cobra.Command{
		Use: "forget USER --yes", Short: "Erase one user from the records of who asked",
		Args: takes(1, 1, "a USER: the name that the console shows, or the user's email or id"),
		Long: `Erase one user from the histories and from the operations that have ended, on all
platforms. USER is the name that the console shows, or the user's email or id, letter
for letter. The entries stay, but no longer say who asked, or by which request.

An operation in progress keeps the user until it has ended: repeat the command then.
It may be repeated at any time. Existing backups are not changed: repeat the command
after a restore.`,
		Example: `  longshore forget duke@example.com --yes`,
	}
	sure := meant(c, "the user is erased for good", "the user is erased for good from all records of who asked: "+
		"say --yes if that is what you want")
	return act(c, whichBroker{}, operator.Forget, func(user string) (string, error) { return user, sure() }, printErasure)
}

func printErasure(out io.Writer, did operator.Erasure) {
	printf(out, "%d history entries and %d operations no longer say who asked.\n", did.Entries, did.Operations)
	if did.Running > 0 {
		printf(out, "%d operations of this user are still in progress and say who asked: repeat the command when they have "+
			"ended.\n", did.Running)
	}
}
