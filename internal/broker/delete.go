package broker

import (
	"context"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// A DeleteRequest is a DELETE of an instance or, with a BindingID, of a binding. Its
// service and plan ids are only hints: the record decides (CAT-28, UNB-05).
type DeleteRequest struct {
	Caller
	InstanceID, BindingID string
	ServiceID, PlanID     string
}

var errGone = lifecycle.RefuseGone()

// Delete answers a DELETE (DEPR-*, UNB-*). The ids of service and plan may be empty for a
// binding that does not exist on an instance that does (UNB-04).
func (b *Broker) Delete(ctx context.Context, q DeleteRequest) (Result, error) {
	d, err := decide(ctx, b, b.decideDelete, q)
	if err != nil {
		return Result{}, err
	}
	result, _, err := b.follow(ctx, q.Caller, d)
	return result, err
}

func (b *Broker) decideDelete(ctx context.Context, q DeleteRequest) (*decision, error) {
	now := b.Now()
	r, err := b.record(ctx, q.key(q.InstanceID, q.BindingID))
	if err != nil {
		return nil, err
	}
	var of lifecycle.Record // the instance, if r is a binding
	if r.IsBinding() {
		if of, err = b.record(ctx, r.Key.InstanceKey()); err != nil {
			return nil, err
		}
	}
	answer, overtaken := r.Answer(lifecycle.Delete, b.conditions(q.Caller, false, nil))
	if (q.ServiceID == "" || q.PlanID == "") && (answer != lifecycle.Missing || !of.Exists()) {
		return nil, lifecycle.RefuseIDsMissing()
	}
	switch {
	case overtaken != nil:
		return nil, overtaken
	case answer == lifecycle.Missing && r.IsBinding() && of.State == lifecycle.Absent:
		return nil, errGone // a late bind would find no instance to begin on
	case answer == lifecycle.Missing:
		return nil, b.entomb(ctx, r, q)
	case answer == lifecycle.Join:
		joined, err := join(r, q.AcceptsIncomplete)
		if err != nil {
			return nil, err
		}
		var changed bool
		if joined.record, changed = r.AskedAgain(q.Received, now); changed {
			err = b.Records.Commit(ctx, ledger.Put(joined.record))
		}
		return joined, err
	}
	return b.beginDelete(ctx, q, r, of)
}

// beginDelete begins the deletion of r. If r is a binding, of is its instance.
func (b *Broker) beginDelete(ctx context.Context, q DeleteRequest, r, of lifecycle.Record) (*decision, error) {
	if q.ServiceID != r.Attributes.ServiceID || q.PlanID != r.Attributes.PlanID {
		b.Log.InfoContext(ctx, "deletion names another service or plan than the record; the record counts")
	}
	_, plan := b.plan(r.Attributes)
	mode := plan.Asynchronous
	var also []ledger.Change
	if r.IsBinding() {
		if _, err := of.Answer(lifecycle.UnbindOn, b.conditions(q.Caller, false, nil)); err != nil {
			return nil, err
		}
		mode = plan.AsynchronousBinding
		// Neither an update nor the deletion of the instance may have begun since.
		also = append(also, ledger.Check(of))
	}
	if r.State == lifecycle.CreateFailed && mode == catalog.Required {
		mode = catalog.Allowed // ORB-06: a failed creation can be removed either way
	}
	synchronous, err := waits(q.AcceptsIncomplete, mode)
	if err != nil {
		return nil, err
	}
	next, err := r.BeginDelete(b.start(ctx, q.Caller, r.Key, plan, synchronous, nil))
	if err != nil {
		return nil, err
	}
	return b.begin(ctx, next, Done, also...)
}

// entomb records a deletion of something that does not exist, so that a PUT that was sent
// before the deletion begins nothing (ORB-03).
func (b *Broker) entomb(ctx context.Context, r lifecycle.Record, q DeleteRequest) error {
	if _, newer := r.AskedAgain(q.Received, b.Now()); r.State == lifecycle.Deleted && !newer {
		return errGone // the deletion is recorded already
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
