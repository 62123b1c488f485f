package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/longshore/longshore/internal/base/suggest"
	"github.com/longshore/longshore/internal/operator"
)

// The groups in which the commands are listed.
const (
	groupServe   = "serve"
	groupOperate = "operate"
	groupAsk     = "ask"
)

// newRoot makes the command line. No default in it may be a secret: defaults are printed.
func newRoot(getenv func(string) string, out, diagnostics io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "longshore",
		Short: "Longshore, a service broker",
		Long: `Longshore, a service broker.

An operator's commands act on the broker over a data folder, running or not
(--data DIR, with --offerings DIR if it has its own), or on a stack on AWS
(--stack NAME).`,
		Example: `  longshore serve
  longshore instances --data .longshore
  longshore try http://127.0.0.1:8080 --username broker`,
		Version:       versionText(),
		SilenceErrors: true, // run prints them, with what to do next
		SilenceUsage:  true,
		RunE:          func(*cobra.Command, []string) error { return misused("say what to do, such as `longshore serve`") },
	}
	root.SetOut(out)
	root.SetErr(diagnostics)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(usage(root.UsageFunc()))
	root.AddGroup(
		&cobra.Group{ID: groupServe, Title: "Run a broker:"},
		&cobra.Group{ID: groupOperate, Title: "Look after one:"},
		&cobra.Group{ID: groupAsk, Title: "Ask any broker:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupServe, newServe(getenv), newCatalog())
	add(groupOperate, newPlatform(),
		newListing(operator.Instances), newListing(operator.Bindings), newListing(operator.Operations), newDashboard(),
		newConsole(), newWhose(getenv), newRetry(), newRecreate(), newSettle(), newForget(), newReaper(), newRebuild(getenv),
		newReconcile(getenv), newRetained(), newUndelete(), newUpgrades(), newFsck(), newBackup(), newAWS(getenv))
	add(groupAsk, newCheck(getenv), newTry(getenv))
	root.AddCommand(newVersion())
	initHelp(root)
	root.InitDefaultCompletionCmd()
	root.InitDefaultVersionFlag()
	everywhere(root, furnish)
	return root
}

// furnish gives a command what all commands have: help, a judgement of its arguments, and completions.
func furnish(c *cobra.Command) {
	c.InitDefaultHelpFlag()
	if c.HasSubCommands() && !c.Runnable() {
		group(c)
	}
	if c.Args == nil && !c.HasSubCommands() {
		c.Args = takes(0, 0, "")
	}
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		case "platform":
			completed(c, f.Name, platformNames)
		case "data", "offerings":
			must(c.MarkFlagDirname(f.Name))
		}
	})
}

// usage prints how a command is used. A command with subcommands is not shown as one that can be
// called alone: it can be, but only to list the subcommands.
//
// Templates of Cobra could print the same. With them, the linker would keep each method of each
// type, since a template may call any: the program would be twice as large.
func usage(whole func(*cobra.Command) error) func(*cobra.Command) error {
	return func(c *cobra.Command) error {
		if c.HasSubCommands() {
			run := c.RunE
			c.RunE = nil
			defer func() { c.RunE = run }()
		}
		return whole(c)
	}
}

// everywhere visits a command and all commands below it.
func everywhere(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, below := range c.Commands() {
		everywhere(below, visit)
	}
}

// group makes a command fail if it is called without a subcommand, or with an unknown one; Cobra
// would print the help and report success.
func group(c *cobra.Command) {
	c.Args = cobra.ArbitraryArgs
	c.FParseErrWhitelist.UnknownFlags = true // flags of an unknown command are not worth an error of their own
	c.RunE = func(c *cobra.Command, args []string) error {
		var names []string
		for _, below := range c.Commands() {
			names = append(names, below.Name())
		}
		choice := strings.Join(names, ", ")
		if len(args) == 0 {
			return misused("say what %s is to do: %s", nameOf(c), choice)
		}
		return misused("unknown command %q for %q: the commands are %s", args[0], c.CommandPath(), choice)
	}
}

