package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
)

// A question is one call of a provider about an instance, made at the epoch of the instance's target.
type question struct {
	in provider.Instance
	// ask makes the call; in now has the epoch.
	ask func(ctx context.Context, p wired.Provider, in provider.Instance) (provider.Status, error)
	// evicts says that the call removes a binding. The binding's connections may be what
	// prevents a raise of the target.
	evicts bool
}

// question builds the provider's call for an operation on the record.
func (w *Worker) question(ctx context.Context, s reading, op *lifecycle.Operation) (question, error) {
	switch {
	case op.Kind == lifecycle.Quarantine, op.Kind == lifecycle.Release:
		return locking(s.record)
	case s.record.IsBinding():
		b, err := w.bindingFor(ctx, s.instance, s.record, op)
		return question{b.Instance, func(ctx context.Context, p wired.Provider, in provider.Instance) (provider.Status, error) {
			b.Instance = in
			if op.Kind == lifecycle.Bind {
				return p.Provider.Bind(ctx, b)
			}
			return p.Provider.Unbind(ctx, b)
		}, op.Kind != lifecycle.Bind}, err
	}
	in, err := w.instanceFor(ctx, s.record, op)
	if err == nil && op.Source != nil {
		in.Source, err = w.sourceFor(ctx, s.source)
	}
	return question{in, func(ctx context.Context, p wired.Provider, in provider.Instance) (provider.Status, error) {
		switch op.Kind {
		case lifecycle.Provision:
			if s.record.Undeletes != nil { // its logins were locked while it was kept
				can, err := adopter(p)
				if err == nil {
					err = can.Release(ctx, holdingOf(in, s.record.Created))
				}
				if err != nil {
					return provider.Status{}, err
				}
			}
			return p.Provider.Provision(ctx, in)
		case lifecycle.Update:
			return p.Provider.Update(ctx, in)
		default:
			return p.Provider.Deprovision(ctx, in)
		}
	}, false}, err
}

// instanceFor describes an instance to the provider; for an update, the updated instance. For a
// deletion neither it nor the functions below open parameters: a deletion must work even if the
// key is lost or the record is damaged.
func (w *Worker) instanceFor(ctx context.Context, i lifecycle.Record, op *lifecycle.Operation) (provider.Instance, error) {
	a, former := i.Attributes, json.RawMessage(nil)
	if op.Kind == lifecycle.Update && op.Target != nil {
		a, former = *op.Target, a.Snapshot
	}
	_, plan, _ := w.Plans.Plan(a.ServiceID, a.PlanID) // without settings if it has left the catalog
	in := provider.Instance{
		Broker: i.Made.Broker, Platform: i.Key.Platform, ID: i.Key.Instance, Incarnation: i.Incarnation,
		ServiceID: a.ServiceID, PlanID: a.PlanID, Settings: plan.Settings, Operation: provider.Operation{
			ID: op.ID, Kind: op.Kind, Started: op.Started, Deadline: op.Deadline, Synchronous: op.Synchronous,
		},
		Snapshot: a.Snapshot, Former: former, Maintenance: a.MaintenanceVersion, Place: placeOf(a, a.Context),
		Target: i.Made.Target, Origin: i.Made.Origin, Unfinished: i.Unfinished,
	}
	var err error
	if in.State, err = w.stateOf(ctx, i.Key, i.Made, op.Kind.Deletes()); err != nil || op.Kind.Deletes() {
		return in, err
	}
	whole, err := w.open(ctx, i.Key, vault.Context, a.SealedContext)
	switch {
	case err == nil && whole != nil:
		in.Place = placeOf(a, whole)
	case err != nil && !errors.Is(err, vault.ErrSealed): // the operation can do without a sealed context only if it does not open
		return in, err
	}
	in.Parameters, err = w.open(ctx, i.Key, vault.Parameters, a.Parameters)
	return in, err
}

// sourceFor describes the source of a restore to the provider.
func (w *Worker) sourceFor(ctx context.Context, r lifecycle.Record) (*provider.Source, error) {
	state, err := w.stateOf(ctx, r.Key, r.Made, false)
	return &provider.Source{
		Platform: r.Key.Platform, ID: r.Key.Instance, Incarnation: r.Incarnation,
		Origin: r.Made.Origin, Snapshot: r.Attributes.Snapshot, Target: r.Made.Target,
		State: state,
	}, err
}

