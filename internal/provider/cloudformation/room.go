package cloudformation

import (
	"context"
	"time"
)

// warnAt is the used percentage of the quota from which the operator is warned.
const warnAt = 80

// roomTime is how long a count of stacks is believed that leaves room.
const roomTime = 5 * time.Minute

// A room says how much of an account's quota of stacks is used, in percent.
type room struct {
	percent int
	until   time.Time // the count is believed until then
}

// roomy refuses a new stack if the account is full, and warns before that. It counts again before it
// refuses: stacks may have been deleted, or the quota raised, since the last count.
func (s *step) roomy(ctx context.Context) error {
	counted, _ := s.p.rooms.Get(s.name)
	if counted.percent >= 100 || !s.p.Now().Before(counted.until) {
		n, most, err := s.room(ctx)
		if err != nil {
			s.p.Log.WarnContext(ctx, "the stacks of a target are not counted", "target", s.name, "error", err)
			most = 0 // if the account is full, the creation says so itself
		}
		counted = room{until: s.p.Now().Add(roomTime)}
		if most > 0 {
			counted.percent = 100 * n / most
		}
		s.p.rooms.Put(s.name, counted)
	}
	switch used := counted.percent; {
	case used >= 100:
		s.p.Log.ErrorContext(ctx, "a target has as many stacks as its account allows", "target", s.name,
			"remedy", "raise the quota of stacks in Service Quotas, or delete stacks that are not needed")
		return refusal("The service's account is full. Ask the operator of the service for more room.")
	case used >= warnAt:
		s.p.Log.WarnContext(ctx, "a target has nearly as many stacks as its account allows", "target", s.name, "percent", used,
			"remedy", "raise the quota of stacks in Service Quotas")
	}
	return nil
}
