package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// A BindRequest is a PUT of a binding whose syntax has been checked.
type BindRequest struct {
	Caller
	InstanceID, BindingID string
	ServiceID, PlanID     string
	AppGUID               string // given in either of two places (BIND-08); empty for a service key
	Route                 string
	Context, Parameters   json.RawMessage
	// Predecessor is the binding that this one succeeds with new credentials; empty for a first
	// binding. A rotation may leave out all members but Context: it takes them over from the
	// predecessor (ROT-01, ROT-02).
	Predecessor string
}

// Bind answers a PUT of a binding (BIND-*, ROT-*, IDEM-07).
func (b *Broker) Bind(ctx context.Context, q BindRequest) (Result, error) {
	d, err := decide(ctx, b, b.decideBind, q)
	if err != nil {
		return Result{}, err
	}
	result, r, err := b.follow(ctx, q.Caller, d)
	if err != nil || result.Effect == Accepted {
		return result, err
	}
	if r.State != lifecycle.Ready || r.Incarnation != d.record.Incarnation {
		return Result{}, lifecycle.RefuseDeletedLater(r.Noun())
	}
	limited, cancel := b.limited(ctx)
	defer cancel()
	result.Grant, err = b.grant(limited, r)
	return result, err
}

func (b *Broker) decideBind(ctx context.Context, q BindRequest) (*decision, error) {
	r, err := b.record(ctx, q.key(q.InstanceID, q.BindingID))
	if err != nil {
		return nil, err
	}
	if r.State == lifecycle.Deleted && r.FailedCreation() != nil {
		i, err := b.record(ctx, r.Key.InstanceKey())
		if err != nil {
			return nil, err
		}
		r = r.Of(i)
	}
	same, err := b.sameBinding(ctx, r, q)
	if err != nil {
		return nil, err
	}
	answer, err := r.Answer(lifecycle.Put, b.conditions(q.Caller, same, b.unknownPlan(q)))
	switch {
	case err != nil:
		return nil, err
	case answer != lifecycle.Begin:
		return b.repeated(answer, r, q.AcceptsIncomplete)
	}
	return b.beginBind(ctx, q, r)
}

// unknownPlan refuses ids that are not in the catalog; a rotation may leave them out.
func (b *Broker) unknownPlan(q BindRequest) error {
	if q.Predecessor != "" && (q.ServiceID == "" || q.PlanID == "") {
		return nil
	}
	_, _, err := b.knownPlan(q.Caller, q.ServiceID, q.PlanID)
	return err
}

func (b *Broker) sameBinding(ctx context.Context, r lifecycle.Record, q BindRequest) (bool, error) {
	if r.Predecessor != q.Predecessor || !q.takenOver(r) {
		return false, nil
	}
	if q.Predecessor != "" && q.Parameters == nil {
		return true, nil
	}
	return b.sameParameters(ctx, r, q.Parameters)
}

// takenOver reports whether the request repeats the binding's members or, as a rotation may, leaves them out.
func (q BindRequest) takenOver(r lifecycle.Record) bool {
	for _, m := range [][2]string{{q.ServiceID, r.Attributes.ServiceID}, {q.PlanID, r.Attributes.PlanID}, {q.AppGUID, r.AppGUID},
		{q.Route, r.Route}} {
		if m[0] != m[1] && (q.Predecessor == "" || m[0] != "") {
			return false
		}
	}
	return true
}

// beginBind makes the checks in the order that docs/divergences.md gives. It commits the intent
// on condition that the instance is unchanged since it was read.
func (b *Broker) beginBind(ctx context.Context, q BindRequest, r lifecycle.Record) (*decision, error) {
	now := b.Now()
	i, err := b.record(ctx, r.Key.InstanceKey())
	if err != nil {
		return nil, err
	}
	predecessor, plan, err := b.wanted(ctx, i, &q, now)
	invalid, err := refused(err)
	if err != nil {
		return nil, err
	}
	if _, err := i.Answer(lifecycle.BindOn, b.conditions(q.Caller, false, invalid)); err != nil {
		return nil, err
	}
	if plan.RequiresApp && q.AppGUID == "" {
		return nil, lifecycle.RefuseRequiresApp()
	}
	synchronous, err := waits(q.AcceptsIncomplete, plan.AsynchronousBinding)
	if err != nil {
		return nil, err
	}
	pointer, err := b.Records.Pointer(ctx, q.Platform, q.BindingID)
	if err != nil {
		return nil, err
	}
	if pointer.Version != 0 && pointer.Key != r.Key {
		return nil, lifecycle.RefuseBoundElse()
	}
	pointer.Key = r.Key
	fresh := lifecycle.Record{
		Provider:   i.Provider,
		Made:       lifecycle.Made{Broker: i.Made.Broker, Target: i.Made.Target, Origin: i.Made.Origin},
		Attributes: lifecycle.Attributes{ServiceID: q.ServiceID, PlanID: q.PlanID},
		BindingOnly: lifecycle.BindingOnly{
			InstanceIncarnation: i.Incarnation, AppGUID: q.AppGUID, Route: q.Route, Predecessor: q.Predecessor,
		},
	}
	if fresh.Attributes.Parameters, err = b.seal(ctx, r.Key, vault.Parameters, q.Parameters); err != nil {
		return nil, err
	}
	if err := b.sealContext(ctx, r.Key, &fresh.Attributes, q.Context); err != nil {
		return nil, err
	}
	if fresh.Secret, err = b.seal(ctx, r.Key, vault.Secret, b.NewSecret()); err != nil {
		return nil, err
	}
	next, err := r.BeginCreate(b.start(ctx, q.Caller, r.Key, plan, synchronous, q.Parameters), fresh)
	if err != nil {
		return nil, err
	}
	return b.begin(ctx, next, Created, ledger.Check(i), ledger.Check(predecessor), ledger.Put(pointer))
}

