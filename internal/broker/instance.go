package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// A ProvisionRequest is a PUT of an instance, its syntax checked.
type ProvisionRequest struct {
	Caller
	InstanceID                  string
	ServiceID, PlanID           string
	OrganizationGUID, SpaceGUID string
	Context, Parameters         json.RawMessage // objects, or nil
	// MaintenanceVersion is nil when the client gave none.
	MaintenanceVersion *string
}

func (q ProvisionRequest) key() lifecycle.Key {
	return lifecycle.Key{Platform: q.Platform, Instance: q.InstanceID}
}

func (q ProvisionRequest) attributes() lifecycle.Attributes {
	return lifecycle.Attributes{
		ServiceID: q.ServiceID, PlanID: q.PlanID,
		OrganizationGUID: q.OrganizationGUID, SpaceGUID: q.SpaceGUID, Context: q.Context,
	}
}

// Provision answers a PUT of an instance (checklist sections 5 and 14.1).
func (b *Broker) Provision(ctx context.Context, q ProvisionRequest) (Result, error) {
	return decide(ctx, b, func(limited context.Context) (Result, error) {
		i, err := b.Records.Record(limited, q.key(), b.Now())
		if err != nil {
			return Result{}, err
		}
		same, err := b.sameInstance(limited, i, q)
		if err != nil {
			return Result{}, err
		}
		_, _, unknown := b.knownPlan(q.Caller, q.ServiceID, q.PlanID)
		answer, err := i.Answer(lifecycle.Put, b.facts(q.Caller, same, unknown))
		if err != nil {
			return Result{}, err
		}
		switch answer {
		case lifecycle.Exists:
			return Result{Effect: Done, DashboardURL: i.Attributes.DashboardURL}, nil
		case lifecycle.Stays:
			r := b.stays(i)
			r.DashboardURL = i.Attributes.DashboardURL // PROV-34
			return r, nil
		case lifecycle.Join:
			later, err := joins(i.Operation, q.AcceptsIncomplete)
			if err != nil {
				return Result{}, err
			}
			return b.finishProvision(ctx, q, i, later, Done)
		}
		if i, err = b.beginProvision(limited, q, i); err != nil {
			return Result{}, err
		}
		return b.finishProvision(ctx, q, i, !i.Operation.Synchronous, Created)
	})
}

func (b *Broker) sameInstance(ctx context.Context, i lifecycle.Record, q ProvisionRequest) (bool, error) {
	a := q.attributes()
	if a.ServiceID != i.Attributes.ServiceID || a.PlanID != i.Attributes.PlanID || !i.SamePlace(a) {
		return false, nil
	}
	if i.LostParameters() {
		return true, nil
	}
	parameters, err := b.open(ctx, i.Key, vault.Parameters, i.Attributes.Parameters)
	return lifecycle.SameParameters(parameters, q.Parameters), err
}

func (b *Broker) beginProvision(ctx context.Context, q ProvisionRequest, i lifecycle.Record) (lifecycle.Record, error) {
	offering, plan, err := b.knownPlan(q.Caller, q.ServiceID, q.PlanID)
	if err != nil {
		return i, err
	}
	if err := b.Catalog.CheckCreate(q.ServiceID, q.PlanID, q.Parameters); err != nil {
		return i, checked(err)
	}
	if err := maintenanceConflict(plan, q.MaintenanceVersion); err != nil {
		return i, err
	}
	synchronous, err := waits(q.AcceptsIncomplete, mode(plan.Asynchronous, catalog.Allowed))
	if err != nil {
		return i, err
	}
	a, made := q.attributes(), lifecycle.Made{Broker: b.Identity}
	chosen, err := b.origin(ctx, q, offering.Provider, plan)
	if err != nil {
		return i, err
	}
	if chosen.source != nil {
		made.Target = chosen.target() // it is restored where its source is
	}
	a.MaintenanceVersion, a.DashboardURL, a.Snapshot = maintenanceVersion(plan), offering.DashboardOf(q.InstanceID), plan.Snapshot
	if a.Parameters, err = b.seal(ctx, i.Key, vault.Parameters, q.Parameters); err != nil {
		return i, err
	}
	if err := b.sealContext(ctx, i.Key, &a, q.Context); err != nil {
		return i, err
	}
	start := b.start(ctx, q.Caller, i.Key, plan, b.Now(), synchronous)
	start.Expected, start.Source = time.Duration(plan.TypicalDuration)*time.Second, chosen.source
	next, past, err := i.BeginCreate(start, lifecycle.Record{
		Provider: offering.Provider, Attributes: a, Made: made,
	})
	if err != nil {
		return next, err
	}
	return next, b.begin(ctx, next, past, chosen.commit(next), ledger.FirstTargetUse(i, next, b.Now()))
}

