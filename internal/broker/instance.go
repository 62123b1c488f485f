package broker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/vault"
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
		answer, err := i.OnPut(same, q.AcceptsIncomplete, q.Received, b.Now())
		if err != nil {
			if _, _, unknown := b.knownPlan(q.Caller, q.ServiceID, q.PlanID); !same && i.Attributes.ServiceID != "" && unknown != nil {
				return Result{}, unknown // CLI-07: 400 comes before 409
			}
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
		i, later, err := b.beginProvision(limited, q, i)
		if err != nil {
			return Result{}, err
		}
		return b.finishProvision(ctx, q, i, later, Created)
	})
}

func (b *Broker) sameInstance(ctx context.Context, i lifecycle.Record, q ProvisionRequest) (bool, error) {
	a := q.attributes()
	if a.ServiceID != i.Attributes.ServiceID || a.PlanID != i.Attributes.PlanID || !i.LostPlace() && !lifecycle.SamePlacement(a, i.Attributes) {
		return false, nil
	}
	if i.LostParameters() {
		return true, nil
	}
	parameters, err := b.open(ctx, i.Key, vault.Parameters, i.Attributes.Parameters)
	return lifecycle.SameParameters(parameters, q.Parameters), err
}

func (b *Broker) beginProvision(ctx context.Context, q ProvisionRequest, i lifecycle.Record) (lifecycle.Record, bool, error) {
	offering, plan, err := b.knownPlan(q.Caller, q.ServiceID, q.PlanID)
	if err != nil {
		return i, false, err
	}
	if err := b.Catalog.CheckCreate(q.ServiceID, q.PlanID, q.Parameters); err != nil {
		return i, false, checked(err)
	}
	if err := maintenanceConflict(plan, q.MaintenanceVersion); err != nil {
		return i, false, err
	}
	synchronous, err := waits(q.AcceptsIncomplete, mode(plan.Asynchronous, catalog.Allowed))
	if err != nil {
		return i, false, err
	}
	a := q.attributes()
	a.MaintenanceVersion, a.DashboardURL = maintenanceVersion(plan), offering.DashboardOf(q.InstanceID)
	if a.Parameters, err = b.seal(ctx, i.Key, vault.Parameters, q.Parameters); err != nil {
		return i, false, err
	}
	start := b.start(q.Caller, plan, b.Now(), synchronous)
	start.Expected = time.Duration(plan.TypicalDuration) * time.Second
	i, past, err := i.BeginCreate(start, lifecycle.Record{Provider: offering.Provider, Attributes: a})
	if err != nil {
		return i, false, err
	}
	if err := b.Records.Commit(ctx, ledger.Put(i), ledger.PutPast(past)); err != nil {
		return i, false, err
	}
	b.begun(i)
	if !synchronous {
		b.launch(ctx, i)
	}
	return i, !synchronous, nil
}

// finishProvision answers now or later. Work that should have been done within
// the request but was not is accepted where the client allows that; else it is
// undone, since the platform takes the error for "nothing was made" and will
// delete it anyway.
func (b *Broker) finishProvision(ctx context.Context, q ProvisionRequest, i lifecycle.Record, later bool, success Effect) (Result, error) {
	r, err := b.follow(ctx, i, later, success)
	if errors.Is(err, errTooSlow) && q.AcceptsIncomplete {
		r, err = b.follow(ctx, i, true, success)
	}
	if err == nil {
		r.DashboardURL = i.Attributes.DashboardURL
	}
	if !errors.Is(err, errTooSlow) {
		return r, err
	}
	if b.undo(ctx, q.Caller, i.Token()) {
		return Result{}, tooSlow("The service instance could not be created in time and is being removed; try again with accepts_incomplete=true.")
	}
	return Result{}, tooSlow("The creation of the service instance takes longer than this request can wait and goes on; try again with accepts_incomplete=true.")
}

// undo turns a creation that took too long into a deletion, unless it has
// settled or been overtaken meanwhile. It reports false for one that goes on:
// its token was given to somebody, and nothing that was accepted is lost because
// another request cannot wait for it.
func (b *Broker) undo(ctx context.Context, c Caller, t lifecycle.Token) bool {
	record, err := decide(ctx, b, func(limited context.Context) (lifecycle.Record, error) {
		c.Received = time.Time{} // no request asks for this deletion
		return b.overtake(limited, c, t, (*lifecycle.Operation).Asynchronous)
	})
	if err != nil {
		b.Log.ErrorContext(ctx, "a creation that took too long could not be turned into a deletion", "error", err)
	}
	return err != nil || !record.Runs(t)
}

