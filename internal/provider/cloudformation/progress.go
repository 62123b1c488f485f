package cloudformation

import (
	"fmt"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// progress says how many resources are ready, and names one that is not.
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

// doing says what CloudFormation does with a stack.
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

// progress counts the resources that the present operation of the stack has finished, and names
// one that it works on.
func (s *stack) progress() (settled int, current string) {
	seen := map[string]bool{}
	for _, e := range s.events {
		if e.whole {
			break // what is earlier is of another operation
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

// pause grows with the time that an operation takes: its end is seen a quarter too late at
// most, and a long one costs few looks.
func (s *step) pause() time.Duration {
	return max(time.Second, min(s.p.Now().Sub(s.in.Operation.Started)/4, time.Minute))
}
