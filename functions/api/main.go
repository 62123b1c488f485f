// Command api is the Lambda function that serves the broker's HTTP API behind API Gateway.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/deployed/api"
)

func main() { lambda.Start(deployed.ColdStart(api.New)) }
