package main

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/outputs"
)

// handler is the name that a provided runtime requires of the program.
const handler = "bootstrap"

// FunctionProps describes a function.
type FunctionProps struct {
	// Name is the name of the function's folder, unless Program names another folder.
	Name, Program, Description string
	Timeout                    time.Duration
	// MemoryMB also determines the share of a processor.
	MemoryMB int
	// Environment has the variables of the function; nil values are left out.
	Environment map[string]*string
	// Grants are all rights of the function, besides the right to write its log.
	Grants Grants
	// NoRetry drops an event if the function fails on it, or if it has to wait.
	NoRetry bool
	// VPC is the VPC that the function runs in; the zero VPC for none.
	VPC VPC
}

// NewFunction makes a function, its role and its log.
func NewFunction(scope constructs.Construct, s Settings, props *FunctionProps) awslambda.Function {
	stack := awscdk.Stack_Of(scope)
	scope = subscope(scope, outputs.Title(props.Name)+"Function")
	log := awslogs.NewLogGroup(scope, new("Log"), &awslogs.LogGroupProps{RemovalPolicy: awscdk.RemovalPolicy_DESTROY})
	log.Node().DefaultChild().(awslogs.CfnLogGroup).SetRetentionInDays(jsii.Number(s.LogDays))
	tracing := s.Tracing
	if props.VPC.Subnets != nil {
		tracing = false // such a function has no rights, and no way out
	}
	writing := allow("Log", log.LogGroupArn(), "logs:CreateLogStream", "logs:PutLogEvents")
	role := NewRole(scope, "Everything that the function "+props.Name+" may do",
		awsiam.NewServicePrincipal(new("lambda.amazonaws.com"), nil), "Grants", writing, tracing.Grants(), props.Grants)
	environment := map[string]*string{
		envAccount: stack.Account(), app.EnvStack: &s.Stack, app.EnvBroker: identity(stack, s.Broker),
	}
	maps.Copy(environment, props.Environment)
	maps.DeleteFunc(environment, func(_ string, value *string) bool { return value == nil })
	function := &awslambda.FunctionProps{
		Description:   &props.Description,
		Runtime:       awslambda.Runtime_PROVIDED_AL2023(),
		Handler:       new(handler),
		Code:          awslambda.Code_FromAsset(new(filepath.Join(s.Code, cmp.Or(props.Program, props.Name))), nil),
		Architecture:  awslambda.Architecture_Custom(&s.Architecture, nil),
		Timeout:       awscdk.Duration_Millis(jsii.Number(props.Timeout.Milliseconds())),
		MemorySize:    jsii.Number(props.MemoryMB),
		Environment:   &environment,
		Role:          role,
		LogGroup:      log,
		LoggingFormat: awslambda.LoggingFormat_JSON,
	}
	if n, ok := s.Concurrency[props.Name]; ok {
		function.ReservedConcurrentExecutions = jsii.Number(n)
	}
	if props.NoRetry {
		function.RetryAttempts, function.MaxEventAge = jsii.Number(0), awscdk.Duration_Minutes(jsii.Number(1))
	}
	made := awslambda.NewFunction(scope, new("Function"), function)
	resource := made.Node().DefaultChild().(awslambda.CfnFunction)
	if tracing {
		resource.SetTracingConfig(&awslambda.CfnFunction_TracingConfigProperty{Mode: new("Active")})
	}
	if props.VPC.Subnets != nil {
		resource.SetVpcConfig(&awslambda.CfnFunction_VpcConfigProperty{
			SubnetIds: jsii.Strings(props.VPC.Subnets...), SecurityGroupIds: jsii.Strings(props.VPC.SecurityGroups...),
		})
	}
	return made
}

// CheckCode checks the programs in the folders of the functions: a program that is missing, or was
// built for another architecture, would be noticed only at the first call.
func CheckCode(code, architecture string) error {
	want := map[string]elf.Machine{ARM64: elf.EM_AARCH64, X8664: elf.EM_X86_64}[architecture]
	var problems []error
	for _, name := range functionNames {
		path := filepath.Join(code, name, handler)
		program, err := elf.Open(path)
		if err != nil {
			problems = append(problems, fmt.Errorf("reading function %q: %w", name, err))
			continue
		}
		if got := program.Machine; got != want {
			problems = append(problems, fmt.Errorf("function %q is built for %v, not for %s", name, got, architecture))
		}
		if err := program.Close(); err != nil {
			problems = append(problems, fmt.Errorf("reading function %q: %w", name, err))
		}
	}
	if problems != nil {
		problems = append(problems, fmt.Errorf("run `make functions ARCHITECTURE=%s`", architecture))
	}
	return errors.Join(problems...)
}
