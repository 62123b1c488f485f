// Package outputs owns the names of what the stack says of itself, for the CDK
// app that writes it and for those who ask a deployed stack, and reads them.
// What the values are is left to both.
package outputs

import "strings"

// Secrets is the output that names the secrets of a provider's servers, by its
// targets. It is there only with such a provider.
func Secrets(provider string) string { return Title(provider) + "Secrets" }

// Title is a provider's name as it stands in names of outputs and statements.
func Title(provider string) string { return strings.ToUpper(provider[:1]) + provider[1:] }

// The stack's outputs.
const (
	API    = "ApiId"
	URL    = "BrokerUrl"
	Secret = "SecretId"
	Table  = "TableName"
	Key    = "KeyArn"
	// Broker is the broker's own identity.
	Broker = "Broker"
	// StateMachine drives operations.
	StateMachine = "StateMachineArn"
	DeadLetters  = "DeadLettersUrl"
	Register     = "Register"
	// Calls is the function inside a VPC, and InVPC names the providers that it
	// calls; they are there only where a provider needs one.
	Calls = "CallsFunctionArn"
	InVPC = "ProvidersInVPC"
	// AWSTargets are where AWS services are made, as the functions are told it; it is
	// there only with the provider cloudformation.
	AWSTargets = "AwsTargets"
	// DomainTarget is there only with a domain of the operator's own.
	DomainTarget = "DomainTarget"
)
