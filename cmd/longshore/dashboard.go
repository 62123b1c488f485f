package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

func newDashboard() *cobra.Command {
	var v operator.Viewing
	c := &cobra.Command{
		Use: "dashboard ID", Short: "Print a link that opens the page of an instance", Args: takes(1, 1, "the ID of an instance"),
		Long: `Print a link that opens the page of an instance in a browser: its state, what
failed and what to do, how to connect, and what happened. The link is valid for 15
minutes and opens a session once; give it to whoever may see the instance.`,
		ValidArgsFunction: onlyFirst(instances),
	}
	c.Flags().StringVar(&v.Platform, "platform", "", "the `NAME` of the instance's platform, where several have an instance "+
		"with this id")
	c.Flags().BoolVar(&v.Acts, "act", false, "the session may upgrade the instance, and delete again what could not be deleted")
	return act(c, whichBroker{}, operator.Dashboard, func(id string) (operator.Viewing, error) {
		v.ID = id
		return v, nil
	}, viewed(c, printLink))
}

func newConsole() *cobra.Command {
	var w operator.Watch
	c := &cobra.Command{
		Use: "console", Short: "Print a link that opens the operator's console in a browser",
		Long: `Print a link that opens the operator's console in a browser: what fails, all
instances and operations, the quarantine, what is retained, offerings and platforms.
The link is valid for 15 minutes and opens a session once. Keep it to yourself: it
shows what every platform has.`,
	}
	c.Flags().BoolVar(&w.Acts, "act", false, "the session may change something: retry, settle, release, delete from quarantine")
	return act(c, whichBroker{}, operator.Watched, func(string) (operator.Watch, error) { return w, nil }, viewed(c, printLink))
}

func printLink(out io.Writer, link operator.DashboardLink) { printf(out, "%s\n", link.URL) }
