package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

// act makes a command call a method of the broker on its argument, which is empty for none, and print the outcome.
func act[In, Out any](
	c *cobra.Command, p whichBroker, m operator.Method[In, Out], in func(name string) (In, error),
	tell func(out io.Writer, did Out),
) *cobra.Command {
	p.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		asked, err := in(strings.Join(args, ""))
		if err != nil {
			return err
		}
		did, err := ask(c.Context(), p, m, asked)
		if err == nil {
			tell(c.OutOrStdout(), did)
		}
		return err
	}
	return c
}

// itself is the input of a method that takes the name alone.
func itself(name string) (string, error) { return name, nil }

// nothing is the input of a method that takes none.
func nothing(string) (_ operator.None, _ error) { return }

// viewed adds the flag --output to a command, and returns a function that prints an outcome as the flag says.
func viewed[T any](c *cobra.Command, tell func(out io.Writer, did T)) func(io.Writer, T) {
	var v view
	v.flag(c)
	return func(out io.Writer, did T) {
		if v.json() {
			tell = printJSON
		}
		tell(out, did)
	}
}

// meant adds the flag --yes to a command, and returns a function that fails with a refusal if the flag was not given.
func meant(c *cobra.Command, usage, refusal string) func() error {
	yes := c.Flags().Bool("yes", false, "confirm that "+usage)
	return func() error {
		if !*yes {
			return errors.New(refusal)
		}
		return nil
	}
}

const aToken = "an operation's TOKEN: `longshore operations -o wide` lists them"

// tokens completes with the tokens of operations.
var tokens = onlyFirst(ids(operator.List, operator.Operations, tokenOf))

func tokenOf(r operator.Row) string { return r.Operation.Token }

func newRetry() *cobra.Command {
	return act(&cobra.Command{
		Use: "retry TOKEN", Short: "Start an operation again, or delete what failed", Args: takes(1, 1, aToken),
		ValidArgsFunction: tokens,
		Long: `Start a running operation again, in another execution: safe at any time. If a
creation or a deletion has failed, begin to delete what it left; until the platform
deletes a failed creation itself, it still sees that the creation has failed. To
create it again, use recreate.`,
	}, whichBroker{}, operator.Retry, itself, func(out io.Writer, row operator.Row) {
		said := "Its remains are being removed."
		if again := row.Operation.Attempt; again > 1 {
			said = fmt.Sprintf("Started again, as attempt %d.", again)
		}
		after(said)(out, row)
	})
}

func newRecreate() *cobra.Command {
	return act(&cobra.Command{
		Use: "recreate TOKEN", Short: "Create again what failed to be created", Args: takes(1, 1, aToken),
		ValidArgsFunction: tokens,
		Long: `Create an instance or a binding again whose creation has failed, with the same
parameters. Repair the cause of the failure first. A platform that repeats its
request finds it; a platform that has given up has to delete it.`,
	}, whichBroker{}, operator.Recreate, itself, after("It is being created again."))
}

func newSettle() *cobra.Command {
	c := &cobra.Command{
		Use: "settle TOKEN --failed MESSAGE --yes", Short: "End a running operation as failed", Args: takes(1, 1, aToken),
		ValidArgsFunction: tokens,
		Long: `End a running operation as failed. The platform's user is told the message, and the
platform does what it does after a failure.`,
		Example: `  longshore settle TOKEN --failed "The region has no room. Try again on Monday." --yes`,
	}
	message := c.Flags().String("failed", "", "`MESSAGE` for the platform's user")
	sure := meant(c, "the operation ends for good", "the operation ends for good, and the platform is told that it failed: "+
		"say --yes if that is what you want; `longshore retry` starts it again instead")
	return act(c, whichBroker{}, operator.Settle, func(token string) (operator.Settlement, error) {
		s := operator.Settlement{Token: token, Message: *message}
		if strings.TrimSpace(s.Message) == "" {
			return s, misused(`settle needs --failed "what the platform's user is told"`)
		}
		return s, sure()
	}, after("It has failed."))
}

// after returns a function that prints what was done, and the row as it is afterwards.
func after(said string) func(io.Writer, operator.Row) {
	return func(out io.Writer, r operator.Row) {
		printf(out, "%s\n\n", said)
		show(out, r)
	}
}
