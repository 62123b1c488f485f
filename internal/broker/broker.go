// Package broker decides on requests: whether an operation may begin, whether a request repeats an
// earlier one, and how an operation stands. It needs records, the catalog, a vault and a workflow
// engine. Package osb speaks HTTP, and the providers call the cloud; the broker does neither.
package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// Records are the methods of the ledger that the broker needs; the ledger documents them.
type Records interface {
	Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error)
	Pointer(ctx context.Context, platform, binding string) (lifecycle.Pointer, error)
	PastOperation(ctx context.Context, id string, now time.Time) (lifecycle.PastOperation, error)
	Commit(ctx context.Context, changes ...ledger.Change) error
}

// Catalog holds the methods of the catalog that the broker needs; the catalog documents them.
type Catalog interface {
	Offering(serviceID string) (catalog.Offering, bool)
	Plan(serviceID, planID string) (catalog.Offering, catalog.Plan, bool)
	Check(v catalog.Verb, serviceID, planID string, parameters json.RawMessage) error
	CheckResult(serviceID, planID string, result, given json.RawMessage) error
}

// These bound Retry-After unless the options give other bounds.
const (
	MinRetryAfter = time.Second
	MaxRetryAfter = time.Minute
)

// Options configure a Broker.
type Options struct {
	// Identity identifies the broker; everything that the broker makes carries it.
	Identity string
	Records  Records
	Catalog  Catalog
	Vault    vault.Vault
	// Table seals values that may be lost, under the table's data key.
	Table     vault.Vault
	Engine    workflow.Engine
	Now       func() time.Time
	NewID     func() string // a new operation id of lifecycle.OperationIDLength
	NewSecret func() []byte // 32 random bytes
	// Dashboard returns the address of the broker's own page about an instance, for offerings
	// without a dashboard of their own; nil if there are no such pages.
	Dashboard func(ctx context.Context, instance lifecycle.Key) string
	Log       *slog.Logger
	Metrics   *metrics.Metrics
	// SynchronousWait is how long a request waits for synchronous work; Waits overrides it for a
	// provider. Both end well before the platform, or a proxy in front of the broker, gives up (NFR-01).
	SynchronousWait time.Duration
	Waits           map[string]time.Duration
	// RecordsTimeout is how long a request may take to read, decide and write before it is
	// answered with an error. Zero for the default.
	RecordsTimeout time.Duration
	// OperationTimeout is the deadline of operations on plans that have no
	// maximum_polling_duration.
	OperationTimeout time.Duration
	// MinRetryAfter and MaxRetryAfter bound the Retry-After of answers; zero for the defaults.
	MinRetryAfter, MaxRetryAfter time.Duration
}

// A Broker answers requests. It is stateless.
type Broker struct{ Options }

// The default times of a request. Together with the wait for synchronous work, they end before
// the platform gives up (NFR-01).
const (
	RecordsTimeout = 5 * time.Second
	// startTimeout is how long a request waits for an operation to be started.
	startTimeout = 3 * time.Second
	// TimeToAnswer is the part of a request's time that remains when it stops waiting. In this
	// time it records that the work goes on, and answers.
	TimeToAnswer = 3 * time.Second
	// losableShare is a divisor of RecordsTimeout: each sealing of a value that may be lost
	// takes at most that part of it. A request has two such sealings.
	losableShare = 5
)

// New returns a broker with the options.
func New(o Options) *Broker {
	o.MinRetryAfter = cmp.Or(o.MinRetryAfter, MinRetryAfter)
	o.MaxRetryAfter = cmp.Or(o.MaxRetryAfter, MaxRetryAfter)
	o.RecordsTimeout = cmp.Or(o.RecordsTimeout, RecordsTimeout)
	return &Broker{Options: o}
}

