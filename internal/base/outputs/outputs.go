// Package outputs has the names of the stack's outputs, which the CDK app writes, and reads those of a deployed
// stack.
package outputs

import "strings"

// Secrets is the output with the secrets of a provider's servers, by targets. A stack without the provider lacks
// it.
func Secrets(provider string) string { return Title(provider) + "Secrets" }

// Title is a provider's name in the names of outputs and statements.
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
	// Calls is the function inside a VPC, and InVPC names the providers that it calls. A stack without such
	// providers lacks both.
	Calls = "CallsFunctionArn"
	InVPC = "ProvidersInVPC"
	// AWSTargets are the targets of AWS services, as the functions are told. A stack without the provider
	// cloudformation lacks it.
	AWSTargets = "AwsTargets"
	// DomainTarget is an output only with a domain of the operator's own.
	DomainTarget = "DomainTarget"
)
