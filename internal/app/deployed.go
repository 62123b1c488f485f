package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/gateway"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/front/rates"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/records/vault/kms"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/stepfunctions"
	"github.com/longshore/longshore/internal/work/worker"
)

// Times of the functions, for whoever deploys them.
const (
	// APITimeout is below the 29 s that API Gateway waits, so that no request
	// outlives its answer. A request's own time ends a second before.
	APITimeout = 28 * time.Second
	// ProvisionerTimeout is when a step is certainly dead.
	ProvisionerTimeout = time.Minute
	ReaperTimeout      = time.Minute
	// sweepLimit ends a sweep with time left to record what it did. sweepLease runs out
	// only when its holder is certainly dead.
	sweepLimit = ReaperTimeout - 10*time.Second
	sweepLease = ReaperTimeout + 30*time.Second
)

// A Deployed is what the three functions are made of on AWS.
type Deployed struct {
	Config aws.Config
	Getenv func(string) string
	Log    *slog.Logger
	// Metrics are written to the function's log; nil for none.
	Metrics *metrics.Metrics
	// Offered gives the catalog; nil in a function that looks up no plan.
	Offered func() (*catalog.Catalog, error)
	// lists is set in a function that lists what providers hold, and changes nothing.
	lists bool
	// Starter and Invoker reach Step Functions and the provisioner.
	Starter stepfunctions.Starter
	Invoker stepfunctions.Invoker
}

// LoadDeployed reads the function's AWS configuration.
func LoadDeployed(ctx context.Context, getenv func(string) string, log *slog.Logger) (Deployed, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return Deployed{}, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	counts := metrics.New(cmp.Or(getenv(EnvStack), "longshore"), os.Stdout, now)
	return Deployed{
		Config: cfg, Getenv: getenv, Log: log, Metrics: counts, Offered: sync.OnceValues(openCatalog),
		Starter: sfn.NewFromConfig(cfg), Invoker: lambda.NewFromConfig(cfg),
	}, nil
}

// ColdStart makes a function's handler. If that fails, it logs why and ends the
// process: a function without a setting must not answer anything.
func ColdStart[H any](handler func(Deployed, context.Context) (H, error)) H {
	ctx, log := context.Background(), slog.New(logs.Handler{Handler: slog.NewJSONHandler(os.Stderr, nil)})
	d, err := LoadDeployed(ctx, os.Getenv, log)
	if err == nil {
		var h H
		if h, err = handler(d, ctx); err == nil {
			return h
		}
	}
	log.Error("the function cannot start", "error", err)
	os.Exit(1)
	panic("unreachable")
}

// required reads settings that must be set; the error names all that are missing.
func (d Deployed) required(names ...string) (map[string]string, error) {
	values := map[string]string{}
	var missing []error
	for _, name := range names {
		if values[name] = d.Getenv(name); values[name] == "" {
			missing = append(missing, advice.For(name, "is not set",
				"deploy the function with its infrastructure, which sets it"))
		}
	}
	return values, errors.Join(missing...)
}

func (d Deployed) ledger(table string) *ledger.Ledger {
	store := dynamo.New(dynamodb.NewFromConfig(d.Config), table, dynamo.Options{})
	return ledger.New(store, newID)
}

// API is the handler of functions/api. It has no access to what providers make, nor to
// IAM: all it does in the cloud is to start the provisioner.
func (d Deployed) API(ctx context.Context) (gateway.Handler, error) {
	set, err := d.required(EnvTable, EnvKey, EnvSecret, EnvStateMachine, EnvProvisioner, EnvBroker)
	if err != nil {
		return nil, err
	}
	offered, err := d.Offered()
	if err != nil {
		return nil, err
	}
	bounds, err := retryAfter(d.Getenv)
	if err != nil {
		return nil, err
	}
	perSecond, err := platformRate(d.Getenv)
	if err != nil {
		return nil, err
	}
	secret := secretRegistrar{secretsmanager.NewFromConfig(d.Config), set[EnvSecret]}
	known, err := platforms.NewKept(ctx, secret.Registry, now, d.Log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvSecret, err)
	}
	engine := stepfunctions.New(d.Starter, d.Invoker, stepfunctions.Options{
		StateMachine: set[EnvStateMachine], Provisioner: set[EnvProvisioner], Log: d.Log,
	})
	sealing := kms.New(awskms.NewFromConfig(d.Config), set[EnvKey])
	decides := newBroker(broker.Options{
		Identity: set[EnvBroker], Records: d.ledger(set[EnvTable]), Catalog: offered, Vault: sealing, Engine: engine, Now: now,
		Log: d.Log, Metrics: d.Metrics,
	}, bounds)
	server := osb.New(osb.Options{
		Broker: decides, Platforms: known, Throttle: rates.New(perSecond, now), Offerings: offered.Offerings, Now: now,
		NewID: newID, Log: d.Log,
		Metrics: d.Metrics,
	})
	return gateway.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(w, r.WithContext(kms.Together(r.Context())))
	}), d.Log), nil
}