// A Caller is the platform that sends a request, together with the user for whom it acts.
type Caller struct {
	Platform string // the platform's immutable id
	// View is the part of the catalog that the platform may see. The platform's instances of
	// other parts go on working (CAT-28).
	View     catalog.View
	Asker    lifecycle.Asker
	Identity json.RawMessage // the asker's identity (OID-02): an object in clear
	Received time.Time       // when the request arrived
	// AcceptsIncomplete says that the client permits a 202, in an API version that has the member.
	AcceptsIncomplete bool
}

// key names one of the caller's instances or, with the id of a binding, that binding.
func (c Caller) key(instance, binding string) lifecycle.Key {
	return lifecycle.Key{Platform: c.Platform, Instance: instance, Binding: binding}
}

// limited bounds the time for records: a store that hangs must not use up the whole time of a request.
func (b *Broker) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, b.RecordsTimeout)
}

// start returns the Start of an operation on a plan; of a plan that has left the catalog only
// the id is known. The asker's identity is recorded sealed, and of the parameters only the names.
func (b *Broker) start(
	ctx context.Context, c Caller, key lifecycle.Key, plan catalog.Plan, synchronous bool, parameters json.RawMessage,
) lifecycle.Start {
	timeout := b.OperationTimeout
	if plan.MaximumPollingDuration > 0 {
		timeout = time.Duration(plan.MaximumPollingDuration) * time.Second
	}
	asker := c.Asker
	asker.Identity = b.sealLosable(ctx, key, vault.Identity, c.Identity)
	return lifecycle.Start{
		ID: b.NewID(), Now: b.Now(), Received: c.Received, Timeout: timeout, Synchronous: synchronous, Asker: asker,
		Parameters: lifecycle.ParameterNames(parameters),
	}
}

// sealContext sets the context of the attributes to the form that is recorded. For an instance it also sets the names.
func (b *Broker) sealContext(
	ctx context.Context, key lifecycle.Key, a *lifecycle.Attributes, context json.RawMessage,
) (err error) {
	a.Context, a.Names = lifecycle.Stable(context), nil
	if names := lifecycle.NamesIn(context); !key.IsBinding() && names != (lifecycle.Names{}) {
		plain, _ := json.Marshal(names) // texts can always be encoded
		a.Names = b.sealLosable(ctx, key, vault.Names, plain)
	}
	a.SealedContext, err = b.seal(ctx, key, vault.Context, context)
	return err
}

// sealLosable seals a value that an operation can do without. If sealing takes long or fails,
// the operation begins without the value: a deletion must begin even then.
func (b *Broker) sealLosable(ctx context.Context, key lifecycle.Key, member vault.Member, plain []byte) lifecycle.Sealed {
	ctx, cancel := context.WithTimeout(ctx, b.RecordsTimeout/losableShare)
	defer cancel()
	sealed, err := b.Table.Seal(ctx, vault.Label{Key: key, Member: member}, plain)
	if err != nil {
		b.Log.ErrorContext(ctx, "the broker could not seal a part of a request, and goes on without it", "part", member,
			"error", err)
	}
	return sealed
}

// dashboard returns the address of an instance's dashboard; empty for none.
func (b *Broker) dashboard(ctx context.Context, o catalog.Offering, instance lifecycle.Key) string {
	if url := o.DashboardOf(instance.Instance); url != "" || b.Dashboard == nil {
		return url
	}
	return b.Dashboard(ctx, instance)
}

// conditions returns the conditions that, beside the record, decide on a request.
func (b *Broker) conditions(c Caller, same bool, invalid error) lifecycle.Conditions {
	return lifecycle.Conditions{Same: same, Permitted: c.AcceptsIncomplete, Invalid: invalid, Received: c.Received, Now: b.Now()}
}

// refused separates a refusal from a fault.
func refused(err error) (invalid, fault error) {
	if errors.As(err, new(*lifecycle.Refusal)) {
		return err, nil
	}
	return nil, err
}

var errNoOperation = lifecycle.RefuseNoOperation()

