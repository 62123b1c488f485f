package folder

import (
	"sync"
	"time"
)

// A clock follows the machine's clock, but never goes back. The operations, leases and requests of one
// process thus stay in order when somebody sets the machine's clock back, and when a laptop wakes up.
type clock struct {
	wall    func() time.Time     // may step
	elapsed func() time.Duration // runs evenly; stands still while the machine sleeps

	mu   sync.Mutex
	last time.Time
	at   time.Duration // elapsed, at last
}

func newClock(wall func() time.Time) *clock {
	if wall == nil {
		wall = now
	}
	began := time.Now()
	return &clock{wall: wall, elapsed: func() time.Duration { return time.Since(began) }}
}

// Now returns the machine's time, or the last answer plus the time elapsed since, whichever is later.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.elapsed()
	passed := c.last.Add(max(at-c.at, 0))
	if wall := c.wall(); wall.After(passed) {
		passed = wall
	}
	c.last, c.at = passed, at
	return passed
}

// notBefore lets the clock go on from the last recorded time, and returns how far the machine's
// clock is behind that time; zero if it is not behind.
func (c *clock) notBefore(recorded time.Time) (behind time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if recorded.After(c.last) {
		c.last, c.at = recorded, c.elapsed()
	}
	return max(recorded.Sub(c.wall()), 0)
}

func now() time.Time { return time.Now().UTC() }