func (b *Broker) finishProvision(ctx context.Context, q ProvisionRequest, i lifecycle.Record, later bool, success Effect) (Result, error) {
	r, err := b.finishCreation(ctx, q.Caller, i, later, success)
	if err == nil {
		r.DashboardURL = i.Attributes.DashboardURL
	}
	return r, err
}

// finishCreation answers a creation now or later. If a creation that should have been
// done within the request is not, it is answered 202 where the client permits that.
// Otherwise it is undone, since the platform takes an error to mean that nothing was
// made, and will delete it anyway. A creation that settles before it is undone is
// answered as it ended.
func (b *Broker) finishCreation(ctx context.Context, c Caller, r lifecycle.Record, later bool, success Effect) (Result, error) {
	result, err := b.follow(ctx, r, later, success)
	if !errors.Is(err, errTooSlow) {
		return result, err
	}
	if c.AcceptsIncomplete {
		return b.follow(ctx, r, true, success)
	}
	hint := " with accepts_incomplete=true"
	if r.IsBinding() {
		hint = ""
	}
	op, err := b.undo(ctx, c, r.Token())
	switch {
	case err != nil:
		return Result{}, err
	case op.Cancelled:
		return Result{}, lifecycle.RefuseUndone.Because(errTooSlow, r.Noun(), hint)
	case op.Phase == lifecycle.InProgress:
		return Result{}, lifecycle.RefuseCreationLong.Because(errTooSlow, r.Noun(), hint)
	}
	return outcome(op, success)
}

// undo turns a creation that took too long into a deletion, unless it has settled or
// been overtaken meanwhile, and returns the creation. It spares a creation whose token
// was given to another request: what was accepted must not be lost because this request
// cannot wait.
func (b *Broker) undo(ctx context.Context, c Caller, t lifecycle.Token) (lifecycle.Operation, error) {
	record, err := decide(ctx, b, func(limited context.Context) (lifecycle.Record, error) {
		c.Received = time.Time{} // no request asks for this deletion
		return b.overtake(limited, c, t, (*lifecycle.Operation).Asynchronous)
	})
	if err != nil {
		return lifecycle.Operation{}, fmt.Errorf("turning a creation that took too long into a deletion: %w", err)
	}
	ctx, cancel := b.limited(ctx)
	defer cancel()
	return b.operationIn(ctx, record, t)
}

// overtake begins the deletion of what an operation is creating, unless the operation
// is spared. It returns the record; if the operation is no longer the current one,
// nothing was begun.
func (b *Broker) overtake(
	ctx context.Context, c Caller, t lifecycle.Token, spares func(*lifecycle.Operation) bool,
) (lifecycle.Record, error) {
	r, err := b.record(ctx, t.Key)
	if err != nil || !r.Runs(t) || spares(r.Operation) {
		return r, err
	}
	start := b.start(ctx, c, r.Key, catalog.Plan{}, b.Now(), false)
	start.Own = true // no DELETE asked for it
	begun, past, err := r.BeginDelete(start)
	if err != nil {
		return r, err
	}
	return begun, b.begin(ctx, begun, past)
}

// A DeleteRequest is a DELETE of an instance or a binding. Its service and plan ids are
// only hints: the record decides (CAT-28, UNB-05).
type DeleteRequest struct {
	Caller
	InstanceID, BindingID string
	ServiceID, PlanID     string
}

func (q DeleteRequest) key() lifecycle.Key {
	return lifecycle.Key{Platform: q.Platform, Instance: q.InstanceID, Binding: q.BindingID}
}

// logHints logs ids that do not match the record; they are no reason to refuse.
func (b *Broker) logHints(ctx context.Context, q DeleteRequest, serviceID, planID string) {
	if q.ServiceID != serviceID || q.PlanID != planID {
		b.Log.InfoContext(ctx, "deletion names another service or plan than the record; the record counts")
	}
}

var errGone = lifecycle.RefuseGone()

