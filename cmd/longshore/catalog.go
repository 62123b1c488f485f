package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/offered"
	"github.com/longshore/longshore/internal/base/remedy"
	"github.com/longshore/longshore/internal/catalog"
)

func newCatalog() *cobra.Command {
	c := &cobra.Command{Use: "catalog", Short: "Write and check offerings"}
	c.AddCommand(newCatalogNew(), newCatalogValidate())
	return c
}

func offeringsFolder(_ *cobra.Command, _ []string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func newCatalogNew() *cobra.Command {
	var aws bool
	c := &cobra.Command{
		Use: "new NAME [DIR]", Short: "Write a first offering, DIR/NAME/offering.yaml", Args: takes(1, 2, "the NAME of the offering"),
		Long: `Write a first offering, DIR/NAME/offering.yaml, which works as it is, and beside
NAME the schema that helps editors; DIR is the folder you are in unless given.
Nothing that exists is changed. With --cloudformation, it is an AWS service of four
files: a template, what CloudFormation may do for it, and what a binding may do.`,
		RunE: func(c *cobra.Command, args []string) error {
			dir, write := ".", offered.New
			if len(args) > 1 {
				dir = args[1]
			}
			if aws {
				write = offered.NewAWS
			}
			path, err := write(dir, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "wrote %s: edit it, then run longshore catalog validate %s\n", path, dir)
			return err
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return offeringsFolder(c, args)
		},
	}
	c.Flags().BoolVar(&aws, app.ProviderCloudFormation, false, "write an AWS service, of a template")
	return c
}

func newCatalogValidate() *cobra.Command {
	var lint string
	c := &cobra.Command{
		Use: "validate [DIR]", Short: "Check the shipped offerings and those in DIR", Args: takes(0, 1, ""),
		Long: `Check the shipped offerings and those in DIR. All that is wrong is said at once,
each with its file, line and remedy. Of AWS services in DIR, warnings say what
CloudFormation may call beside what permissions.json allows, what it never calls,
and what is wider than it looks; a plan's setting warnings silences one, with the
reason. With --lint, the program cfn-lint looks at the templates, too: it knows the
properties and attributes of all types.`,
		RunE: func(c *cobra.Command, args []string) error {
			return validate(c.Context(), strings.Join(args, ""), lint, c.OutOrStdout())
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return offeringsFolder(c, args)
		},
	}
	c.Flags().StringVar(&lint, "lint", "", "have cfn-lint look at the templates; =`PROGRAM` says where it is")
	c.Flags().Lookup("lint").NoOptDefVal = "cfn-lint"
	return c
}

// validate checks the shipped offering files and those of a folder, if one is given, and
// has a linter look at the templates, if one is given.
func validate(ctx context.Context, dir, lint string, out io.Writer) error {
	var warnings []remedy.Error
	warn := func(w remedy.Error) { warnings = append(warnings, w) }
	var all *catalog.Catalog
	var err error
	if lint == "" {
		all, err = offered.Validate(dir, warn)
	} else {
		all, err = offered.Linted(ctx, lint, dir, warn)
	}
	for _, w := range warnings {
		if _, err := fmt.Fprintf(out, "warning: %s\n", w.Error()); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	for _, o := range all.Offerings() {
		var plans []string
		for _, p := range o.Plans {
			plans = append(plans, p.Name)
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", o.Name, strings.Join(plans, ", ")); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, "the catalog is valid")
	return err
}
