package cloudformation

import (
	"context"
	"time"
)

// How many percent of what an account allows may be used before an operator is warned.
const warnAt = 80

// roomTime is how long a count of stacks is believed.
const roomTime = 5 * time.Minute

// A room is how much of what an account allows was used, in percent.
type room struct {
	percent int
	until   time.Time // it is believed
}

// roomy refuses a stack that the account has no room for, and warns before that.
func (s *step) roomy(ctx context.Context) error {
	counted, _ := s.p.rooms.Get(s.name)
	if !s.p.now().Before(counted.until) {
		n, most, err := s.room(ctx)
		if err != nil {
			s.p.log.WarnContext(ctx, "the stacks of a target are not counted", "target", s.name, "error", err)
			most = 0 // a creation says itself if there is no room
		}
		counted = room{until: s.p.now().Add(roomTime)}
		if most > 0 {
			counted.percent = 100 * n / most
		}
		s.p.rooms.Put(s.name, counted)
	}
	switch used := counted.percent; {
	case used >= 100:
		s.p.log.ErrorContext(ctx, "a target has as many stacks as its account allows", "target", s.name,
			"remedy", "raise the quota of stacks in Service Quotas, or delete stacks that are not needed")
		return refusal("The service's account is full. Ask the operator of the service for more room.")
	case used >= warnAt:
		s.p.log.WarnContext(ctx, "a target has nearly as many stacks as its account allows", "target", s.name, "percent", used,
			"remedy", "raise the quota of stacks in Service Quotas")
	}
	return nil
}
