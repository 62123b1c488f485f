package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/shell"
	"github.com/longshore/longshore/internal/base/sorted"
)

func newCatalog() *cobra.Command {
	c := &cobra.Command{Use: "catalog", Short: "Write and check offerings"}
	c.AddCommand(newCatalogNew(), newCatalogValidate(), newCatalogLock(), newCatalogPermissions())
	return c
}

// offeringsFolder completes an argument with the names of folders.
var offeringsFolder = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

func newCatalogNew() *cobra.Command {
	var aws bool
	c := &cobra.Command{
		Use: "new NAME [DIR]", Short: "Write a first offering, DIR/NAME/offering.yaml",
		Args: takes(1, 2, "the NAME of the offering"),
		Long: `Write a first offering, DIR/NAME/offering.yaml, which works as it is, and beside
NAME the schema that helps editors; DIR is the folder you are in unless given.
Nothing that exists is changed. With --cloudformation, it is an AWS service of four
files: a template, what CloudFormation may do for it, and what a binding may do.`,
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 1 {
				dir = args[1]
			}
			path, err := offeringfiles.New(dir, args[0], aws)
			if err != nil {
				return err
			}
			printf(c.OutOrStdout(), "wrote %s: edit it, then run longshore catalog validate %s\n", path, shell.Word(dir))
			return nil
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return cobra.NoFileCompletions(c, args, typed)
			}
			return offeringsFolder(c, args, typed)
		},
	}
	c.Flags().BoolVar(&aws, app.ProviderCloudFormation, false, "write an AWS service, of a template")
	return c
}

func newCatalogValidate() *cobra.Command {
	var lint string
	c := &cobra.Command{
		Use: "validate [DIR]", Short: "Check the shipped offerings and those in DIR", Args: takes(0, 1, ""),
		Long: `Check the shipped offerings and those in DIR. All faults are listed at once, each
with its file, line and remedy. For AWS services in DIR, warnings say which actions
CloudFormation may call although permissions.json does not allow them, which it
never calls, and which allow more than it seems; a plan's setting warnings silences
one, with the reason. With --lint, cfn-lint checks the templates, too: it knows the
properties and attributes of all types.`,
		RunE: func(c *cobra.Command, args []string) error {
			var warnings []advice.Error
			warn := func(w advice.Error) { warnings = append(warnings, w) }
			all, err := offeringfiles.Validate(c.Context(), strings.Join(args, ""), lint, warn)
			for _, w := range warnings {
				printf(c.OutOrStdout(), "warning: %s\n", w.Error())
			}
			if err != nil {
				return err
			}
			for _, o := range all.Offerings() {
				var plans []string
				for _, p := range o.Plans {
					plans = append(plans, p.Name)
				}
				printf(c.OutOrStdout(), "%s: %s\n", o.Name, strings.Join(plans, ", "))
			}
			printf(c.OutOrStdout(), "the catalog is valid\n")
			return nil
		},
		ValidArgsFunction: offeringsFolder,
	}
	c.Flags().StringVar(&lint, "lint", "", "have cfn-lint look at the templates; =`PROGRAM` says where it is")
	c.Flags().Lookup("lint").NoOptDefVal = "cfn-lint"
	return c
}

func newCatalogLock() *cobra.Command {
	return &cobra.Command{
		Use: "lock DIR", Short: "Record which template each version of a plan stands for",
		Args: takes(1, 1, "the folder DIR of your offerings"),
		Long: `Write DIR/NAME/offering.lock, which records the template of each plan with a version
in maintenance_info. A template that has changed under the same version is refused:
instances of one version would differ. Raise the version, and lock again.`,
		RunE: func(c *cobra.Command, args []string) error {
			changed, err := offeringfiles.Lock(args[0])
			if err != nil {
				return err
			}
			for _, path := range changed {
				printf(c.OutOrStdout(), "wrote %s\n", path)
			}
			printf(c.OutOrStdout(), "the offerings are locked\n")
			return nil
		},
		ValidArgsFunction: offeringsFolder,
	}
}

func newCatalogPermissions() *cobra.Command {
	return &cobra.Command{
		Use: "permissions DIR", Short: "Add to permissions.json what CloudFormation calls",
		Args: takes(1, 1, "the folder DIR of your offerings"),
		Long: `Add to the permissions.json of each AWS service in DIR the actions that
CloudFormation's handlers may call for the resources of its templates, and say which.
An action goes into a statement that allows others of its service; no Resource and no
Condition is touched. Remove yourself what no property of the template needs. The
command also lists what it did not add: actions that fit no statement, and those that
only you should allow.`,
		RunE: func(c *cobra.Command, args []string) error {
			all, err := offeringfiles.Permit(args[0])
			if err != nil {
				return err
			}
			for path, p := range sorted.Map(all) {
				printActions(c.OutOrStdout(), path+": added", p.Added)
				printActions(c.OutOrStdout(), path+": not added, allow these yourself if the template needs them:", p.Left)
			}
			printf(c.OutOrStdout(), "now run longshore catalog validate %s\n", shell.Word(args[0]))
			return nil
		},
		ValidArgsFunction: offeringsFolder,
	}
}

// printActions prints a list of actions, unless it is empty.
func printActions(out io.Writer, what string, actions []string) {
	if len(actions) > 0 {
		printf(out, "%s %s\n", what, strings.Join(actions, ", "))
	}
}
