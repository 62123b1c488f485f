package app

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/socket"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/records/vault/kms"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

// newConsole makes a console of what o says; all else is the same in every program.
func newConsole(
	records *ledger.Ledger, offered *catalog.Catalog, wired map[string]wired.Provider, o operator.Options,
) *operator.Console {
	o.Records, o.Catalog, o.ServiceOf = records, offered.Plan, offered.ServiceOf
	o.NewID, o.OperationTimeout = newID, operationTimeout
	o.Inventories, o.Servers = inventories(records, wired), servers(wired)
	return operator.New(o)
}

// StackConsole leads to a deployed broker, in this process. It uses the caller's own rights: to describe
// the stack, to read, scan and write its table, to use its key, to start executions,
// and to list what providers hold.
func StackConsole(ctx context.Context, stack string, offered *catalog.Catalog) (operator.Link, error) {
	cfg, said, err := describe(ctx, stack)
	if err != nil {
		return nil, err
	}
	machine := said[outputs.StateMachine]
	parts := strings.Split(machine, ":")
	if len(parts) < 6 || said[outputs.Table] == "" || said[outputs.Key] == "" || said[outputs.Broker] == "" {
		return nil, fmt.Errorf("stack %q does not say which broker it is, or where its table, its key and its state machine are: deploy it by "+
			"this version", stack)
	}
	engine := stepfunctions.New(sfn.NewFromConfig(cfg), nil, stepfunctions.Options{StateMachine: machine})
	records := ledger.New(dynamo.New(dynamodb.NewFromConfig(cfg), said[outputs.Table], dynamo.Options{}), newID)
	set := fromOutside(stack, said)
	d := Deployed{
		Config: cfg, Log: slog.New(slog.DiscardHandler), Invoker: lambda.NewFromConfig(cfg),
		Getenv:  func(name string) string { return set[name] },
		Offered: func() (*catalog.Catalog, error) { return offered, nil },
	}
	wired, err := d.wired()
	if err != nil {
		return nil, err
	}
	sealing := kms.New(awskms.NewFromConfig(cfg), said[outputs.Key])
	return newConsole(records, offered, wired, operator.Options{
		Platforms: platformNames(secretRegistrar{secretsmanager.NewFromConfig(cfg), said[outputs.Secret]}), Names: namesOf(stack),
		Vault: sealing, Whose: ledger.Identity{Deployment: stack, Broker: said[outputs.Broker]}, Now: now, Start: engine.Start,
	}).Call, nil
}

// fileControl is the socket through which a running broker is asked.
const fileControl = "control.sock"

// FolderConsole is for the embedded broker over a data folder: a running broker is
// asked, otherwise the folder is opened. Close it in the end. If lost is not nil, lost
// records and a lost key are no error: what is left of them is set aside, new ones are
// begun, and lost is told at once what a rebuild cannot bring back. The catalog is
// loaded, and providers are set up by the environment, only if no broker runs.
func FolderConsole(
	ctx context.Context, dir string, load func() (*catalog.Catalog, error), getenv func(string) string, lost func(what string),
) (_ operator.Link, closing func(), _ error) {
	if _, err := markerOf(dir); err != nil {
		return nil, nil, err
	}
	if running := socket.Dial(filepath.Join(dir, fileControl)); running.Answers(ctx) {
		return running.Call, func() {}, nil
	}
	offered, err := load()
	if err != nil {
		return nil, nil, err
	}
	open := lookInto
	if lost != nil {
		open = func(dir string) (*folder, error) { return openFolder(dir, true) }
	}
	f, err := open(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, what := range f.damaged {
		lost(what)
	}
	console, wired, err := f.console(offered, getenv, lost)
	if err != nil {
		f.close()
		return nil, nil, err
	}
	return console.Call, func() {
		closeAll(wired)
		f.close()
	}, nil
}

// console makes the console of a folder on which no broker runs.
func (f *folder) console(offered *catalog.Catalog, getenv func(string) string, lost func(what string)) (
	_ *operator.Console, wired map[string]wired.Provider, err error,
) {
	var left map[string]error
	if !f.toRead { // providers write, and nothing can be done with what they have
		wired, left, err = wiredIn(builders(), f, offered, getenv, slog.New(slog.DiscardHandler))
	}
	if err != nil {
		return nil, nil, err
	}
	console := newConsole(ledger.New(f.records, newID), offered, wired, operator.Options{
		Vault: f.vault, Whose: f.whose(), Now: f.clock.Now, Lost: lost, Damaged: f.damaged, Rebuilt: f.rebuilt,
		Platforms: platformNames(folderRegistrar{f.dir}), Names: namesOf(f.mark.Broker),
	})
	for name, why := range left {
		if slices.Contains(f.mark.Providers, name) {
			console.Inventories[name] = absent{why} // otherwise what it holds would seem to be gone
		}
	}
	return console, wired, nil
}
