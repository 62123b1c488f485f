package worker

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// troubleAgain is how often the same trouble is logged, since every step of every waiting operation meets it.
const troubleAgain = 10 * time.Minute

// troubleDue reports whether a trouble is to be logged now. It remembers when each trouble was last logged.
func (w *Worker) troubleDue(what string, now time.Time) bool {
	last, said := w.troubles.LoadOrStore(what, now)
	if !said {
		return true
	}
	age := now.Sub(last.(time.Time))
	return (age < 0 || age >= troubleAgain) && w.troubles.CompareAndSwap(what, last, now)
}

// logTrouble logs a fault that only a person can end, and reports whether the fault is of that kind.
func (w *Worker) logTrouble(ctx context.Context, name string, fault error) bool {
	var trouble *target.Trouble
	if !errors.As(fault, &trouble) {
		return false
	}
	if w.troubleDue(name+"\x00"+trouble.Target+"\x00"+trouble.Kind, w.Now()) {
		w.Log.ErrorContext(ctx, "operations wait for a target", "provider", name, "target", trouble.Target,
			"trouble", trouble.Kind, "error", trouble)
		// The kind is no dimension of the metric: a metric for each kind would need an alarm for each.
		w.Metrics.Write(metrics.Labels{}, map[string]string{"provider": name, "target": trouble.Target, "trouble": trouble.Kind},
			metrics.Value{Name: metrics.Trouble, N: 1})
	}
	return true
}
