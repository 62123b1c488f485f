package main

import (
	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/operator"
)

func newWhose(getenv func(string) string) *cobra.Command {
	c := &cobra.Command{
		Use: "whose NAME", Short: "Say who owns a database, a login, a stack or a user",
		Args: takes(1, 1, "the NAME of the thing on its server or in its account"),
		Long: `Say which instance or binding something was made for, and who ordered it, by the
NAME that it has on its server or in its AWS account: a database, an owner or a
login, the prefix of a key, a stack, an IAM user or role, or the ARN of one. If no
record leads to it, the servers and accounts are asked for its label.`,
		Example: `  longshore whose lsdjv3xw5kq2n4o6b7c8d9e2f3g4h
  longshore whose longshore-abcdefgh-i-jv3xw5kq2n4o6b7c8d9e2f3g4h --stack Longshore`,
	}
	return act(c, whichBroker{getenv: getenv}, operator.Owner, itself, viewed(c, show))
}