// bindingFor describes a binding to the provider, with its instance as the binding knows it.
func (w *Worker) bindingFor(
	ctx context.Context, i, b lifecycle.Record, op *lifecycle.Operation,
) (out provider.Binding, err error) {
	if i.Incarnation != b.InstanceIncarnation { // another life now has the instance's id
		i = lifecycle.Record{}
	}
	if op.Kind != lifecycle.Unbind {
		// Without a snapshot, a provider would make a principal without any rights, or drop data that the plan keeps.
		i.Attributes.Snapshot = w.snapshot(i.Attributes)
	}
	i.Key, i.Incarnation = b.Key.InstanceKey(), b.InstanceIncarnation
	// The binding's own plan is the plan that it was made with. Since an update, the instance's plan may differ.
	i.Attributes.ServiceID, i.Attributes.PlanID = b.Attributes.ServiceID, b.Attributes.PlanID
	i.Made.Broker, i.Made.Target, i.Made.Origin = b.Made.Broker, b.Made.Target, b.Made.Origin
	out = provider.Binding{ID: b.Key.Binding, Incarnation: b.Incarnation, AppGUID: b.AppGUID, Route: b.Route}
	if out.Instance, err = w.instanceFor(ctx, i, op); err != nil {
		return out, err
	}
	if out.State, err = w.stateOf(ctx, b.Key, b.Made, op.Kind.Deletes()); err != nil || op.Kind.Deletes() {
		return out, err
	}
	if out.Parameters, err = w.open(ctx, b.Key, vault.Parameters, b.Attributes.Parameters); err != nil {
		return out, err
	}
	out.Secret, err = w.open(ctx, b.Key, vault.Secret, b.Secret)
	return out, err
}

// placeOf returns the place where an instance was ordered, in terms that fit any platform.
func placeOf(a lifecycle.Attributes, context json.RawMessage) provider.Place {
	var said struct {
		Name         string `json:"instance_name"`
		Organization string `json:"organization_guid"`
		Space        string `json:"space_guid"`
		Namespace    string `json:"namespace"`
	}
	_ = json.Unmarshal(context, &said) // members that cannot be read count as not given
	return provider.Place{
		Organization: cmp.Or(a.OrganizationGUID, said.Organization),
		Space:        cmp.Or(said.Namespace, a.SpaceGUID, said.Space),
		InstanceName: said.Name,
	}
}

// stateOf opens the provider's state. A deletion works without the state, whose key may be
// lost: the provider then finds its things by their labels.
func (w *Worker) stateOf(ctx context.Context, key lifecycle.Key, made lifecycle.Made, deletes bool) (provider.State, error) {
	if made.State == nil {
		return provider.ParseState(made.Found)
	}
	plain, err := w.open(ctx, key, vault.State, made.State)
	if err != nil && deletes && ctx.Err() == nil {
		w.Log.WarnContext(ctx, "the provider's state does not open; the step goes on without it", "error", err)
		return provider.State{}, nil
	}
	if err != nil {
		return provider.State{}, err
	}
	return provider.ParseState(plain)
}

// errStateSize fails an operation: asking the provider again would give the same state.
var errStateSize = errors.New("a provider's state, or its target, is larger than a record can hold")

// remembers returns the record with the state and the target of the provider's answer.
func (w *Worker) remembers(ctx context.Context, r lifecycle.Record, v verdict) (lifecycle.Record, error) {
	if t := v.Target; t != nil && !r.IsBinding() {
		if len(t.Name) > limits.CatalogText || len(t.Identity) > limits.CatalogText {
			return r, errStateSize
		}
		r.Made.Target = *t
	}
	switch s := v.State; {
	case s == nil:
		return r, nil
	case s.Format == 0 && len(s.Data) == 0:
		r.Made.State, r.Made.Found = nil, nil
		return r, nil
	case len(s.Data) > limits.State || s.Format < 0:
		return r, errStateSize
	}
	sealed, err := w.Vault.Seal(ctx, vault.Label{Key: r.Key, Member: vault.State}, v.State.Encode())
	if err != nil {
		return r, fmt.Errorf("sealing a provider's state: %w", err)
	}
	r.Made.State, r.Made.Found = sealed, nil
	return r, nil
}
