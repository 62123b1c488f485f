// Command provisioner is a Lambda function: one step of one operation, called by
// Step Functions; deployed once more into a VPC, only the calls of providers.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/deployed/provisioner"
)

func main() { lambda.Start(deployed.ColdStart(provisioner.New)) }
