// Command reaper is a Lambda function: the scheduled sweep.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore/longshore/internal/app"
)

func main() { lambda.Start(app.ColdStart(app.Deployed.Reaper)) }