// overtake begins the deletion of what an operation is about to create, unless it
// is spared. The record is as it stands then: if the operation is no
// longer the current one, nothing has been begun.
func (b *Broker) overtake(
	ctx context.Context, c Caller, t lifecycle.Token, spares func(*lifecycle.Operation) bool,
) (lifecycle.Record, error) {
	r, err := b.record(ctx, t.Key)
	if err != nil || !r.Runs(t) || spares(r.Operation) {
		return r, err
	}
	start := b.start(c, catalog.Plan{}, b.Now(), false)
	start.Own = true // no DELETE asked for it
	begun, past, err := r.BeginDelete(start)
	if err != nil {
		return r, err
	}
	if err := b.Records.Commit(ctx, ledger.Put(begun), ledger.PutPast(past)); err != nil {
		return begun, err
	}
	b.begun(begun)
	b.launch(ctx, begun)
	return begun, nil
}

// A DeleteRequest is a DELETE of an instance or a binding. The service and
// plan ids are hints: the record decides (CAT-28, UNB-05).
type DeleteRequest struct {
	Caller
	InstanceID, BindingID string
	ServiceID, PlanID     string
}

func (q DeleteRequest) key() lifecycle.Key {
	return lifecycle.Key{Platform: q.Platform, Instance: q.InstanceID, Binding: q.BindingID}
}

// logHints notes ids that do not match the record; they block nothing.
func (b *Broker) logHints(ctx context.Context, q DeleteRequest, serviceID, planID string) {
	if q.ServiceID != serviceID || q.PlanID != planID {
		b.Log.InfoContext(ctx, "deletion names another service or plan than the record; the record counts")
	}
}

var errGone = lifecycle.Refuse(lifecycle.Gone, "")

// Deprovision answers a DELETE of an instance (checklist section 13).
func (b *Broker) Deprovision(ctx context.Context, q DeleteRequest) (Result, error) {
	r, err := decide(ctx, b, func(limited context.Context) (Result, error) {
		now := b.Now()
		i, err := b.Records.Record(limited, q.key(), now)
		if err != nil {
			return Result{}, err
		}
		answer, err := i.OnDelete(q.Received, b.Now())
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
		i, past, err := i.BeginDelete(b.start(q.Caller, plan, now, synchronous))
		if err != nil {
			return Result{}, err
		}
		if err := b.Records.Commit(limited, ledger.Put(i), ledger.PutPast(past)); err != nil {
			return Result{}, err
		}
		b.begun(i)
		if !synchronous {
			b.launch(limited, i)
		}
		return b.follow(ctx, i, !synchronous, Done)
	})
	return b.slowDelete(ctx, q, r, err)
}

// slowDelete answers a deletion that goes on after the wait: it is never
// given up.
func (b *Broker) slowDelete(ctx context.Context, q DeleteRequest, r Result, err error) (Result, error) {
	if !errors.Is(err, errTooSlow) {
		return r, err
	}
	ctx, cancel := b.limited(ctx)
	defer cancel()
	if c, readErr := b.record(ctx, q.key()); q.AcceptsIncomplete && readErr == nil && c.InProgress() {
		return b.accepted(c), nil
	}
	return Result{}, tooSlow("The deletion takes longer than this request can wait and goes on; repeat the request, or send accepts_incomplete=true.")
}

// entomb remembers that a deletion of what does not exist was asked for, so that
// a PUT that was sent before it begins nothing (ORB-03).
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
	if err := i.OnGet(); err != nil {
		return InstanceView{}, err
	}
	parameters, err := b.open(ctx, i.Key, vault.Parameters, i.Attributes.Parameters)
	return InstanceView{
		ServiceID: i.Attributes.ServiceID, PlanID: i.Attributes.PlanID,
		Parameters: parameters, MaintenanceVersion: i.Attributes.MaintenanceVersion, DashboardURL: i.Attributes.DashboardURL,
	}, err
}
