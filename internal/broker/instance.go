package broker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// A ProvisionRequest is a PUT of an instance whose syntax has been checked.
type ProvisionRequest struct {
	Caller
	InstanceID                  string
	ServiceID, PlanID           string
	OrganizationGUID, SpaceGUID string
	Context, Parameters         json.RawMessage // objects, or nil
	// MaintenanceVersion is nil when the client gave none.
	MaintenanceVersion *string
}

func (q ProvisionRequest) attributes() lifecycle.Attributes {
	return lifecycle.Attributes{
		ServiceID: q.ServiceID, PlanID: q.PlanID,
		OrganizationGUID: q.OrganizationGUID, SpaceGUID: q.SpaceGUID, Context: q.Context,
	}
}

// Provision answers a PUT of an instance (PROV-*, IDEM-01).
func (b *Broker) Provision(ctx context.Context, q ProvisionRequest) (Result, error) {
	d, err := decide(ctx, b, b.decideProvision, q)
	if err != nil {
		return Result{}, err
	}
	d.DashboardURL = d.record.Attributes.DashboardURL // sent after a failure as well (PROV-34)
	result, _, err := b.follow(ctx, q.Caller, d)
	return result, err
}

func (b *Broker) decideProvision(ctx context.Context, q ProvisionRequest) (*decision, error) {
	i, err := b.record(ctx, q.key(q.InstanceID, ""))
	if err != nil {
		return nil, err
	}
	same, err := b.sameInstance(ctx, i, q)
	if err != nil {
		return nil, err
	}
	offering, plan, unknown := b.knownPlan(q.Caller, q.ServiceID, q.PlanID)
	answer, err := i.Answer(lifecycle.Put, b.conditions(q.Caller, same, unknown))
	switch {
	case err != nil:
		return nil, err
	case answer != lifecycle.Begin:
		return b.repeated(answer, i, q.AcceptsIncomplete)
	case unknown != nil:
		return nil, unknown
	}
	return b.beginProvision(ctx, q, i, offering, plan)
}

func (b *Broker) sameInstance(ctx context.Context, i lifecycle.Record, q ProvisionRequest) (bool, error) {
	a := q.attributes()
	if a.ServiceID != i.Attributes.ServiceID || a.PlanID != i.Attributes.PlanID || !i.SamePlace(a) {
		return false, nil
	}
	return b.sameParameters(ctx, i, q.Parameters)
}

func (b *Broker) beginProvision(
	ctx context.Context, q ProvisionRequest, i lifecycle.Record, offering catalog.Offering, plan catalog.Plan,
) (*decision, error) {
	if err := b.Catalog.Check(catalog.Create, q.ServiceID, q.PlanID, q.Parameters); err != nil {
		return nil, checked(err)
	}
	if err := maintenanceConflict(plan, q.MaintenanceVersion); err != nil {
		return nil, err
	}
	synchronous, err := waits(q.AcceptsIncomplete, plan.Asynchronous)
	if err != nil {
		return nil, err
	}
	a := q.attributes()
	a.MaintenanceVersion, a.DashboardURL, a.Snapshot = plan.Version(), b.dashboard(ctx, offering, i.Key), plan.Snapshot
	if a.Parameters, err = b.seal(ctx, i.Key, vault.Parameters, q.Parameters); err != nil {
		return nil, err
	}
	if err := b.sealContext(ctx, i.Key, &a, q.Context); err != nil {
		return nil, err
	}
	fresh, source, made, err := b.made(ctx, q, plan, lifecycle.Record{
		Provider: offering.Provider, Attributes: a, Made: lifecycle.Made{Broker: b.Identity},
	})
	if err != nil {
		return nil, err
	}
	start := b.start(ctx, q.Caller, i.Key, plan, synchronous, q.Parameters)
	start.Expected, start.Source = time.Duration(plan.TypicalDuration)*time.Second, source
	next, err := i.BeginCreate(start, fresh)
	if err != nil {
		return nil, err
	}
	return b.begin(ctx, next, Created, made, ledger.FirstTargetUse(i, next, b.Now()))
}

// A View is the answer to a GET of an instance or a binding.
type View struct {
	Attributes lifecycle.Attributes
	Parameters json.RawMessage // nil if there are none
	Grant      *provider.Grant // of a binding
}

// View answers a GET of an instance (GETI-*) or, with the id of a binding, of that binding (GETB-01).
func (b *Broker) View(ctx context.Context, c Caller, instance, binding string) (v View, err error) {
	ctx, cancel := b.limited(ctx)
	defer cancel()
	r, err := b.record(ctx, c.key(instance, binding))
	if err != nil {
		return v, err
	}
	if _, err := r.Answer(lifecycle.Get, b.conditions(c, false, nil)); err != nil {
		return v, err
	}
	v.Attributes = r.Attributes
	if v.Grant, err = b.grant(ctx, r); err != nil {
		return v, err
	}
	v.Parameters, err = b.parameters(ctx, r)
	return v, err
}
