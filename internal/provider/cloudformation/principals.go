package cloudformation

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
)

// openPrincipals returns a function that opens the principals in a target, once its account is
// known.
func openPrincipals(o Options, config aws.Config) func(plan.Location) principals {
	return func(who plan.Location) principals {
		return &principal.Keeper{
			IAM: principal.NewIAM(config), Prover: principal.NewProver(config, o.Now), Scope: o.Scope, Broker: o.Broker,
			Now: o.Now, Log: o.Log,
			Boundary: func(offering string) string {
				return o.Scope.BoundaryARN(who, offering)
			},
		}
	}
}
