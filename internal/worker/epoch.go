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

// epochOf reads what a target is known to have said; nothing of one that has not
// said who it is, or of a provider without epochs.
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

// tellsEpoch has the provider told of it.
func (w *Worker) tellsEpoch(ctx context.Context, name string, in *provider.Instance) (known lifecycle.TargetEpoch, err error) {
	known, in.Epoch, err = w.epochOf(ctx, name, in.Target)
	return known, err
}

// keepsEpoch records a later epoch than the one that is known. All steps that see a
// new one meet here, and the first one writes it: what stands already is not written
// again. One of another line never takes the place of what is known: only an operator
// can tell which of the two is right.
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

// troubleAgain is how often the same trouble is said: each operation that waits for
// its end meets it at each step.
const troubleAgain = 10 * time.Minute

// troubles are those that were said lately, by what they are.
type troubles struct {
	mu   sync.Mutex
	said map[string]time.Time
}

// due reports whether it is time to say one.
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

// logTrouble says what a person has to end, and reports whether the fault is such.
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
