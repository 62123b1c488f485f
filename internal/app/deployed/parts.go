// Package deployed holds what the three Lambda functions share: their parts, how they start, and the
// secret with the platforms' credentials. Each function has a package of its own below this one.
package deployed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/records/vault/kms"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

// Parts are the parts that a function is made of.
type Parts struct {
	Config aws.Config
	Getenv func(string) string
	Log    *slog.Logger
	// Metrics are written to the function's log; nil for none.
	Metrics *metrics.Metrics
	// Offered returns the catalog; nil in a function that looks up no plan.
	Offered func() (*catalog.Catalog, error)
	// Lists is set in a function that lists the providers' things, and changes nothing.
	Lists bool
	// Starter and Invoker reach Step Functions and the provisioner.
	Starter stepfunctions.Starter
	Invoker stepfunctions.Invoker
}

// Configuration reads the SDK's usual settings.
func Configuration(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		err = fmt.Errorf("loading the AWS configuration: %w", err)
	}
	return cfg, err
}

// ColdStart makes a function's handler. If that fails, it logs the reason and ends the process:
// a function that lacks a setting must not answer anything.
func ColdStart[H any](handler func(context.Context, Parts) (H, error)) H {
	ctx, log := context.Background(), slog.New(logs.Handler{Handler: slog.NewJSONHandler(os.Stderr, nil)})
	cfg, err := Configuration(ctx)
	if err == nil {
		var h H
		if h, err = handler(ctx, Parts{
			Config: cfg, Getenv: os.Getenv, Log: log, Offered: sync.OnceValues(openCatalog),
			Metrics: metrics.New(cmp.Or(os.Getenv(app.EnvStack), "longshore"), os.Stdout, app.Now),
			Starter: sfn.NewFromConfig(cfg), Invoker: lambda.NewFromConfig(cfg),
		}); err == nil {
			return h
		}
	}
	log.Error("the function cannot start", "error", err)
	os.Exit(1)
	panic("unreachable")
}

// Required refuses to start without settings; the error names all that are missing.
func (p Parts) Required(names ...string) error {
	var missing []error
	for _, name := range names {
		if p.Getenv(name) == "" {
			missing = append(missing, advice.For(name, "is not set",
				"deploy the function with its infrastructure, which sets it"))
		}
	}
	return errors.Join(missing...)
}

// Records returns the ledger of the stack's table.
func (p Parts) Records() *ledger.Ledger {
	return ledger.New(dynamo.New(dynamodb.NewFromConfig(p.Config), p.Getenv(app.EnvTable)), app.NewID)
}

// Vault returns the vault that seals with the stack's key.
func (p Parts) Vault() *kms.Vault {
	return kms.New(awskms.NewFromConfig(p.Config), p.Getenv(app.EnvKey))
}

// Engine returns the engine over the stack's state machine and provisioner.
func (p Parts) Engine() *stepfunctions.Engine {
	return stepfunctions.New(p.Starter, p.Invoker, stepfunctions.Options{
		StateMachine: p.Getenv(app.EnvStateMachine), Provisioner: p.Getenv(app.EnvProvisioner), Log: p.Log,
	})
}

// Recovered turns a panic into an error. Otherwise Lambda would log the panic's value, and Step Functions would keep it.
func (p Parts) Recovered(ctx context.Context, err *error) {
	if v := recover(); v != nil {
		*err = logs.Panicked(ctx, p.Log, v)
	}
}

// openCatalog opens the compiled catalog that was deployed with this program.
func openCatalog() (*catalog.Catalog, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the compiled catalog: %w", err)
	}
	path := filepath.Join(filepath.Dir(program), app.CatalogFile)
	compiled, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the compiled catalog, which is deployed with the function: %w", err)
	}
	c, err := catalog.Open(compiled)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
