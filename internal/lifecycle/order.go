package lifecycle

import "time"

// Which of two requests for one id came first is told by the order of their
// commits, and by nothing else. But a request may have been held up on its way
// while a later one was answered: then the id has been deleted meanwhile, and
// perhaps been given again. Only of an id that has been deleted before may times
// decide, and only to refuse: no time makes a DELETE of what exists a success
// (ORB-01 to ORB-03; docs/decisions/0016-clocks.md has the table).

const (
	// ClockSkew is how far the clock of whoever decides may be behind those of
	// whoever noted a request's time: what is more than that ahead of the clock is
	// from before the clock stepped back.
	ClockSkew = 100 * time.Millisecond
	// tick is how much later each time on a record is than the one before.
	tick = time.Millisecond
)

// after is now, or what comes after the last time on a record if the clock says
// that it is not later: times on a record never go back.
func after(now, last time.Time) time.Time {
	if next := last.Add(tick); now.Before(next) {
		return next
	}
	return now
}

// last is the latest time of the current operation; zero if there is none.
func (c Course) last() time.Time {
	switch {
	case c.Operation == nil:
		return time.Time{}
	case c.Operation.Settled.After(c.Operation.Started):
		return c.Operation.Settled
	default:
		return c.Operation.Started
	}
}

// overtaken reports whether a request that is decided now arrived before the
// last change of what has its id: before its deletion, or, if it lives again,
// before the request that made this incarnation. It meant what was there then. A
// time from before the clock stepped back is not compared with one from after it.
// The clock is read after the record: else a record that was written in between
// would seem to be from the future.
func (c Course) overtaken(received, now time.Time) bool {
	if c.DeleteReceived.IsZero() {
		return false // this is its first life, and all that can be meant
	}
	by := c.DeleteReceived
	if c.State != Deleted {
		by = c.CreateReceived
	}
	ahead := now.Add(ClockSkew)
	return !received.After(by) && received.After(ahead) == by.After(ahead)
}

// createReceived remembers the request that makes an incarnation.
func (c *Course) createReceived(at, now time.Time) {
	c.CreateReceived = after(earlier(at, now), later(c.CreateReceived, c.DeleteReceived))
}

// deleteReceived remembers the last request to delete: one that was held up on
// its way does not move it back. What the broker deletes by itself, no request
// asks for: its time is zero.
func (c *Course) deleteReceived(at, now time.Time) {
	if !at.IsZero() {
		c.DeleteReceived = later(c.DeleteReceived, after(earlier(at, now), c.CreateReceived))
	}
}

// AskedAgain records that the deletion which runs was asked for once more, and
// reports whether that changes anything. What was sent between the two requests
// is as overtaken as what was sent before the first (ORB-03), and what failed
// before is forgotten (PROV-30).
func (c Course) AskedAgain(received, now time.Time) (Course, bool) {
	before := c
	c = c.clone()
	c.deleteReceived(received, now)
	c.Failed = nil
	return c, before.Failed != nil || !c.DeleteReceived.Equal(before.DeleteReceived)
}

// earlier: no request arrives after it is decided, whatever its time says.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
