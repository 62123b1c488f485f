// Package outputs defines the names of the stack's outputs, which the CDK app writes, and reads
// the outputs of a deployed stack.
package outputs

import "strings"

// Secrets returns the name of the output with the secrets of a provider's servers, by target. A
// stack without the provider has no such output.
func Secrets(provider string) string { return Title(provider) + "Secrets" }

// Title returns a provider's name as it is written in the names of outputs and statements.
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
	// Calls is the function inside a VPC, and InVPC names the providers that are called there.
	// A stack without such providers lacks both.
	Calls = "CallsFunctionArn"
	InVPC = "ProvidersInVPC"
	// AWSTargets holds the targets of AWS services, as the functions get them. A stack without
	// the provider cloudformation lacks it.
	AWSTargets = "AwsTargets"
	// DomainTarget is present only if the operator uses a domain of their own.
	DomainTarget = "DomainTarget"
)
