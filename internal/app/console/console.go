// Package console connects an operator's commands to a broker: it makes the consoles of both
// kinds of broker, and reaches a stack.
package console

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/adapters"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
)

// New completes the options of a console with those that are the same in every program, and returns the console.
func New(
	records *ledger.Ledger, offered *catalog.Catalog, all map[string]wired.Provider, o operator.Options,
) *operator.Console {
	o.Records, o.Catalog, o.ServiceOf = records, offered.Plan, offered.ServiceOf
	o.NewID, o.OperationTimeout = app.NewID, app.OperationTimeout
	o.Inventories, o.Servers = providers.Inventories(records, all), maps.Clone(all)
	maps.DeleteFunc(o.Servers, func(_ string, w wired.Provider) bool { return w.Reconciler == nil })
	return operator.New(o)
}

// Stack returns a link to a deployed broker, served in this process. It uses the caller's own
// rights: to describe the stack, to read, scan and write its table, to use its key, to start
// executions, and to list the providers' things.
func Stack(ctx context.Context, stack string, offered *catalog.Catalog) (operator.Link, error) {
	cfg, said, err := describe(ctx, stack)
	if err != nil {
		return nil, err
	}
	machine := said[outputs.StateMachine]
	if len(strings.Split(machine, ":")) < 6 || said[outputs.Table] == "" || said[outputs.Key] == "" ||
		said[outputs.Broker] == "" {
		return nil, fmt.Errorf("stack %q does not say which broker it is, or where its table, its key and its state machine "+
			"are: deploy it by this version", stack)
	}
	set := providers.FromOutputs(stack, said)
	p := deployed.Parts{
		Config: cfg, Log: slog.New(slog.DiscardHandler), Starter: sfn.NewFromConfig(cfg),
		Invoker: lambda.NewFromConfig(cfg), Getenv: func(name string) string { return set[name] },
		Offered: func() (*catalog.Catalog, error) { return offered, nil },
	}
	wired, err := providers.Wired(p)
	if err != nil {
		return nil, err
	}
	return New(p.Records(), offered, wired, operator.Options{
		Platforms: platforms.Names(deployed.NewSecret(cfg, said[outputs.Secret])), Names: adapters.Names(stack),
		Vault: p.Vault(), Whose: ledger.Identity{Deployment: stack, Broker: said[outputs.Broker]},
		Acts: acts.Acts{Now: app.Now, Start: p.Engine().Start}, Origin: said[outputs.URL],
	}).Call, nil
}

// Registrar returns the registrar of a deployed broker's platforms. It uses the caller's own
// rights: to describe the stack, and to read and write its secret.
func Registrar(ctx context.Context, stack string) (platforms.Registrar, error) {
	cfg, said, err := describe(ctx, stack)
	return deployed.NewSecret(cfg, said[outputs.Secret]), err
}

// describe reads the outputs of a stack, in the account that the SDK's settings lead to.
func describe(ctx context.Context, stack string) (cfg aws.Config, said map[string]string, err error) {
	if cfg, err = deployed.Configuration(ctx); err != nil {
		return cfg, nil, err
	}
	said, err = outputs.Of(ctx, cloudformation.NewFromConfig(cfg), stack)
	return cfg, said, err
}
