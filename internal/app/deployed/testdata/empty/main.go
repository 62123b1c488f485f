// Command empty is the least that a Lambda function in Go can be: what the
// broker's functions are measured against.
package main

import "github.com/aws/aws-lambda-go/lambda"

func main() { lambda.Start(func() error { return nil }) }
