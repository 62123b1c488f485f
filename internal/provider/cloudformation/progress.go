package cloudformation

import (
	"fmt"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// progress returns a status that says how many resources are complete and names one in progress.
func (s *step) progress() provider.Status {
	status := s.now.stack.status
	st := s.working(3, doing(status), s.pause())
	total := len(s.m.Resources)
	if total == 0 {
		return st
	}
	settled, current := s.now.stack.progress()
	st.Percent = min(95, 5+90*settled/max(total, settled))
	st.Description = fmt.Sprintf("%s: %d of %d resources complete", st.Description, settled, max(total, settled))
	if current != "" {
		st.Description += ", " + current + " in progress"
	}
	return st
}

// doing says what CloudFormation does with a stack that has this status.
func doing(status string) string {
	switch {
	case strings.HasPrefix(status, "DELETE"), status == rollbackInProgress:
		return "Deleting"
	case strings.Contains(status, "ROLLBACK"):
		return "Undoing the update"
	case strings.HasPrefix(status, "UPDATE"):
		return "Updating"
	}
	return "Creating"
}

// progress counts the resources that the present operation of the stack has finished, and names one
// that is in progress.
func (s *stack) progress() (settled int, current string) {
	seen := map[string]bool{}
	for _, e := range s.events {
		if e.whole {
			break // earlier events belong to another operation
		}
		if seen[e.logical] {
			continue
		}
		seen[e.logical] = true
		if busy(e.status) {
			current = e.logical
		} else if strings.HasSuffix(e.status, "_COMPLETE") {
			settled++
		}
	}
	return settled, current
}

// pause grows with the age of the operation: its end is seen after a quarter of its time too late
// at most, and a long operation takes few looks.
func (s *step) pause() time.Duration {
	return max(time.Second, min(s.p.Now().Sub(s.in.Operation.Started)/4, time.Minute))
}
