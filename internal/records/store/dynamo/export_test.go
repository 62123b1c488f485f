package dynamo

import (
	"cmp"
	"context"
	"time"
)

// Paused is a store that sleeps, and draws numbers, as a test wants, and whose tries end after try; what is not given stays.
func Paused(s *Store, sleep func(context.Context, time.Duration) error, jitter func() float64, try time.Duration) *Store {
	if sleep != nil {
		s.sleep = sleep
	}
	if jitter != nil {
		s.jitter = jitter
	}
	s.tryTimeout = cmp.Or(try, s.tryTimeout)
	return s
}

// ShardOf is where the index has a record.
var ShardOf = shardOf
