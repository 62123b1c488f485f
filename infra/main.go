// Command infra is the CDK app that puts the broker on AWS: one stack, with a
// file for each concern. It owns what exists there and who may do what, and
// needs the functions built (make functions). What the functions do is left
// to them; the names of their settings and the shape of their table and state
// machine come from the rooms that use them.
package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	if err := synth(); err != nil {
		fmt.Fprintf(os.Stderr, "infra: %v\n", err)
		os.Exit(1)
	}
}

func synth() error {
	defer jsii.Close()
	root := awscdk.NewApp(nil)
	settings, err := ReadSettings(func(name string) any { return root.Node().TryGetContext(&name) })
	if err != nil {
		return err
	}
	if err := CheckCode(settings.Code, settings.Architecture); err != nil {
		return err
	}
	if err := WriteCatalog(settings); err != nil {
		return err
	}
	NewStack(root, settings)
	root.Synth(nil)
	return nil
}
