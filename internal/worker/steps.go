package worker

import (
	"strings"
	"sync"

	"github.com/longshore/longshore/internal/lifecycle"
)

// A lease's time says when its step is certainly over, by a clock that goes on.
// A laptop's does not: while it sleeps, a step stands still in front of its call,
// and goes on when its lease has long run out. A process that is alone therefore
// knows its steps from memory: those that live, those that have ended without
// giving their lease up, whose call may still land, and all others, which were
// of a process that is dead.

// steps are those of this process that hold a lease.
type steps struct {
	mark   string // at the head of each holder's name
	mu     sync.Mutex
	living map[string]bool
}

// begins names a step that is about to take a lease. It lives until it is over.
func (w *Worker) begins() (holder string) {
	holder = w.steps.mark + w.NewID()
	w.steps.mu.Lock()
	defer w.steps.mu.Unlock()
	w.steps.living[holder] = true
	return holder
}

// over is when a step has ended, however that was.
func (w *Worker) over(holder string) {
	w.steps.mu.Lock()
	defer w.steps.mu.Unlock()
	delete(w.steps.living, holder)
}

// witness tells which steps live; nil where only their leases' times tell.
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
