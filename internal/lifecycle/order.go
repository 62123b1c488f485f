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
func (r Record) last() time.Time {
	switch {
	case r.Operation == nil:
		return time.Time{}
	case r.Operation.Settled.After(r.Operation.Started):
		return r.Operation.Settled
	default:
		return r.Operation.Started
	}
}

// overtaken reports whether a request that is decided now arrived before the
// last change of what has its id: before its deletion, or, if it lives again,
// before the request that made this incarnation. It meant what was there then. A
// time from before the clock stepped back is not compared with one from after it.
// The clock is read after the record: else a record that was written in between
// would seem to be from the future.
func (r Record) overtaken(received, now time.Time) bool {
	if r.DeleteReceived.IsZero() {
		return false // this is its first life, and all that can be meant
	}
	by := r.DeleteReceived
	if r.State != Deleted {
		by = r.CreateReceived
	}
	ahead := now.Add(ClockSkew)
	return !received.After(by) && received.After(ahead) == by.After(ahead)
}

// createReceived remembers the request that makes an incarnation.
func (r *Record) createReceived(at, now time.Time) {
	r.CreateReceived = after(earlier(at, now), later(r.CreateReceived, r.DeleteReceived))
}

// deleteReceived remembers the last request to delete: one that was held up on
// its way does not move it back. What the broker deletes by itself, no request
// asks for: its time is zero.
func (r *Record) deleteReceived(at, now time.Time) {
	if !at.IsZero() {
		r.DeleteReceived = later(r.DeleteReceived, after(earlier(at, now), r.CreateReceived))
	}
}

// AskedAgain records that the deletion which runs was asked for once more, and
// reports whether that changes anything. What was sent between the two requests
// is as overtaken as what was sent before the first (ORB-03), and what failed
// before is forgotten (PROV-30).
func (r Record) AskedAgain(received, now time.Time) (Record, bool) {
	before := r
	r = r.clone()
	r.deleteReceived(received, now)
	r.Failed = nil
	return r, before.Failed != nil || !r.DeleteReceived.Equal(before.DeleteReceived)
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
