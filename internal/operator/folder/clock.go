package folder

import (
	"sync"
	"time"
)

// A clock follows the machine's, and never goes back. Operations, leases and requests of one
// process stay in order when somebody sets the machine's clock back, and when a laptop wakes up.
type clock struct {
	wall    func() time.Time     // may step
	elapsed func() time.Duration // goes on evenly; stands still while the machine sleeps

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

// Now is the machine's time, or the last answer and what has passed since, if that is later.
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

// notBefore lets the clock go on from the last recorded time, and gives how far the machine's
// clock is behind that; zero if it is not.
func (c *clock) notBefore(recorded time.Time) (behind time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if recorded.After(c.last) {
		c.last, c.at = recorded, c.elapsed()
	}
	return max(recorded.Sub(c.wall()), 0)
}

func now() time.Time { return time.Now().UTC() }
