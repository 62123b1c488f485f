package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/provider/cloudformation/bootstrap"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

func newAWS(getenv func(string) string) *cobra.Command {
	c := &cobra.Command{Use: "aws", Short: "Prepare an AWS account for a broker's services, and print the rights that it needs"}
	c.AddCommand(newAWSBootstrap(), newAWSRights(getenv))
	return c
}

const (
	flagEmulated  = "emulated"
	usageEmulated = "leave out the parts of IAM that emulators lack; never for AWS itself"
)

// scope returns the prefix of the names of everything that the broker makes.
func (p whichBroker) scope() (plan.Scope, error) {
	if p.stack != "" {
		return plan.ScopeOf(p.stack), nil
	}
	return embedded.Scope(p.data)
}

func newAWSBootstrap() *cobra.Command {
	var p whichBroker
	var o bootstrap.Options
	c := &cobra.Command{
		Use: "bootstrap", Short: "Create what AWS services need in an account and region",
		Long: `Create what AWS services need in the account and the region that AWS_PROFILE,
AWS_REGION and AWS_ENDPOINT_URL lead to: one stack of CloudFormation with a bucket
for templates, and for each offering a role by which CloudFormation works and a
boundary for the principals of its bindings. Run it again after each change of
offerings; a run without a change does nothing. Resources of withdrawn offerings
stay, and all resources stay when the stack is removed: instances may need them
until they are deleted. The next run then takes them into a new stack. A missing
data folder is set up.

With --target, the account is not the broker's own: run the command with
credentials of that account. It then also makes a role for the broker, and prints
what to put into LONGSHORE_AWS_TARGETS.`,
		Example: `  longshore aws bootstrap
  AWS_PROFILE=production longshore aws bootstrap --target production --trust 111122223333`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if len(o.Trust) > 0 && o.Target == "" {
				return misused("--trust is for another account: name it by --target")
			}
			if o.Offered, err = offeringfiles.Load(p.offerings); err != nil {
				return err
			}
			if o.Scope, err = p.scope(); err != nil {
				return err
			}
			o.Say = func(format string, args ...any) { printf(c.ErrOrStderr(), format+"\n", args...) }
			did, err := bootstrap.Run(c.Context(), o)
			if err != nil {
				return fmt.Errorf("%w; what was made is kept: run the command again", err)
			}
			printPrepared(c.OutOrStdout(), did)
			return nil
		},
	}
	p.flags(c)
	c.Flags().BoolVar(&o.Emulated, flagEmulated, false, usageEmulated)
	c.Flags().StringVar(&o.Target, "target", "", "`NAME` that the broker gives this account, which is not its own")
	c.Flags().StringSliceVar(&o.Trust, "trust", nil,
		"`ACCOUNT` of the broker, 12 digits, or ARNs of its users and roles, with commas between them")
	return c
}

// printPrepared prints what was done, and what is left to do.
func printPrepared(out io.Writer, did bootstrap.Result) {
	said := "nothing has changed"
	if len(did.Made)+len(did.Changed) > 0 {
		said = fmt.Sprintf("%d resources are new, %d have changed", len(did.Made), len(did.Changed))
	}
	printf(out, "Account %s is prepared in %s for: %s.\nStack %s: %s.\n", did.Account, did.Region,
		strings.Join(did.Offerings, ", "), did.Stack, said)
	if len(did.Kept) > 0 {
		printf(out, "Kept, since instances may need it: %s.\n", strings.Join(did.Kept, ", "))
	}
	if len(did.Adopted) > 0 {
		printf(out, "Adopted, since they existed outside the stack: %s.\n", strings.Join(did.Adopted, ", "))
	}
	if did.Targets != nil {
		printf(out, "\nPut this target into LONGSHORE_AWS_TARGETS of the broker:\n\n%s\n\n"+
			"and let it assume the role: `longshore aws rights` prints the policy.\n", did.Targets)
	}
}

func newAWSRights(getenv func(string) string) *cobra.Command {
	var p whichBroker
	var part int
	var emulated bool
	c := &cobra.Command{
		Use: "rights", Short: "Print the IAM policy that a broker with --aws needs",
		Long: `Print the IAM policy to attach to the user or role by which ` + "`longshore serve --aws`" + `
works, in the account and the region that AWS_PROFILE and AWS_REGION lead to. It
names the roles of other accounts that LONGSHORE_AWS_TARGETS has. With several
targets they are more than IAM takes in one policy: attach each part that --part
prints. A missing data folder is set up.`,
		RunE: func(c *cobra.Command, _ []string) error {
			scope, err := p.scope()
			if err != nil {
				return err
			}
			targets, err := bootstrap.ParseTargets(app.EnvAWSTargets, getenv(app.EnvAWSTargets))
			if err != nil {
				return err
			}
			policies, err := bootstrap.Rights(c.Context(), scope, targets, emulated)
			if err != nil {
				return err
			}
			return printRights(c.OutOrStdout(), policies, part)
		},
	}
	p.whereabouts(c)
	c.Flags().BoolVar(&emulated, flagEmulated, false, usageEmulated)
	c.Flags().IntVar(&part, "part", 0, "`N` of the policies that the rights are spread over, from 1 on")
	return c
}

// printRights prints one of several policies, counted from 1; part 0 means the only one.
func printRights(out io.Writer, policies [][]byte, part int) error {
	switch n := len(policies); {
	case part < 0 || part > n:
		return misused("--part %d: the last part is %d", part, n)
	case part == 0 && n > 1:
		return misused("the rights are more than IAM takes in one policy: "+
			"make %d policies from what --part 1 to --part %d print, and attach them all", n, n)
	}
	printf(out, "%s\n", policies[max(part, 1)-1])
	return nil
}