// initHelp adds the help command. Cobra's own would report success for a command that does not exist.
func initHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	must(err)
	help.Use, help.Short, help.Long = "help [COMMAND]...", "Say how a command is used", ""
	help.Args, help.Run = cobra.ArbitraryArgs, nil
	help.RunE = func(c *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		switch {
		case err != nil:
			return misused("%w", err)
		case len(rest) > 0:
			return misused("%q has no command %q", about.CommandPath(), rest[0])
		}
		return about.Help()
	}
}

// takes makes a command take from least to most arguments; missing says what is missing if there are too few.
func takes(least, most int, missing string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch name := nameOf(c); {
		case len(args) < least:
			return fmt.Errorf("%s needs %s", name, missing)
		case len(args) > most:
			return fmt.Errorf("%s does not take %q", name, args[most])
		}
		return nil
	}
}

// nameOf returns the name of a command without the name of the program.
func nameOf(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

// flagError says what is wrong with a flag. It shows a value that cannot be parsed, but nothing
// else that was typed, which may be a password.
func flagError(c *cobra.Command, err error) error {
	unknown, missing, invalid := (*pflag.NotExistError)(nil), (*pflag.ValueRequiredError)(nil), (*pflag.InvalidValueError)(nil)
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		what := "flag --" + name
		if cluster := unknown.GetSpecifiedShortnames(); cluster != "" {
			name, _, _ = strings.Cut(cluster, "=")
			what = "such flag of one hyphen"
		}
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if meant := suggest.Nearest(name, known); meant != "" {
			return fmt.Errorf("%s has no %s: did you mean --%s?", nameOf(c), what, meant)
		}
		return fmt.Errorf("%s has no %s", nameOf(c), what)
	case errors.As(err, &missing):
		return fmt.Errorf("--%s needs a value", missing.GetSpecifiedName())
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		if _, secret := f.Value.(*object); secret {
			return fmt.Errorf("--%s takes a JSON object, such as '{\"size\":1}'", f.Name)
		}
		return fmt.Errorf("--%s does not take %q: give %s", f.Name, invalid.GetValue(), wanted(f.Value))
	}
	return err
}

// wanted describes the values that a flag takes.
func wanted(v pflag.Value) string {
	if c, ok := v.(choice); ok {
		last := len(c.of) - 1
		return strings.Join(c.of[:last], ", ") + " or " + c.of[last]
	}
	return map[string]string{
		"int": "a whole number", "duration": "a duration, such as 90s or 24h", "bool": "true or false",
		"boolfunc":    "true or false",
		"stringSlice": "words with commas between them",
	}[v.Type()]
}

// A choice is the value of a flag that takes one of a few words.
type choice struct {
	to *string
	of []string
	// signed allows a hyphen before each word.
	signed bool
}

// choose adds a flag that takes one of the words in of; its default is unlessGiven. The name may be
// followed by a comma and a shorthand letter.
func choose(c *cobra.Command, to *string, name, unlessGiven, usage string, of ...string) {
	*to = unlessGiven
	name, letter, _ := strings.Cut(name, ",")
	c.Flags().VarP(choice{to: to, of: of}, name, letter, usage)
	must(c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(of, cobra.ShellCompDirectiveNoFileComp)))
}

// String implements pflag.Value.
func (c choice) String() string { return *c.to }

// Type implements pflag.Value.
func (c choice) Type() string { return "string" }

// Set implements pflag.Value.
func (c choice) Set(value string) error {
	one := value
	if c.signed {
		one = strings.TrimPrefix(value, "-")
	}
	if value != *c.to && !slices.Contains(c.of, one) {
		return errors.New("it is none of those") // flagError says which
	}
	*c.to = value
	return nil
}

// must panics on a mistake in the program, such as a flag that does not exist.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