// Deprovision answers a DELETE of an instance (checklist section 13).
func (b *Broker) Deprovision(ctx context.Context, q DeleteRequest) (Result, error) {
	r, err := decide(ctx, b, func(limited context.Context) (Result, error) {
		now := b.Now()
		i, err := b.Records.Record(limited, q.key(), now)
		if err != nil {
			return Result{}, err
		}
		answer, err := i.Answer(lifecycle.Delete, b.facts(q.Caller, false, nil))
		if err != nil {
			return Result{}, err
		}
		switch answer {
		case lifecycle.Missing:
			return Result{}, b.entomb(limited, i, q)
		case lifecycle.Join:
			later, err := joins(i.Operation, q.AcceptsIncomplete)
			if err != nil {
				return Result{}, err
			}
			again, changed := i.AskedAgain(q.Received, now)
			if i = again; changed {
				if err := b.Records.Commit(limited, ledger.Put(i)); err != nil {
					return Result{}, err
				}
			}
			return b.follow(ctx, i, later, Done)
		}
		b.logHints(limited, q, i.Attributes.ServiceID, i.Attributes.PlanID)
		_, plan := b.recordedPlan(i.Attributes.ServiceID, i.Attributes.PlanID)
		m := mode(plan.Asynchronous, catalog.Allowed)
		if i.State == lifecycle.CreateFailed && m == catalog.Required {
			m = catalog.Allowed // ORB-06: what failed can be removed either way
		}
		synchronous, err := waits(q.AcceptsIncomplete, m)
		if err != nil {
			return Result{}, err
		}
		i, past, err := i.BeginDelete(b.start(limited, q.Caller, i.Key, plan, now, synchronous))
		if err != nil {
			return Result{}, err
		}
		if err := b.begin(limited, i, past); err != nil {
			return Result{}, err
		}
		return b.follow(ctx, i, !synchronous, Done)
	})
	return b.slowDelete(ctx, q, r, err)
}

// slowDelete answers a deletion that outlasts the wait: the deletion goes on, unless it
// has ended since the wait did. By then the id may be that of another operation, which
// says nothing of the deletion.
func (b *Broker) slowDelete(ctx context.Context, q DeleteRequest, r Result, err error) (Result, error) {
	var late slow
	if !errors.As(err, &late) {
		return r, err
	}
	ctx, cancel := b.limited(ctx)
	defer cancel()
	c, readErr := b.record(ctx, q.key())
	switch {
	case readErr != nil:
	case !c.Runs(late.token):
		if op, err := b.operationIn(ctx, c, late.token); err == nil {
			return outcome(op, Done)
		}
	case q.AcceptsIncomplete:
		return b.accepted(c), nil
	}
	return Result{}, lifecycle.RefuseDeletionLong.Because(errTooSlow)
}

// entomb records a deletion of what does not exist, so that a PUT that was sent before
// it begins nothing (ORB-03).
func (b *Broker) entomb(ctx context.Context, r lifecycle.Record, q DeleteRequest) error {
	if _, newer := r.AskedAgain(q.Received, b.Now()); r.State == lifecycle.Deleted && !newer {
		return errGone // it is remembered already
	}
	dead, err := r.Entomb(b.Now(), q.Received)
	if err != nil {
		return err
	}
	if err := b.Records.Commit(ctx, ledger.Put(dead)); err != nil {
		return err
	}
	return errGone
}

// An InstanceView is what a GET of an instance shows.
type InstanceView struct {
	ServiceID, PlanID  string
	Parameters         json.RawMessage // nil if there are none
	MaintenanceVersion string
	DashboardURL       string // empty for none
}

// Instance answers a GET of an instance (checklist section 6).
func (b *Broker) Instance(ctx context.Context, c Caller, id string) (InstanceView, error) {
	ctx, cancel := b.limited(ctx)
	defer cancel()
	i, err := b.Records.Record(ctx, lifecycle.Key{Platform: c.Platform, Instance: id}, b.Now())
	if err != nil {
		return InstanceView{}, err
	}
	if _, err := i.Answer(lifecycle.Get, b.facts(c, false, nil)); err != nil {
		return InstanceView{}, err
	}
	parameters, err := b.open(ctx, i.Key, vault.Parameters, i.Attributes.Parameters)
	return InstanceView{
		ServiceID: i.Attributes.ServiceID, PlanID: i.Attributes.PlanID,
		Parameters: parameters, MaintenanceVersion: i.Attributes.MaintenanceVersion, DashboardURL: i.Attributes.DashboardURL,
	}, err
}
