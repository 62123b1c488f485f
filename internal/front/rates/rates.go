// Package rates holds each platform to a number of requests a second, so that one platform that
// asks without end does not use up what the others need. It counts in this process alone: on AWS,
// each environment of the function counts by itself. It leaves to others who a platform is, and
// what one that asks too much is told.
package rates

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// burst is how many seconds' requests may come at once, as from a platform that catches up.
const burst = 2

// A Limiter counts the requests of platforms. The nil Limiter lets all pass.
type Limiter struct {
	perSecond int
	now       func() time.Time

	mu        sync.Mutex
	platforms map[string]*rate.Limiter
}

// New makes a limiter of requests a second for each platform; nil for zero,
// which is no limit.
func New(perSecond int, now func() time.Time) *Limiter {
	if perSecond == 0 {
		return nil
	}
	return &Limiter{perSecond: perSecond, now: now, platforms: map[string]*rate.Limiter{}}
}

// Take counts a request of a platform that has logged in and gives zero; or it gives the time
// until there is room for one, and counts nothing.
func (l *Limiter) Take(platform string) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// There are as many as the operator let log in.
	of := l.platforms[platform]
	if of == nil {
		of = rate.NewLimiter(rate.Limit(l.perSecond), burst*l.perSecond)
		l.platforms[platform] = of
	}
	now := l.now()
	taken := of.ReserveN(now, 1)
	wait := taken.DelayFrom(now)
	if wait > 0 {
		taken.CancelAt(now)
	}
	return wait
}
