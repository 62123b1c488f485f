package broker

import (
	"context"
	"encoding/json"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// An UpdateRequest is a PATCH of an instance whose syntax has been checked.
type UpdateRequest struct {
	Caller
	InstanceID string
	ServiceID  string
	// PlanID is empty to keep the plan (UPD-07).
	PlanID string
	// Parameters is nil to keep the current parameters; else its members are merged into them,
	// and a null removes a member (UPD-08).
	Parameters         json.RawMessage
	Context            json.RawMessage
	MaintenanceVersion *string
}

// A target holds the attributes after an update; its parameters are not yet sealed.
type target struct {
	offering   catalog.Offering // zero if it has left the catalog
	from, plan catalog.Plan     // the instance's current plan, and the one after the update
	attributes lifecycle.Attributes
	before     json.RawMessage // the instance's current parameters
	parameters json.RawMessage
	changes    bool // the update changes the plan, its version or the parameters
	runs       bool // an update with this target is running (UPD-21)
}

// Update answers a PATCH of an instance (UPD-*).
func (b *Broker) Update(ctx context.Context, q UpdateRequest) (Result, error) {
	d, err := decide(ctx, b, b.decideUpdate, q)
	if err != nil {
		return Result{}, err
	}
	if d.runs {
		if to := d.record.Operation.Target; to != nil && to.DashboardURL != d.record.Attributes.DashboardURL {
			d.DashboardURL = to.DashboardURL
		}
	}
	result, _, err := b.follow(ctx, q.Caller, d)
	return result, err
}

func (b *Broker) decideUpdate(ctx context.Context, q UpdateRequest) (*decision, error) {
	i, err := b.record(ctx, q.key(q.InstanceID, ""))
	if err != nil {
		return nil, err
	}
	t, err := b.target(ctx, i, q)
	invalid, err := refused(err)
	if err != nil {
		return nil, err
	}
	answer, err := i.Answer(lifecycle.Patch, b.conditions(q.Caller, t.runs, invalid))
	if err != nil {
		return nil, err
	}
	if answer == lifecycle.Join {
		return join(i, q.AcceptsIncomplete)
	}
	if err := allowed(i, t, q); err != nil {
		return nil, err
	}
	if !t.changes && !i.Unusable {
		return &decision{Result: Result{Effect: Done}}, b.contextOnly(ctx, i, t, q)
	}
	return b.beginUpdate(ctx, q, i, t)
}

func (b *Broker) beginUpdate(ctx context.Context, q UpdateRequest, i lifecycle.Record, t target) (*decision, error) {
	synchronous, err := waits(q.AcceptsIncomplete, t.from.Asynchronous, t.plan.Asynchronous)
	if err != nil {
		return nil, err
	}
	if t.attributes.Parameters, err = b.seal(ctx, i.Key, vault.Parameters, t.parameters); err != nil {
		return nil, err
	}
	if q.Context != nil {
		if err := b.sealContext(ctx, i.Key, &t.attributes, q.Context); err != nil {
			return nil, err
		}
	}
	next, err := i.BeginUpdate(b.start(ctx, q.Caller, i.Key, t.plan, synchronous, q.Parameters), t.attributes)
	if err != nil {
		return nil, err
	}
	return b.begin(ctx, next, Done)
}

// target works out the target of the request, and refuses ids that are not in the catalog.
func (b *Broker) target(ctx context.Context, i lifecycle.Record, q UpdateRequest) (target, error) {
	switch {
	case q.ServiceID == i.Attributes.ServiceID:
	case b.knownOffering(q.Caller, q.ServiceID):
		return target{}, lifecycle.RefuseOtherService()
	default:
		return target{}, lifecycle.RefuseService()
	}
	_, current := b.plan(i.Attributes)
	t := target{attributes: i.Attributes, from: current, plan: current}
	if q.PlanID != "" && q.PlanID != i.Attributes.PlanID {
		_, plan, err := b.knownPlan(q.Caller, q.ServiceID, q.PlanID)
		if err != nil {
			return t, err
		}
		t.plan, t.attributes.PlanID, t.attributes.MaintenanceVersion = plan, plan.ID, plan.Version()
	}
	before, err := b.parameters(ctx, i)
	if err != nil {
		return t, err
	}
	t.before, t.parameters = before, lifecycle.MergeParameters(before, q.Parameters)
	if err := b.checkParameters(i, t, q); err != nil {
		return t, err
	}
	if err := sourceStays(t.plan, before, t.parameters); q.Parameters != nil && !i.LostParameters() && err != nil {
		return t, err
	}
	if q.MaintenanceVersion != nil {
		t.attributes.MaintenanceVersion = *q.MaintenanceVersion
	}
	// A move is to another plan, or to another version of the plan.
	moves := t.attributes.PlanID != i.Attributes.PlanID || t.attributes.MaintenanceVersion != i.Attributes.MaintenanceVersion
	if _, known, ok := b.Catalog.Plan(q.ServiceID, t.attributes.PlanID); ok && (moves || i.Attributes.Snapshot == nil) {
		// An instance that does not move keeps its snapshot of the plan: a user who changes a
		// parameter has not asked for an upgrade. A new snapshot alone is no change.
		t.attributes.Snapshot = known.Snapshot
	}
	offering, ok := b.Catalog.Offering(q.ServiceID)
	if t.offering = offering; ok {
		t.attributes.DashboardURL = b.dashboard(ctx, offering, i.Key) // a new address alone is no change
	}
	t.changes = moves || !lifecycle.SameParameters(before, t.parameters)
	t.runs, err = b.leadsTo(ctx, i, t)
	return t, err
}

// checkParameters refuses parameters that the plan's schemas do not allow. It checks the given parameters
// except removals, and the merged ones (UPD-12), but not again the members that the update does not touch.
func (b *Broker) checkParameters(i lifecycle.Record, t target, q UpdateRequest) error {
	service, plan := t.attributes.ServiceID, t.attributes.PlanID
	if q.Parameters != nil {
		if err := b.Catalog.Check(catalog.Update, service, plan, lifecycle.MergeParameters(nil, q.Parameters)); err != nil {
			return checked(err)
		}
	}
	if len(t.parameters) > limits.Parameters {
		return lifecycle.RefuseMerged(limits.Parameters)
	}
	if q.Parameters == nil && plan == i.Attributes.PlanID {
		return nil
	}
	return checked(b.Catalog.CheckResult(service, plan, t.parameters, q.Parameters))
}

// leadsTo reports whether the running update has the same target as t (UPD-21).
func (b *Broker) leadsTo(ctx context.Context, i lifecycle.Record, t target) (bool, error) {
	if i.State != lifecycle.Updating || i.Operation.Target == nil {
		return false, nil
	}
	running := i.Operation.Target
	if running.PlanID != t.attributes.PlanID || running.MaintenanceVersion != t.attributes.MaintenanceVersion {
		return false, nil
	}
	parameters, err := b.open(ctx, i.Key, vault.Parameters, running.Parameters)
	return lifecycle.SameParameters(parameters, t.parameters), err
}

// allowed applies the plan's rules about changes.
func allowed(i lifecycle.Record, t target, q UpdateRequest) error {
	if err := maintenanceConflict(t.plan, q.MaintenanceVersion); err != nil {
		return err
	}
	if t.changes && q.Parameters == nil && i.LostParameters() {
		// The parameters that the request leaves out would come from the instance, which has lost them.
		return lifecycle.RefusePartUnknown()
	}
	if never := inPlace(i, t); never != nil {
		never.InstanceUsable, never.UpdateRepeatable = new(true), new(false) // it would be refused again (ERR-10)
		return never
	}
	return nil
}

// inPlace compares the plans and their snapshots. It refuses a change of the plan that the offering does not
// allow, an update that the provider could do only by replacing the thing that holds the data, and
// parameters that the instance's own version of the plan does not know (UPD-11).
func inPlace(i lifecycle.Record, t target) *lifecycle.Refusal {
	was, is := check.ChangeOf(i.Attributes.Snapshot), check.ChangeOf(t.attributes.Snapshot)
	switch {
	case t.attributes.PlanID != i.Attributes.PlanID && !t.offering.PlanIsUpdateable(t.from):
		return lifecycle.RefusePlanChange()
	case !was.To(is):
		return lifecycle.RefuseMove()
	case i.LostParameters():
		return nil // the difference is unknown: the provider says what it cannot do
	}
	newest := t.plan.Version()
	for _, c := range lifecycle.ChangedParameters(t.before, t.parameters) {
		switch {
		case was.IsFixed(c.Name) || is.IsFixed(c.Name):
			return lifecycle.RefuseFixed(c.Name)
		case c.Removed || is.Knows(c.Name):
		case newest != "" && newest != t.attributes.MaintenanceVersion:
			return lifecycle.RefuseUpgradeFirst(c.Name, newest)
		default:
			return lifecycle.RefuseUnknownHere(c.Name)
		}
	}
	return nil
}

// contextOnly stores a new context where the offering honours it (UPD-15). It begins no
// operation, since there is no work.
func (b *Broker) contextOnly(ctx context.Context, i lifecycle.Record, t target, q UpdateRequest) error {
	if q.Context == nil || !t.offering.AllowContextUpdates {
		return nil
	}
	a := i.Attributes
	if err := b.sealContext(ctx, i.Key, &a, q.Context); err != nil {
		return err
	}
	return b.Records.Commit(ctx, ledger.Put(i.SetContext(a, b.Now())))
}
