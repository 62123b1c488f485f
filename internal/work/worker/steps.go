package worker

import (
	"strings"
	"sync"

	"github.com/longshore/longshore/internal/lifecycle"
)

// Hazard: on a laptop that sleeps, a step may send its call long after its lease has run out.
// So a process that runs alone remembers its steps. Its live steps hold their leases whatever
// the time. Its steps that ended without giving their leases up may have sent a call that still
// takes effect. All other leases belong to dead processes.

// steps holds the steps of this process that hold a lease.
type steps struct {
	mark   string // the prefix of each holder's name
	mu     sync.Mutex
	living map[string]bool
}

// begins names a step that is about to take a lease. The step counts as alive until over is called.
func (w *Worker) begins() (holder string) {
	holder = w.steps.mark + w.NewID()
	w.steps.mu.Lock()
	defer w.steps.mu.Unlock()
	w.steps.living[holder] = true
	return holder
}

// over ends a step, whether it succeeded or not.
func (w *Worker) over(holder string) {
	w.steps.mu.Lock()
	defer w.steps.mu.Unlock()
	delete(w.steps.living, holder)
}

// witness returns the witness that tells which steps live; nil if only the times of the leases tell.
func (w *Worker) witness() lifecycle.Witness {
	if !w.Alone {
		return nil
	}
	return func(holder string) lifecycle.Life {
		w.steps.mu.Lock()
		defer w.steps.mu.Unlock()
		switch {
		case w.steps.living[holder]:
			return lifecycle.Alive
		case strings.HasPrefix(holder, w.steps.mark):
			return lifecycle.MayLive
		default:
			return lifecycle.Dead
		}
	}
}
