package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/folder"
	"github.com/longshore/longshore/internal/operator/socket"
)

// patience bounds how long a shell waits for completions.
const patience = time.Second

// A completer returns completions for what was typed. It asks a running broker, or reads files of
// the program or of the data folder, but never asks AWS. The flags of the command say which ones.
type completer func(c *cobra.Command, typed string) []string

// complete completes a flag or an argument, and with no names of files.
func (all completer) complete(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return all(c, typed), cobra.ShellCompDirectiveNoFileComp
}

// completed sets the completer of a flag.
func completed(c *cobra.Command, flag string, all completer) {
	must(c.RegisterFlagCompletionFunc(flag, all.complete))
}

// onlyFirst completes the first argument only.
func onlyFirst(all completer) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return cobra.NoFileCompletions(c, args, typed)
		}
		return all.complete(c, args, typed)
	}
}

// flagOf returns the value of a flag; empty if the command has no such flag.
func flagOf(c *cobra.Command, name string) string {
	value, _ := c.Flags().GetString(name)
	return value
}

// ids completes with the ids in the first page of a list that begin with what was typed.
func ids(
	list operator.Method[operator.Query, operator.Page], what operator.What, id func(operator.Row) string,
) completer {
	return func(c *cobra.Command, typed string) (all []string) {
		ctx, cancel := context.WithTimeout(c.Context(), patience)
		defer cancel()
		running := socket.Dial(folder.Control(flagOf(c, "data")))
		if flagOf(c, "stack") != "" || !running.Answers(ctx) {
			return nil
		}
		page, _ := list.Ask(ctx, running.Call, operator.Query{What: what, ID: typed})
		for _, r := range page.Items {
			all = append(all, id(r))
		}
		return all
	}
}

// instances completes with the ids of instances.
var instances = ids(operator.List, operator.Instances, func(r operator.Row) string { return r.Instance })

// platformNames completes with the names of platforms.
func platformNames(c *cobra.Command, _ string) []string {
	logins, err := folder.LoginsOf(flagOf(c, "data"))
	if err != nil || flagOf(c, "stack") != "" {
		return nil
	}
	names, _ := platforms.Names(logins)(c.Context())
	return slices.Sorted(maps.Values(names))
}

// offered completes with names of offerings and plans: those of the offering that --offering names, or of all.
func offered(name func(catalog.Offering, catalog.Plan) string) completer {
	return func(c *cobra.Command, _ string) (all []string) {
		loaded, err := offeringfiles.Load(flagOf(c, "offerings"))
		if err != nil {
			return nil
		}
		named := flagOf(c, "offering")
		for _, o := range loaded.Offerings() {
			for _, plan := range o.Plans {
				if named == "" || named == o.Name {
					all = append(all, name(o, plan))
				}
			}
		}
		return slices.Compact(all)
	}
}
