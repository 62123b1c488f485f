// Command api is a Lambda function: the broker's HTTP API behind API Gateway.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore/longshore/internal/app"
)

func main() { lambda.Start(app.ColdStart(app.Deployed.API)) }