// wanted reads the predecessor, if the request names one, and finds the plan. It refuses a
// binding that the catalog does not allow.
func (b *Broker) wanted(ctx context.Context, i lifecycle.Record, q *BindRequest,
	now time.Time) (predecessor lifecycle.Record, plan catalog.Plan, err error) {
	if q.Predecessor != "" {
		if predecessor, err = b.succeeded(ctx, i, q, now); err != nil {
			return predecessor, plan, err
		}
	}
	plan, err = b.bindable(i, *q)
	return predecessor, plan, err
}

// bindable refuses a binding that the catalog does not allow.
func (b *Broker) bindable(i lifecycle.Record, q BindRequest) (catalog.Plan, error) {
	a := i.Attributes
	if q.ServiceID != a.ServiceID || q.PlanID != a.PlanID {
		if _, _, err := b.knownPlan(q.Caller, q.ServiceID, q.PlanID); err != nil {
			return catalog.Plan{}, err
		}
		return catalog.Plan{}, lifecycle.RefuseOtherPlan()
	}
	offering, plan := b.plan(a)
	if offering.ID == "" { // the offering has left the catalog; its instances go on working
		return plan, nil
	}
	if !offering.PlanBindable(plan) {
		return plan, lifecycle.RefuseUnbindable()
	}
	if q.Route != "" && !slices.Contains(offering.Requires, "route_forwarding") {
		return plan, lifecycle.RefuseRoute()
	}
	if q.Predecessor != "" {
		if plan.BindingRotatable == nil || !*plan.BindingRotatable { // ROT-05
			return plan, lifecycle.RefuseRotation()
		}
		return plan, nil // the parameters were checked when the predecessor was made
	}
	return plan, checked(b.Catalog.Check(catalog.Bind, a.ServiceID, a.PlanID, q.Parameters))
}

// succeeded reads the predecessor that a rotation names, and fills in the members that the
// new binding takes over from it.
func (b *Broker) succeeded(ctx context.Context, i lifecycle.Record, q *BindRequest, now time.Time) (lifecycle.Record, error) {
	p, err := b.record(ctx, i.Key.BindingKey(q.Predecessor))
	if err != nil {
		return p, err
	}
	if err := p.OnSucceed(i.Incarnation); err != nil {
		return p, err
	}
	grant, err := b.grant(ctx, p)
	if err != nil {
		return p, err
	}
	if !grant.ExpiresAt.IsZero() && !now.Before(grant.ExpiresAt) {
		return p, lifecycle.RefusePredecessorOld()
	}
	parameters, err := b.parameters(ctx, p)
	if err != nil {
		return p, err
	}
	if q.AppGUID != "" && q.AppGUID != p.AppGUID || q.Route != "" && q.Route != p.Route ||
		q.Parameters != nil && !lifecycle.SameParameters(parameters, q.Parameters) {
		return p, lifecycle.RefuseTakenOver()
	}
	// The plan is that of the instance, which may have changed since the predecessor was made.
	q.ServiceID, q.PlanID = cmp.Or(q.ServiceID, i.Attributes.ServiceID), cmp.Or(q.PlanID, i.Attributes.PlanID)
	q.AppGUID, q.Route, q.Parameters = p.AppGUID, p.Route, parameters
	return p, nil
}

func (b *Broker) grant(ctx context.Context, r lifecycle.Record) (*provider.Grant, error) {
	plain, err := b.open(ctx, r.Key, vault.Grant, r.Grant)
	if err != nil || plain == nil {
		return &provider.Grant{}, err
	}
	var g provider.Grant
	if json.Unmarshal(plain, &g) != nil {
		return nil, fmt.Errorf("decoding the grant of a binding: not JSON") // the cause could quote the grant
	}
	return &g, nil
}
