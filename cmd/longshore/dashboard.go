package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

func newDashboard(getenv func(string) string) *cobra.Command {
	var (
		p = whichBroker{getenv: getenv}
		f format
		v operator.Viewing
	)
	c := &cobra.Command{
		Use: "dashboard ID", Short: "Print a link that opens the page of an instance", Args: takes(1, 1, "the ID of an instance"),
		Long: `Print a link that opens the page of an instance in a browser: its state, what
failed and what to do, how to connect, and what happened. The link is valid for 15
minutes and opens a session once; give it to whoever may see the instance.`,
		RunE: func(c *cobra.Command, args []string) error {
			v.ID = args[0]
			link, err := ask(c.Context(), p, operator.Dashboard, v)
			switch {
			case err != nil:
				return err
			case f.machine():
				return printJSON(c.OutOrStdout(), link)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), link.URL)
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	p.flags(c)
	f.flag(c)
	c.Flags().StringVar(&v.Platform, "platform", "", "of the platform `NAME`, where several have an instance of this id")
	return c
}
