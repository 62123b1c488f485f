package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
)

// A question is one call of a provider about an instance, made at the epoch of the instance's target.
type question struct {
	in  provider.Instance
	ask func(context.Context, wired.Provider, target.Epoch) (provider.Status, error)
	// evicts says that the call removes a binding. The binding's connections may be what
	// prevents a raise of the target.
	evicts bool
}

// question builds the provider's call for an operation on the record.
func (w *Worker) question(ctx context.Context, s reading, op *lifecycle.Operation) (question, error) {
	if s.record.IsBinding() {
		in, err := w.bindingFor(ctx, s.instance, s.record, op)
		if err != nil {
			return question{}, err
		}
		return question{in.Instance, func(ctx context.Context, p wired.Provider, at target.Epoch) (provider.Status, error) {
			in.Instance.Epoch = at
			if op.Kind == lifecycle.Bind {
				return p.Provider.Bind(ctx, in)
			}
			return p.Provider.Unbind(ctx, in)
		}, op.Kind != lifecycle.Bind}, err
	}
	in, err := w.instanceFor(ctx, s.record, op)
	if err == nil && op.Source != nil {
		in.Source, err = w.sourceFor(ctx, s.source, op)
	}
	return question{in, func(ctx context.Context, p wired.Provider, at target.Epoch) (provider.Status, error) {
		in.Epoch = at
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
	if op.Kind == lifecycle.Bind { // without a snapshot, a provider would make a principal without any rights
		a.Snapshot = w.snapshot(a)
	}
	if op.Kind == lifecycle.Update && op.Target != nil {
		a, former = *op.Target, a.Snapshot
	}
	in := provider.Instance{
		Broker: i.Made.Broker, Platform: i.Key.Platform, ID: i.Key.Instance, Incarnation: i.Incarnation,
		ServiceID: a.ServiceID, PlanID: a.PlanID, Settings: w.settings(a.ServiceID, a.PlanID), Operation: provider.Operation{
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
func (w *Worker) sourceFor(ctx context.Context, r lifecycle.Record, op *lifecycle.Operation) (*provider.Source, error) {
	state, err := w.stateOf(ctx, r.Key, r.Made, op.Kind.Deletes())
	return &provider.Source{
		Platform: r.Key.Platform, ID: r.Key.Instance, Incarnation: r.Incarnation,
		Origin: r.Made.Origin, Snapshot: r.Attributes.Snapshot, Target: r.Made.Target,
		State: state,
	}, err
}

// bindingFor describes a binding to the provider.
func (w *Worker) bindingFor(ctx context.Context, i, b lifecycle.Record, op *lifecycle.Operation) (provider.Binding, error) {
	if i.Incarnation != b.InstanceIncarnation { // another life now has the instance's id
		i = lifecycle.Record{}
	}
	in, err := w.instanceFor(ctx, i, op)
	if err != nil {
		return provider.Binding{}, err
	}
	// The binding's own plan is the plan that it was made with. Since an update, the instance's plan may differ.
	in.Incarnation, in.ServiceID, in.PlanID = b.InstanceIncarnation, b.Attributes.ServiceID, b.Attributes.PlanID
	in.Settings = w.settings(in.ServiceID, in.PlanID)
	in.Platform, in.ID = b.Key.Platform, b.Key.Instance
	in.Broker, in.Target, in.Origin = b.Made.Broker, b.Made.Target, b.Made.Origin
	if op.Kind == lifecycle.Deprovision { // without a snapshot, a provider would drop data that the plan keeps
		in.Snapshot = w.snapshot(i.Attributes)
	}
	out := provider.Binding{
		Instance: in, ID: b.Key.Binding, Incarnation: b.Incarnation, AppGUID: b.AppGUID, Route: b.Route,
	}
	if out.State, err = w.stateOf(ctx, b.Key, b.Made, op.Kind.Deletes()); err != nil || op.Kind.Deletes() {
		return out, err
	}
	if out.Parameters, err = w.open(ctx, b.Key, vault.Parameters, b.Attributes.Parameters); err != nil {
		return provider.Binding{}, err
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
	if t := v.target; t != nil && !r.IsBinding() {
		if len(t.Name) > limits.CatalogText || len(t.Identity) > limits.CatalogText {
			return r, errStateSize
		}
		r.Made.Target = *t
	}
	switch s := v.state; {
	case s == nil:
		return r, nil
	case s.Format == 0 && len(s.Data) == 0:
		r.Made.State, r.Made.Found = nil, nil
		return r, nil
	case len(s.Data) > limits.State || s.Format < 0:
		return r, errStateSize
	}
	sealed, err := w.Vault.Seal(ctx, vault.Label{Key: r.Key, Member: vault.State}, v.state.Encode())
	if err != nil {
		return r, fmt.Errorf("sealing a provider's state: %w", err)
	}
	r.Made.State, r.Made.Found = sealed, nil
	return r, nil
}
