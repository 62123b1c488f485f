package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"

	"github.com/longshore/longshore/internal/app"
)

// A VPC is the place where a function runs: the ids of subnets and security groups, from which AWS
// knows the VPC itself.
type VPC struct {
	Subnets        []string
	SecurityGroups []string `json:"security-groups"`
}

// checkVPC checks the VPC of the providers that need one.
func (s Settings) checkVPC(r *reader) {
	given := s.VPC.Subnets != nil || s.VPC.SecurityGroups != nil
	switch needed := s.InVPC != nil; {
	case needed && (s.VPC.Subnets == nil || s.VPC.SecurityGroups == nil):
		r.wrong("context subnets and security-groups: give both, since the provider %s is called inside a VPC: "+
			"ids of subnets and of security groups from which its servers are reached", strings.Join(s.InVPC, ", "))
	case given && !needed:
		r.wrong("context subnets and security-groups: leave them out, since no provider is called inside a VPC")
	}
}

// FunctionCalls is the name of the function that calls providers inside a VPC.
const FunctionCalls = "calls"

// Calls is the second deployment of the provisioner: inside the VPC, it only makes the calls that
// the provisioner and the reaper ask for. Calls is zero if no provider needs a VPC.
type Calls struct {
	ARN *string
	// Providers are the names of the providers that are called inside the VPC.
	Providers *string
}

// NewCalls makes the function if a provider needs it.
func NewCalls(scope constructs.Construct, s Settings) (c Calls) {
	if s.InVPC == nil {
		return c
	}
	c.Providers = new(strings.Join(s.InVPC, ","))
	function := NewFunction(scope, s, &FunctionProps{
		Name: FunctionCalls, Program: FunctionProvisioner, Description: "The calls of providers inside a VPC",
		Timeout: app.CallsTimeout, MemoryMB: 256, VPC: s.VPC,
		Environment: s.variables(s.InVPC, true, map[string]*string{app.EnvRole: new(app.RoleCalls), app.EnvInVPC: c.Providers}),
		Grants:      interfaces(),
	})
	c.ARN = function.FunctionArn()
	return c
}

// networkActions are the actions that Lambda needs to put a function into a VPC.
var networkActions = []string{
	"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces",
	"ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses",
}

// interfaces lets Lambda manage the network interfaces of the function, which it does with the
// function's role, and denies the same actions to the program. The condition distinguishes the two:
// only calls from a function's code carry the ARN of a function.
func interfaces() Grants {
	const reason = "Lambda makes and removes the function's network interfaces by this role. Their ids are not known before, " +
		"and the rights to look at them have no resources. The function itself is denied all of it."
	denied := allow("NotTheProgram", new("*"), networkActions...).
		when("Null", map[string]any{"lambda:SourceFunctionArn": "false"})
	denied[0].SetEffect(awsiam.Effect_DENY)
	return append(allowAll("Interfaces", reason, networkActions...), denied...)
}

// Calling returns the rights to call the function.
func (c Calls) Calling() Grants {
	if c.ARN == nil {
		return nil
	}
	return allow("Calls", c.ARN, "lambda:InvokeFunction")
}
