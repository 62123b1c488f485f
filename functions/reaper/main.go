// Command reaper is a Lambda function: the scheduled sweep.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore/longshore/internal/app"
)

func main() {
	ctx, log := context.Background(), slog.New(slog.NewJSONHandler(os.Stderr, nil))
	deployed, err := app.LoadDeployed(ctx, os.Getenv, log)
	if err != nil {
		fail(log, err)
	}
	handler, err := deployed.Reaper(ctx)
	if err != nil {
		fail(log, err)
	}
	lambda.Start(handler)
}

// fail ends a cold start that cannot become a working function.
func fail(log *slog.Logger, err error) {
	log.Error("the function cannot start", "error", err)
	os.Exit(1)
}
