// Command provisioner is a Lambda function: one step of one operation, called by Step Functions.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore/longshore/internal/app"
)

func main() { lambda.Start(app.ColdStart(app.Deployed.Provisioner)) }
