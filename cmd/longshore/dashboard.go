package main

import (
	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

func newDashboard(getenv func(string) string) *cobra.Command {
	var (
		p = whichBroker{getenv: getenv}
		f view
		v operator.Viewing
	)
	c := &cobra.Command{
		Use: "dashboard ID", Short: "Print a link that opens the page of an instance", Args: takes(1, 1, "the ID of an instance"),
		Long: `Print a link that opens the page of an instance in a browser: its state, what
failed and what to do, how to connect, and what happened. The link is valid for 15
minutes and opens a session once; give it to whoever may see the instance.`,
		RunE: func(c *cobra.Command, args []string) error {
			v.ID = args[0]
			return printLink(c, p, f, operator.Dashboard, v)
		},
	}
	c.ValidArgsFunction = onlyFirst(instances)
	p.flags(c)
	f.flag(c)
	c.Flags().StringVar(&v.Platform, "platform", "", "of the platform `NAME`, where several have an instance of this id")
	c.Flags().BoolVar(&v.Acts, "act", false, "the session may upgrade the instance, and delete again what could not be deleted")
	return c
}

func newConsole(getenv func(string) string) *cobra.Command {
	var (
		p = whichBroker{getenv: getenv}
		f view
		w operator.Watch
	)
	c := &cobra.Command{
		Use: "console", Short: "Print a link that opens the operator's console in a browser", Args: takes(0, 0, ""),
		Long: `Print a link that opens the operator's console in a browser: what fails, all
instances and operations, the quarantine, what is retained, offerings and platforms.
The link is valid for 15 minutes and opens a session once. Keep it to yourself: it
shows what every platform has.`,
		RunE: func(c *cobra.Command, _ []string) error { return printLink(c, p, f, operator.Watched, w) },
	}
	p.flags(c)
	f.flag(c)
	c.Flags().BoolVar(&w.Acts, "act", false, "the session may change something: retry, settle, release, delete from quarantine")
	return c
}

// printLink asks the broker for a link, and prints it.
func printLink[In any](c *cobra.Command, p whichBroker, f view, m operator.Method[In, operator.DashboardLink], in In) error {
	link, err := ask(c.Context(), p, m, in)
	switch {
	case err != nil:
		return err
	case f.json():
		printJSON(c.OutOrStdout(), link)
	default:
		printf(c.OutOrStdout(), "%s\n", link.URL)
	}
	return nil
}
