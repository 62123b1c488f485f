package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// troubleAgain is how often the same trouble is logged, since every step of every waiting operation meets it.
const troubleAgain = 10 * time.Minute

// troubles holds the time when each trouble was last logged.
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

// logTrouble logs a fault that only a person can end, and reports whether the fault is of that kind.
func (w *Worker) logTrouble(ctx context.Context, name string, fault error) bool {
	var trouble *target.Trouble
	if !errors.As(fault, &trouble) {
		return false
	}
	if w.troubles.due(name+"\x00"+trouble.Target+"\x00"+trouble.Kind, w.Now()) {
		w.Log.ErrorContext(ctx, "operations wait for a target", "provider", name, "target", trouble.Target,
			"trouble", trouble.Kind, "error", trouble)
		// The kind is no dimension of the metric: a metric for each kind would need an alarm for each.
		w.Metrics.Write(nil, map[string]string{"provider": name, "target": trouble.Target, "trouble": trouble.Kind},
			metrics.Value{Name: metrics.Trouble, N: 1})
	}
	return true
}
