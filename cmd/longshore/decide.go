package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

func newRetry() *cobra.Command {
	var p whichBroker
	c := &cobra.Command{
		Use: "retry TOKEN", Short: "Start an operation again, or delete what failed", Args: takes(1, 1, tokens),
		Long: `Start a running operation again, in another execution: safe at any time. If a
creation or a deletion has failed, begin the deletion of what it left; until the
platform deletes a failed creation itself, it is still told that the creation has
failed. To create it again, use recreate.`,
		RunE: func(c *cobra.Command, args []string) error { return retry(c.Context(), p, args[0], c.OutOrStdout()) },
	}
	p.flags(c)
	return c
}

const tokens = "an operation's TOKEN: `longshore operations` lists them"

// retry starts an operation again.
func retry(ctx context.Context, p whichBroker, token string, out io.Writer) error {
	row, err := ask(ctx, p, operator.Retry, token)
	if err != nil {
		return err
	}
	if row.Operation.Token == token {
		printf(out, "Started again, as attempt %d.\n\n", row.Operation.Attempt)
	} else {
		printf(out, "What it left is being removed.\n\n")
	}
	return show(out, row)
}

func newRecreate() *cobra.Command {
	var p whichBroker
	c := &cobra.Command{
		Use: "recreate TOKEN", Short: "Create again what failed to be created", Args: takes(1, 1, tokens),
		Long: `Create an instance or a binding once more whose creation has failed, with what was
asked for then. Put right first what was in the way. A platform that repeats its
request finds it; a platform that has given up has to delete it.`,
		RunE: func(c *cobra.Command, args []string) error {
			return decide(c, p, operator.Recreate, args[0], "It is being created again.")
		},
	}
	p.flags(c)
	return c
}

func newSettle() *cobra.Command {
	var (
		p       whichBroker
		message string
		yes     bool
	)
	c := &cobra.Command{
		Use: "settle TOKEN --failed MESSAGE --yes", Short: "End a running operation as failed", Args: takes(1, 1, tokens),
		Long: `End a running operation as failed. The platform's user is told the message, and the
platform does what it does after a failure.`,
		Example: `  longshore settle TOKEN --failed "The region has no room. Try again on Monday." --yes`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case strings.TrimSpace(message) == "":
				return &usageError{`settle needs --failed "what the platform's user is told"`}
			case !yes:
				return errors.New("the operation ends for good, and the platform is told that it failed: " +
					"say --yes if that is what you want; `longshore retry` starts it again instead")
			}
			return decide(c, p, operator.Settle, operator.Settlement{Token: args[0], Message: message}, "It has failed.")
		},
	}
	p.flags(c)
	c.Flags().StringVar(&message, "failed", "", "`MESSAGE` for the platform's user")
	c.Flags().BoolVar(&yes, "yes", false, "it is meant: the operation ends for good")
	return c
}

// decide asks for a decision about an operation, and shows what came of it.
func decide[In any](c *cobra.Command, p whichBroker, m operator.Method[In, operator.Row], in In, said string) error {
	row, err := ask(c.Context(), p, m, in)
	if err != nil {
		return err
	}
	printf(c.OutOrStdout(), "%s\n\n", said)
	return show(c.OutOrStdout(), row)
}