// operationIn returns the current or past operation that the token of the record names.
func (b *Broker) operationIn(ctx context.Context, c lifecycle.Record, t lifecycle.Token) (lifecycle.Operation, error) {
	if c.Operation != nil && c.Operation.ID == t.Operation {
		return *c.Operation, nil
	}
	if failed := c.FailedCreation(); failed != nil && failed.ID == t.Operation {
		return *failed, nil
	}
	past, err := b.Records.PastOperation(ctx, t.Operation, b.Now())
	if err != nil {
		return lifecycle.Operation{}, err
	}
	if past.Version == 0 || past.Key != t.Key {
		return lifecycle.Operation{}, errNoOperation
	}
	return past.Operation, nil
}

func (b *Broker) record(ctx context.Context, key lifecycle.Key) (lifecycle.Record, error) {
	return b.Records.Record(ctx, key, b.Now())
}

func (b *Broker) seal(ctx context.Context, key lifecycle.Key, member vault.Member, plain []byte) (lifecycle.Sealed, error) {
	sealed, err := b.Vault.Seal(ctx, vault.Label{Key: key, Member: member}, plain)
	if err != nil {
		return nil, fmt.Errorf("sealing %s: %w", member, err)
	}
	return sealed, nil
}

func (b *Broker) open(ctx context.Context, key lifecycle.Key, member vault.Member, sealed lifecycle.Sealed) ([]byte, error) {
	plain, err := b.Vault.Open(ctx, vault.Label{Key: key, Member: member}, sealed)
	if err != nil {
		return nil, fmt.Errorf("opening sealed %s: %w", member, err)
	}
	return plain, nil
}

// parameters opens the parameters of a record.
func (b *Broker) parameters(ctx context.Context, r lifecycle.Record) (json.RawMessage, error) {
	return b.open(ctx, r.Key, vault.Parameters, r.Attributes.Parameters)
}

// sameParameters reports whether a request gives the parameters of the record. Lost ones count as the same.
func (b *Broker) sameParameters(ctx context.Context, r lifecycle.Record, given json.RawMessage) (bool, error) {
	if r.LostParameters() {
		return true, nil
	}
	parameters, err := b.parameters(ctx, r)
	return lifecycle.SameParameters(parameters, given), err
}

// checked turns a violation of a schema into a refusal.
func checked(err error) error {
	if violation, ok := errors.AsType[*catalog.ParameterError](err); ok {
		return lifecycle.RefuseParameters(violation.Error())
	}
	return err
}

// plan returns the plan of an existing instance or binding. If the plan has left the catalog,
// the instance goes on working (CAT-28): it may then be changed synchronously or
// asynchronously, and bound synchronously.
func (b *Broker) plan(a lifecycle.Attributes) (catalog.Offering, catalog.Plan) {
	offering, plan, ok := b.Catalog.Plan(a.ServiceID, a.PlanID)
	if !ok {
		plan.Asynchronous, plan.AsynchronousBinding = catalog.Allowed, catalog.Never
	}
	return offering, plan
}

func (b *Broker) knownOffering(c Caller, serviceID string) bool {
	_, ok := b.Catalog.Offering(serviceID)
	return ok && c.View.Shows(serviceID)
}

// knownPlan refuses a service or plan that the caller's view of the catalog does not hold, and
// a plan of another offering (PROV-14).
func (b *Broker) knownPlan(c Caller, serviceID, planID string) (catalog.Offering, catalog.Plan, error) {
	if !b.knownOffering(c, serviceID) {
		return catalog.Offering{}, catalog.Plan{}, lifecycle.RefuseService()
	}
	offering, plan, ok := b.Catalog.Plan(serviceID, planID)
	if !ok || !c.View.Shows(planID) {
		return offering, plan, lifecycle.RefusePlan()
	}
	return offering, plan, nil
}

// maintenanceConflict refuses a maintenance version that is not the plan's
// (PROV-20, UPD-17).
func maintenanceConflict(plan catalog.Plan, given *string) error {
	if given == nil || plan.MaintenanceInfo != nil && plan.MaintenanceInfo.Version == *given {
		return nil
	}
	return lifecycle.RefuseMaintenance()
}
