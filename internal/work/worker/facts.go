package worker

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// inquiryTimeout bounds an inquiry. No caller waits for it, and the next page asks again.
const inquiryTimeout = 10 * time.Second

// Inquire asks the provider of an instance for facts, and records them. It takes no lease,
// since it changes nothing at the provider. Facts that came too late are dropped; after an
// error the last facts stay.
func (w *Worker) Inquire(ctx context.Context, q workflow.Inquiry) {
	ctx, cancel := context.WithTimeout(logs.Begin(ctx), inquiryTimeout)
	defer cancel()
	logs.AddSubject(ctx, q.Key.Platform, q.Key.Instance, "")
	err := w.inquire(ctx, q)
	if err != nil && !errors.Is(err, ledger.ErrConflict) {
		w.Log.WarnContext(ctx, "the facts of an instance could not be read; the next page asks again", "error", err)
	}
}

func (w *Worker) inquire(ctx context.Context, q workflow.Inquiry) error {
	r, err := w.Records.Record(ctx, q.Key, w.Now())
	if err != nil || r.State != lifecycle.Ready || r.Incarnation != q.Incarnation {
		return err
	}
	p, err := w.provider(r.Provider)
	if err != nil {
		return err
	}
	var facts provider.Facts // empty if the provider tells none
	if p.Describer != nil {
		// Like a deletion, an inquiry opens no parameters.
		in, err := w.instanceFor(ctx, r, &lifecycle.Operation{Kind: lifecycle.Deprovision})
		if err != nil {
			return err
		}
		in.Operation = provider.Operation{}
		if _, err := p.Prove(ctx, in); err != nil {
			return err
		}
		if facts, err = p.Describer.Describe(ctx, in); err != nil {
			return err
		}
	}
	return w.Records.Commit(ctx, ledger.Put(ledger.Facts{
		Version: q.Version, Key: q.Key, Incarnation: q.Incarnation, Asked: q.Asked, Answered: w.Now(), Facts: facts,
	}))
}
