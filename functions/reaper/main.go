// Command reaper is the Lambda function that runs the scheduled sweep.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/deployed/reaper"
)

func main() { lambda.Start(deployed.ColdStart(reaper.New)) }
