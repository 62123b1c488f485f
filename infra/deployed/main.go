// Command deployed tells the operator about a deployed stack: which state a new deployment must go on with,
// what stays when the stack is destroyed, and how its broker is reached. Before a deployment it prepares
// the account for AWS services; it owns and changes nothing else. It needs the operator's own rights.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/longshore/longshore/internal/base/outputs"
)

const usage = `Ask about a deployed stack.

  deployed state --stack NAME
        prints the context values with which a new deployment keeps the state that
        the stack took over; nothing if the state is its own, or there is no stack
  deployed kept --stack NAME
        says what stays when the stack is destroyed, and how to go on with that
  deployed prepare --stack NAME [-- -c NAME=VALUE...]
        prepares the account for AWS services, if the context (cdk.json, and these
        values) says that the stack offers them
  deployed env --stack NAME [--url URL]
        prints the shell command that exports the broker's URL, user name and
        password; {api} in URL stands for the id of the REST API
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "deployed: %v\n", err)
		os.Exit(1)
	}
}

// A misuse is a command line that asks nothing; its text explains the usage.
type misuse string

func (m misuse) Error() string { return string(m) + "\n\n" + strings.TrimSpace(usage) }

func run(ctx context.Context, args []string, out, diagnostics io.Writer) error {
	if len(args) == 0 {
		return misuse("say what to ask")
	}
	if !slices.Contains([]string{"state", "kept", "prepare", "env"}, args[0]) {
		return misuse(fmt.Sprintf("unknown question %q", args[0]))
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	name := flags.String("stack", "", "")
	url := flags.String("url", "", "")
	switch err := flags.Parse(args[1:]); {
	case err != nil:
		return misuse(err.Error())
	case flags.NArg() > 0 && args[0] != "prepare":
		return misuse(fmt.Sprintf("%q is too much", flags.Args()))
	case *name == "":
		return misuse("--stack NAME is needed")
	}
	if args[0] == "prepare" {
		values, err := contextOf(cdkFile, flags.Args())
		if err != nil {
			return err
		}
		return prepare(ctx, *name, values, out, diagnostics)
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("loading the AWS configuration: %w", err)
	}
	client := cloudformation.NewFromConfig(cfg)
	if args[0] == "state" {
		return state(ctx, client, *name, out, diagnostics)
	}
	said, err := outputs.Of(ctx, client, *name)
	switch {
	case err != nil:
		return err
	case args[0] == "kept":
		return kept(ctx, client, *name, said, out)
	default:
		return env(ctx, secretsmanager.NewFromConfig(cfg), said, *url, out)
	}
}