// inventories list what the providers hold, without targets that were restored or that
// another broker changes.
func inventories(records *ledger.Ledger, providers map[string]wired.Provider) map[string]provider.Inventory {
	holds := map[string]provider.Inventory{}
	for name, w := range providers {
		if w.Inventory == nil { // it holds nothing
			continue
		}
		holds[name] = wired.Guard(w.Inventory, func(ctx context.Context, identity string) (target.Known, error) {
			known, err := records.Epoch(ctx, name, identity)
			return target.Known{Epoch: target.Epoch{Line: known.Line, Count: known.Count, Mark: known.Mark},
				Reserved: known.Reserved}, err
		})
	}
	return holds
}

// servers are the providers whose targets can be restored.
func servers(providers map[string]wired.Provider) map[string]wired.Provider {
	providers = maps.Clone(providers)
	maps.DeleteFunc(providers, func(_ string, w wired.Provider) bool { return w.Reconciler == nil })
	return providers
}

// A Provisioner does the steps that Step Functions, or the API, asks for.
type Provisioner func(ctx context.Context, in stepfunctions.Input) (stepfunctions.Output, error)

// Provisioner is the handler of functions/provisioner.
func (d Deployed) Provisioner(context.Context) (Provisioner, error) {
	set, err := d.required(EnvTable, EnvKey)
	if err != nil {
		return nil, err
	}
	providers, err := d.wired()
	if err != nil {
		return nil, err
	}
	offered, err := d.Offered()
	if err != nil {
		return nil, err
	}
	steps := worker.New(worker.Options{
		Records: d.ledger(set[EnvTable]), Vault: kms.New(awskms.NewFromConfig(d.Config), set[EnvKey]), Plans: offered,
		Providers: providers,
		Now:       now, NewID: newID, Log: d.Log, Metrics: d.Metrics, HardTimeout: ProvisionerTimeout,
	})
	return func(ctx context.Context, in stepfunctions.Input) (_ stepfunctions.Output, err error) {
		defer d.recovered(ctx, &err)
		ref, err := in.Ref()
		if err != nil {
			return stepfunctions.Output{}, err
		}
		outcome, err := steps.Drive(kms.Together(ctx), ref, sleepUntil(in.Until))
		if err != nil {
			return stepfunctions.Output{}, err
		}
		return stepfunctions.Answer(in, outcome, now())
	}, nil
}

// sleepUntil waits, but not past the time at which the caller gives up.
func sleepUntil(until time.Time) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		if !until.IsZero() && now().Add(d).After(until) {
			return context.DeadlineExceeded
		}
		return waiting.For(ctx, d)
	}
}

// Reaper is the handler of functions/reaper.
func (d Deployed) Reaper(context.Context) (func(ctx context.Context) (reaper.Report, error), error) {
	set, err := d.required(EnvTable, EnvStateMachine, EnvStack, EnvBroker)
	if err != nil {
		return nil, err
	}
	dryRun, err := flagIn(d.Getenv, EnvReaperDryRun)
	if err != nil {
		return nil, err
	}
	d.Offered, d.lists = nil, true // it looks no plan up
	providers, err := d.wired()
	if err != nil {
		return nil, err
	}
	records := d.ledger(set[EnvTable])
	engine := stepfunctions.New(d.Starter, d.Invoker, stepfunctions.Options{StateMachine: set[EnvStateMachine], Log: d.Log})
	sweeper := reaper.New(reaper.Options{
		Records: records, Start: engine.Start, Now: now, NewID: newID,
		OperationTimeout: operationTimeout, Lease: sweepLease, Log: d.Log,
		Inventory: inventory(records, ledger.Identity{Deployment: set[EnvStack], Broker: set[EnvBroker]}, dryRun, providers),
	})
	return func(ctx context.Context) (_ reaper.Report, err error) {
		defer d.recovered(ctx, &err)
		ctx, cancel := context.WithTimeout(ctx, sweepLimit)
		defer cancel()
		report, err := sweeper.Sweep(ctx)
		logSweep(d.Log, report, err)
		countSweep(d.Metrics, report)
		return report, err
	}, nil
}

// recovered turns a panic into an error: Lambda would log its value, and Step Functions
// would keep it.
func (d Deployed) recovered(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		*err = logs.Panicked(ctx, d.Log, p)
	}
}

// countSweep writes the metrics of a sweep. A sweep that found nothing writes none:
// CloudWatch bills a metric for each hour in which it is written.
func countSweep(m *metrics.Metrics, r reaper.Report) {
	if r.Busy {
		return
	}
	if due := r.Redriven + r.Overdue; due > 0 {
		m.Write(nil, nil, metrics.Value{Name: metrics.PastDue, N: float64(due)})
	}
	if r.Halted {
		m.Write(nil, nil, metrics.Value{Name: metrics.Halted, N: 1})
	}
	if r.Unreached {
		m.Write(nil, nil, metrics.Value{Name: metrics.Trouble, N: 1})
	}
	for what, n := range map[string]int{
		"redriven": r.Redriven, "overdue": r.Overdue, "reclaimed": r.Reclaimed, "looks": r.Looks,
		"orphans": r.Orphans + r.Ended, "quarantined": r.Quarantined, "released": r.Released, "dropped": r.Dropped,
		"faults": r.Faults,
	} {
		if n > 0 {
			m.Write(map[string]string{metrics.DimensionWhat: what}, nil, metrics.Value{Name: metrics.Reaped, N: float64(n)})
		}
	}
}
