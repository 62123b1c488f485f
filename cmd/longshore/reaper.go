package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/operator"
)

func newReaper() *cobra.Command {
	reaper := &cobra.Command{Use: "reaper",
		Short: "See what the reaper found and did, decide about its quarantine, or lift its halt"}
	reaper.AddCommand(newReaperReport(), newReaperResume(), newReaperQuarantine(), newReaperRelease(), newReaperDelete())
	return reaper
}

func newReaperReport() *cobra.Command {
	var (
		p    whichBroker
		last int
	)
	c := &cobra.Command{
		Use: "report", Short: "Show what the reaper found and did",
	}
	tell := viewed(c, printReports)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if last < 0 {
			return misused("--last is negative: give a number of runs")
		}
		found, err := ask(c.Context(), p, operator.Report, operator.None{})
		if err != nil && found.Reports == nil {
			return err // the broker was not reached
		}
		found.Reports = found.Reports[max(0, len(found.Reports)-last):]
		tell(c.OutOrStdout(), found)
		return notAll(err)
	}
	p.flags(c)
	c.Flags().IntVar(&last, "last", 10, "the latest `N` runs that found something")
	return c
}

func newReaperResume() *cobra.Command {
	return act(&cobra.Command{
		Use: "resume", Short: "Lift the reaper's halt",
		Long: "Lift the reaper's halt, once you know why it found so many things without a record.",
	}, whichBroker{}, operator.Resume, nothing, func(out io.Writer, _ operator.None) {
		printf(out, "The reaper goes on: its next inventory begins within a minute.\n")
	})
}

func printReports(out io.Writer, found operator.Reaper) {
	switch state := found.Inventory; {
	case state.Halt != nil:
		printf(out, "HALTED since %s: %s.\nIt leaves orphans alone until `longshore reaper resume`.\n\n", stamp(state.Halt.At),
			state.Halt.Reason)
	case state.Pass != nil:
		printf(out, "An inventory has been running since %s.\n\n", stamp(state.Pass.Report.Started))
	case !state.Due.IsZero():
		printf(out, "Things that exist: %d; the next inventory begins at %s.\n\n", state.Things, stamp(state.Due))
	}
	if len(found.Reports) == 0 {
		printf(out, "No run has found anything to report yet.\n")
	}
	for _, r := range found.Reports {
		if s := r.Swept; s != nil {
			printf(out, "%s  sweep: started again %d, past their deadline, for a last look %d, reclaimed %d, "+
				"looked at once more %d, released %d, deleted after their quarantine %d, retained no longer %d, "+
				"dropped %d, faults %d\n",
				stamp(r.Started), s.Redriven, s.Overdue, s.Reclaimed, s.Looks, s.Released, s.Ended, s.Removed,
				s.Dropped, s.Faults)
		}
		if c := r.Counted; c != nil {
			dry := ""
			if c.DryRun {
				dry = " (dry run)"
			}
			printf(out, "%s  inventory%s: things %d, owned %d, young %d, seen without an owner %d, deleted %d, put into "+
				"quarantine %d, in quarantine before %d, released %d, retained %d, odd %d\n",
				stamp(r.Started), dry, c.Things, c.Owned, c.Young, c.Sighted, len(c.Deleted), len(c.Quarantined),
				c.InQuarantine, c.Released, c.Retained, len(c.Odd))
			for _, list := range []struct {
				what  string
				names []string
			}{{"deleted", c.Deleted}, {"quarantined", c.Quarantined}, {"odd", c.Odd}, {"INCOMPLETE", c.Unreached}} {
				for _, name := range list.names {
					printf(out, "    %s: %s\n", list.what, name)
				}
			}
			if c.Halted != "" {
				printf(out, "    halted: %s\n", c.Halted)
			}
		}
	}
}

func newRebuild(getenv func(string) string) *cobra.Command {
	var p whichBroker
	given := map[string]string{}
	c := &cobra.Command{
		Use:   "rebuild --yes",
		Short: "Give a record to all that exists and has none, after records or the vault's key were lost",
		Long: `Give a record to everything that exists without one, after records were lost.
Parameters, credentials and where instances were ordered are lost for good. Existing
records stay; the command gives up secrets in them that the vault's key does not
open. Restore a backup instead, if there is one.

If no broker runs on the data folder, a lost key is replaced by a new one, and of
damaged records, all whole ones are kept. Give the same flags as for serve, so that
everything that exists can be listed. The command may be stopped and run again; each
time, it lists everything that is lost.`,
	}
	sure := meant(c, "there is no backup", "rebuild gives a record to everything that has none, even to what nobody wants "+
		"any more, and gives up secrets that the vault's key does not open: restore a backup instead, if there is one, or "+
		"say --yes")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := sure(); err != nil {
			return err
		}
		if p.stack != "" && len(given) > 0 {
			return misused("a stack has its providers: leave out --aws and the servers")
		}
		p.getenv = embedded.WithFlags(given, getenv)
		p.lost = func(what string) { printf(c.ErrOrStderr(), "lost: %s\n", what) }
		found, err := ask(c.Context(), p, operator.Rebuild, operator.None{})
		restless := printRebuilt(c.OutOrStdout(), found)
		if err != nil {
			return fmt.Errorf("%w; what was derived is kept: run the command again", err)
		}
		return restless
	}
	p.flags(c)
	providerFlags(c, given, "AWS services were offered, as for serve", "`URL` as for serve, or embedded where serve has it")
	return c
}

// printRebuilt prints which records were rebuilt, and which could not be. It fails if the listings
// kept changing until the end.
func printRebuilt(out io.Writer, found operator.Rebuilt) error {
	printf(out, "%d instances and %d bindings have a record again; %d had one.\n",
		len(found.Instances), len(found.Bindings), found.Kept)
	if len(found.Instances) > 0 {
		printf(out, "\nLost for good: where the instances were ordered that have a record again.\n")
	}
	for _, list := range []struct {
		names []string
		what  string
	}{
		{found.Damaged, "These were damaged. The file as it was is kept beside the records, under a name with .lost-:"},
		{found.Parameters, "Lost for good: the parameters of these:"},
		{found.Rotate, "Lost for good: the bindings' credentials. Applications go on with what they have; rotate these, or " +
			"unbind and bind again:"},
		{found.Failed, "Operations on these needed what is lost, and have failed:"},
		{found.Gone, "These have a record but do not exist. Delete each through its platform, unless it should exist:"},
		{found.Retained, "These are retained from deleted instances, as `longshore retained` lists; where they were " +
			"ordered is lost:"},
		{found.Released, "These were in quarantine, and are in use again:"},
		{found.Unknown, "These could not be derived:"},
	} {
		if len(list.names) > 0 {
			names := slices.Sorted(slices.Values(list.names))
			printf(out, "\n%s\n  %s\n", list.what, strings.Join(names, "\n  "))
		}
	}
	if found.Restless > 0 {
		return fmt.Errorf("things were created or deleted during each of %d listings, so some may be missing: run the command "+
			"again, best while no platform creates or deletes anything", found.Restless)
	}
	return nil
}
