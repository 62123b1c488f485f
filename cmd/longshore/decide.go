package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

// act makes a command call a method of the broker on its argument, and print the outcome. The
// argument is completed with names.
func act[In, Out any](
	c *cobra.Command, m operator.Method[In, Out], in func(name string) (In, error),
	tell func(out io.Writer, name string, did Out), names func(*whichBroker) completer,
) *cobra.Command {
	var p whichBroker
	p.flags(c)
	if c.Flags().Lookup("platform") != nil {
		completed(c, "platform", p.platforms)
	}
	c.ValidArgsFunction = onlyFirst(names(&p))
	c.RunE = func(c *cobra.Command, args []string) error {
		asked, err := in(args[0])
		if err != nil {
			return err
		}
		did, err := ask(c.Context(), p, m, asked)
		if err != nil {
			return err
		}
		tell(c.OutOrStdout(), args[0], did)
		return nil
	}
	return c
}

// itself is the input of a method that takes the name alone.
func itself(name string) (string, error) { return name, nil }

const aToken = "an operation's TOKEN: `longshore operations -o wide` lists them"

// tokens completes with the tokens of operations.
func tokens(p *whichBroker) completer {
	return p.ids(operator.List, operator.Operations, func(r operator.Row) string { return r.Operation.Token })
}

func newRetry() *cobra.Command {
	return act(&cobra.Command{
		Use: "retry TOKEN", Short: "Start an operation again, or delete what failed", Args: takes(1, 1, aToken),
		Long: `Start a running operation again, in another execution: safe at any time. If a
creation or a deletion has failed, begin the deletion of what it left; until the
platform deletes a failed creation itself, it is still told that the creation has
failed. To create it again, use recreate.`,
	}, operator.Retry, itself, func(out io.Writer, token string, row operator.Row) {
		said := "What it left is being removed."
		if row.Operation.Token == token {
			said = fmt.Sprintf("Started again, as attempt %d.", row.Operation.Attempt)
		}
		showAfter(out, said, row)
	}, tokens)
}

func newRecreate() *cobra.Command {
	return act(&cobra.Command{
		Use: "recreate TOKEN", Short: "Create again what failed to be created", Args: takes(1, 1, aToken),
		Long: `Create an instance or a binding once more whose creation has failed, with what was
asked for then. Put right first what was in the way. A platform that repeats its
request finds it; a platform that has given up has to delete it.`,
	}, operator.Recreate, itself, func(out io.Writer, _ string, row operator.Row) {
		showAfter(out, "It is being created again.", row)
	}, tokens)
}

func newSettle() *cobra.Command {
	var message string
	var yes bool
	c := act(&cobra.Command{
		Use: "settle TOKEN --failed MESSAGE --yes", Short: "End a running operation as failed", Args: takes(1, 1, aToken),
		Long: `End a running operation as failed. The platform's user is told the message, and the
platform does what it does after a failure.`,
		Example: `  longshore settle TOKEN --failed "The region has no room. Try again on Monday." --yes`,
	}, operator.Settle, func(token string) (operator.Settlement, error) {
		s := operator.Settlement{Token: token, Message: message}
		switch {
		case strings.TrimSpace(message) == "":
			return s, &usageError{`settle needs --failed "what the platform's user is told"`}
		case !yes:
			return s, errors.New("the operation ends for good, and the platform is told that it failed: " +
				"say --yes if that is what you want; `longshore retry` starts it again instead")
		}
		return s, nil
	}, func(out io.Writer, _ string, row operator.Row) { showAfter(out, "It has failed.", row) }, tokens)
	c.Flags().StringVar(&message, "failed", "", "`MESSAGE` for the platform's user")
	c.Flags().BoolVar(&yes, "yes", false, "it is meant: the operation ends for good")
	return c
}

// showAfter prints what was done, and the row as it is afterwards.
func showAfter(out io.Writer, said string, r operator.Row) {
	printf(out, "%s\n\n", said)
	show(out, r)
}
