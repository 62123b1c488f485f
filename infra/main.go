// Command infra is the CDK app that deploys the broker on AWS: one stack, with a file for each
// concern. It owns the resources there and their rights, and needs the functions to be built (make
// functions). It does not know what the functions do; the names of their settings and the shape of
// their table and state machine come from the packages that use them.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	if err := synth(); err != nil {
		fmt.Fprintf(os.Stderr, "infra: %v\n", err)
		os.Exit(1)
	}
}

// warnOfUnknown warns about context values that nothing reads. They are not an error: other
// programs may have put theirs beside ours.
func warnOfUnknown(stack awscdk.Stack, given []string) {
	if names := unknown(given); len(names) > 0 {
		awscdk.Annotations_Of(stack).AddWarningV2(new("longshore:unknown"), new(fmt.Sprintf(
			"Context values that this stack does not know: %s. It knows: %s", strings.Join(names, ", "),
			strings.Join(contextNames(), ", "))))
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
	// The catalog belongs to this stack. Another stack may be synthesized from the same programs at
	// the same time, so the catalog is written beside a copy of them.
	code, err := os.MkdirTemp("", "longshore-functions-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(code) }()
	if err := os.CopyFS(code, os.DirFS(settings.Code)); err != nil {
		return fmt.Errorf("copying the functions: %w", err)
	}
	settings.Code = code
	lacking, err := WriteCatalog(settings)
	if err != nil {
		return err
	}
	stack := NewStack(root, settings)
	given, _ := root.Node().GetAllContext(nil).(map[string]any)
	warnOfUnknown(stack, slices.Collect(maps.Keys(given)))
	if lacking != "" {
		awscdk.Annotations_Of(stack).AddError(&lacking)
	}
	root.Synth(nil)
	return nil
}
