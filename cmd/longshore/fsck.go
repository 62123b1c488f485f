package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator/folder"
)

func newFsck() *cobra.Command {
	c := &cobra.Command{
		Use: "fsck", Short: "Check that nothing in a data folder is damaged",
		Long: `Read all of a data folder on which no broker runs, and say what is damaged: the
marker, the key, the platforms' logins, the records, or the secrets sealed in them.
Nothing is written: the folder may be read-only.

A broker does the same for its records at each start, while it serves already,
and once a day. Check a folder after a crash of the machine or a fault of the
disk, and a backup before you rely on it.

The exit status is 0 if nothing is damaged, 1 if anything is, and 2 if nothing could
be checked.`,
	}
	data := c.Flags().String("data", dataFolder, "data `DIR` to check")
	c.RunE = func(c *cobra.Command, _ []string) error {
		checked, err := folder.Check(c.Context(), *data)
		if err != nil {
			return &cannotRun{err}
		}
		out := c.OutOrStdout()
		for _, p := range checked.Problems {
			printf(out, "damaged: %v\n", p)
		}
		if more := checked.Wrong - len(checked.Problems); more > 0 {
			printf(out, "and %d more\n", more)
		}
		if checked.Wrong > 0 {
			return fmt.Errorf("data folder %q is damaged: keep a copy of it as it is, and %s", *data, folder.Restore)
		}
		printf(out, "nothing is damaged: %d records\n", checked.Records)
		return nil
	}
	return c
}
