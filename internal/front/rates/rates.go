// Package rates limits the requests per second of each platform, so that a platform that asks
// without end does not use up what the others need. It counts in this process alone: on AWS, each
// environment of the function has its own count. It does not decide who a platform is, nor what a
// platform that asks too much is told.
package rates

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// burst is the number of seconds whose requests may arrive at once, as from a platform that catches
// up.
const burst = 2

// A Limiter counts the requests of platforms. A nil Limiter lets all of them pass.
type Limiter struct {
	perSecond int
	now       func() time.Time

	mu        sync.Mutex
	platforms map[string]*rate.Limiter
}

// New makes a limiter that allows each platform a number of requests per second. Zero means no
// limit, and returns nil.
func New(perSecond int, now func() time.Time) *Limiter {
	if perSecond == 0 {
		return nil
	}
	return &Limiter{perSecond: perSecond, now: now, platforms: map[string]*rate.Limiter{}}
}

// Take counts a request of a platform that has logged in and returns zero; or, if there is no room
// for the request, counts nothing and returns the time until there is.
func (l *Limiter) Take(platform string) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// The map has no more entries than the operator registered platforms.
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
