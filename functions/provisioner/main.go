// Command provisioner is the Lambda function that runs one step of one operation, called by Step
// Functions. Deployed a second time, into a VPC, it only makes the calls of providers.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/deployed/provisioner"
)

func main() { lambda.Start(deployed.ColdStart(provisioner.New)) }
