package worker

import (
	"strings"

	"github.com/longshore/longshore/internal/lifecycle"
)

// Hazard: on a laptop that sleeps, a step may send its call long after its lease has run out.
// So a process that runs alone remembers its steps. Its live steps hold their leases whatever
// the time. Its steps that ended without giving their leases up may have sent a call that still
// takes effect. All other leases belong to dead processes.

// begins names a step that is about to take a lease. The step counts as alive until over is called.
func (w *Worker) begins() (holder string, over func()) {
	holder = w.mark + w.NewID()
	w.living.Store(holder, nil)
	return holder, func() { w.living.Delete(holder) }
}

// witness returns the witness that tells which steps live; nil if only the times of the leases tell.
func (w *Worker) witness() lifecycle.Witness {
	if !w.Alone {
		return nil
	}
	return func(holder string) lifecycle.Life {
		_, alive := w.living.Load(holder)
		switch {
		case alive:
			return lifecycle.Alive
		case strings.HasPrefix(holder, w.mark):
			return lifecycle.MayLive
		default:
			return lifecycle.Dead
		}
	}
}
