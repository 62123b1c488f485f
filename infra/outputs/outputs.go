// Package outputs owns the names of what the stack says of itself, for the CDK
// app that writes it and for those who ask a deployed stack, and reads them.
// What the values are is left to both.
package outputs

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
	// DomainTarget is there only with a domain of the operator's own.
	DomainTarget = "DomainTarget"
)
