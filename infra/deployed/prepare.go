package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/provider/cloudformation/bootstrap"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// This program runs in the folder infra, like the CDK.
const (
	repository = ".."       // the folder to which paths in context values are relative
	cdkFile    = "cdk.json" // has further context values
)

// contextOf reads context values as the CDK does: from its file first, and then from its command line.
func contextOf(file string, words []string) (map[string]string, error) {
	values := map[string]string{}
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		var written struct{ Context map[string]any }
		if err := json.Unmarshal(raw, &written); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		for name, value := range written.Context {
			values[name] = fmt.Sprint(value)
		}
	}
	for i := 0; i < len(words); i++ {
		pair, joined := strings.CutPrefix(words[i], "--context=")
		if !joined && (words[i] == "-c" || words[i] == "--context") && i+1 < len(words) {
			i++
			pair, joined = words[i], true
		}
		if name, value, ok := strings.Cut(pair, "="); joined && ok {
			values[name] = value
		}
	}
	return values, nil
}

// prepare prepares the account and the region of a stack for AWS services, if the stack is to offer
// these. It makes a separate stack, which stays as long as an instance may need it, even without
// the offering of the instance and without the broker's stack.
func prepare(ctx context.Context, stack string, values map[string]string, out, diagnostics io.Writer) error {
	const on, withdrawn = "true", "withdrawn"
	if state := values[app.ProviderCloudFormation]; state != on && state != withdrawn {
		return nil
	}
	own := values["offerings"]
	if own != "" && !filepath.IsAbs(own) {
		own = filepath.Join(repository, own)
	}
	all, err := offeringfiles.Load(own)
	if err != nil {
		return err
	}
	did, err := bootstrap.Run(ctx, bootstrap.Options{
		Scope: plan.ScopeOf(stack), Offered: all, Emulated: values["cloudformation-emulator"] != "",
		Say: func(format string, args ...any) { _, _ = fmt.Fprintf(diagnostics, format+"\n", args...) },
	})
	if err != nil {
		return fmt.Errorf("preparing the account for AWS services: %w; what was made is kept: run the command again", err)
	}
	_, err = fmt.Fprintf(out,
		"The account is prepared for AWS services by the stack %s: %d resources are new, %d have changed.\n",
		did.Stack, len(did.Made), len(did.Changed))
	return err
}
