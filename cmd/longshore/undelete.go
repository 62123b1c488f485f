package main

import (
	"cmp"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/base/shell"
	"github.com/longshore/longshore/internal/operator"
)

func newUndelete() *cobra.Command {
	var u operator.Undeletion
	c := &cobra.Command{
		Use: "undelete ID", Short: "Let developers get a deleted instance back, as a new one",
		Args:              takes(1, 1, "a deleted instance's ID: `longshore retained` lists them"),
		ValidArgsFunction: onlyFirst(ids(operator.Retained, "", func(r operator.Row) string { return idOf(r.Instance, r) })),
		Long: `Let developers get a retained instance back, and print what to order for that: a new
instance, in the same organization and space. It gets the data of the deleted one,
under new credentials. Until they order it, nobody can use the data; it is kept for
a day at least.

ID is the deleted instance's, or, if it has lived more than once, that of one
life, as this command and ` + "`longshore retained`" + ` print it.`,
	}
	c.Flags().StringVar(&u.Platform, "platform", "", "the `NAME` of the instance's platform, where two had an instance with "+
		"this id")
	c.Flags().StringVar(&u.Organization, "organization", "", "`ID` of the organization that may have it, in place of its own")
	c.Flags().StringVar(&u.Space, "space", "", "`ID` of the space that may have it, in place of its own")
	return act(c, whichBroker{}, operator.Undelete, func(id string) (operator.Undeletion, error) {
		u.ID = id
		return u, nil
	}, printUndeleted)
}

// printUndeleted prints what developers order to have an instance back.
func printUndeleted(out io.Writer, back operator.Undeleted) {
	parameters, _ := json.Marshal(map[string]string{back.Parameter: idOf(back.Kept.Instance, back.Kept)})
	printf(out, `Instance %s may be given back until %s, in organization %s and space %s.
Its developers order a new instance of it there, with these parameters:

    %s

In Cloud Foundry, with a NAME of their choice:

    cf create-service %s %s NAME -c %s
`, back.Kept.Instance, stamp(back.Kept.Kept.Until), cmp.Or(oneLine(back.Kept.Organization), "-"), oneLine(back.Kept.Space),
		parameters, shell.Word(back.Service), shell.Word(back.Plan), shell.Word(string(parameters)))
}
