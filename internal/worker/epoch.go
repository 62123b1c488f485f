package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/metrics"
	"github.com/longshore/longshore/internal/provider"
)

// epochOf reads the latest epoch that a target is known to have said. It reads nothing
// if the target has not said who it is, or if the provider has no epochs.
func (w *Worker) epochOf(ctx context.Context, name string, t provider.Target) (lifecycle.TargetEpoch, provider.Epoch, error) {
	if !w.Providers[name].Epochs {
		return lifecycle.TargetEpoch{}, provider.Epoch{}, nil
	}
	known := lifecycle.TargetEpoch{Provider: name}
	if t.Identity == "" {
		return known, provider.Epoch{}, nil
	}
	known, err := w.Records.Epoch(ctx, name, t.Identity)
	if err != nil {
		return known, provider.Epoch{}, fmt.Errorf("reading what target %q has said of itself: %w", t.Name, err)
	}
	return known, provider.Epoch{Line: known.Line, Count: known.Count}, nil
}

// tellsEpoch sets the target's known epoch in what the provider is told.
func (w *Worker) tellsEpoch(ctx context.Context, name string, in *provider.Instance) (known lifecycle.TargetEpoch, err error) {
	known, in.Epoch, err = w.epochOf(ctx, name, in.Target)
	return known, err
}

// keepsEpoch records an epoch that is later than the known one. All steps that see a
// new epoch write the same record: the first one wins, and the others find it written.
// An epoch of another line is never recorded, since only an operator can tell which
// line is right.
func (w *Worker) keepsEpoch(ctx context.Context, known lifecycle.TargetEpoch, status provider.Status) error {
	said := status.Epoch
	if known.Identity == "" && status.Target != nil {
		known.Identity = status.Target.Identity
	}
	if known.Provider == "" || known.Identity == "" || said == (provider.Epoch{}) {
		return nil
	}
	read := known.Version > 0
	return repeat(ctx, func(ctx context.Context, first bool) (err error) {
		if !first || !read {
			if known, err = w.Records.Epoch(ctx, known.Provider, known.Identity); err != nil {
				return err
			}
		}
		if known.Version > 0 && (known.Line != said.Line || known.Count >= said.Count) {
			return nil
		}
		known.Line, known.Count = said.Line, said.Count
		return w.Records.Commit(ctx, ledger.PutEpoch(known))
	})
}

// troubleAgain is how often the same trouble is logged: every step of every operation
// that waits for its end meets it.
const troubleAgain = 10 * time.Minute

// troubles are when each trouble was last logged.
type troubles struct {
	mu   sync.Mutex
	said map[string]time.Time
}

// due reports whether a trouble is to be logged now.
func (t *troubles) due(what string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, ok := t.said[what]; ok && now.Sub(last) < troubleAgain && !now.Before(last) {
		return false
	}
	if t.said == nil {
		t.said = map[string]time.Time{}
	}
	t.said[what] = now
	return true
}

// logTrouble logs a fault that only a person can end, and reports whether it is one.
func (w *Worker) logTrouble(ctx context.Context, name string, fault error) bool {
	var trouble *provider.Trouble
	if !errors.As(fault, &trouble) {
		return false
	}
	if w.troubles.due(name+"\x00"+trouble.Target+"\x00"+trouble.Kind, w.Now()) {
		w.Log.ErrorContext(ctx, "operations wait for a target", "provider", name, "target", trouble.Target, "trouble", trouble.Kind,
			"error", trouble)
		// What kind it is stands beside it: a metric for each would be an alarm for each.
		w.Metrics.Write(nil, map[string]string{"provider": name, "target": trouble.Target, "trouble": trouble.Kind},
			metrics.Value{Name: metrics.Trouble, N: 1})
	}
	return true
}
