package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

func newUndelete() *cobra.Command {
	var (
		p whichBroker
		u operator.Undeletion
	)
	c := &cobra.Command{
		Use: "undelete ID", Short: "Allow that a deleted instance is given back, as a new one", Args: takes(1, 1, "a deleted instance's ID"),
		Long: `Allow that what is retained of a deleted instance is given back, and print what
its developers order for that: a new instance, in the same organization and
space. It gets what the deleted one held, under new credentials. Until it is
ordered, what is retained stays out of use; it is kept for a day at least.

ID is the deleted instance's, or, if it has lived more than once, that of one
life, as this command and ` + "`longshore retained`" + ` print it.`,
		RunE: func(c *cobra.Command, args []string) error {
			u.ID = args[0]
			out, err := ask(c.Context(), p, operator.Undelete, u)
			if err != nil {
				return err
			}
			parameters, err := json.Marshal(map[string]string{out.Parameter: idOf(out.Kept.Instance, out.Kept)})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), `Instance %s may be given back until %s, in organization %s and space %s.
Its developers order a new instance of it there, with these parameters:

    %s

In Cloud Foundry, with a NAME of their choice:

    cf create-service %s %s NAME -c %s
`, out.Kept.Instance, stamp(out.Kept.Kept.Until), orDash(out.Kept.Organization), out.Kept.Space,
				parameters, out.Service, out.Plan, quoted(string(parameters)))
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	p.flags(c)
	c.Flags().StringVar(&u.Platform, "platform", "", "of the platform `NAME`, where two had an instance of this id")
	c.Flags().StringVar(&u.Organization, "organization", "", "`ID` of the organization that may have it, in place of its own")
	c.Flags().StringVar(&u.Space, "space", "", "`ID` of the space that may have it, in place of its own")
	return c
}

// quoted is a text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
