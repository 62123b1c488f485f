package lifecycle

import "time"

// The order of commits tells which of two requests for one id came first, with one
// exception: a request may be delayed until the id has been deleted, and perhaps used
// again. So times decide only for an id that was deleted before, and they only refuse: no
// time makes the DELETE of an existing instance a success (ORB-01 to ORB-03;
// docs/decisions/0003-order-of-requests.md has the table).

const (
	// ClockSkew is how far the deciding clock may be behind the clock that timed the request.
	// A time that is further ahead was noted before the clock stepped back.
	ClockSkew = 100 * time.Millisecond
	// tick is the least distance between one time on a record and the next.
	tick = time.Millisecond
)

// after returns now or, if last is not earlier, the next time after last: the times on a record never go back.
func after(now, last time.Time) time.Time {
	if next := last.Add(tick); now.Before(next) {
		return next
	}
	return now
}

// last returns the latest time of the current operation; zero if there is none.
func (r Record) last() time.Time {
	if r.Operation == nil {
		return time.Time{}
	}
	return later(r.Operation.Settled, r.Operation.Started)
}

// overtaken reports whether a request arrived before the last deletion of its id or, if the
// id exists again, before the request that created it: it meant the former life. A time
// from before the clock stepped back is not compared with one from after. Read the clock
// after the record: otherwise a record that was written in between seems to come from the
// future.
func (r Record) overtaken(received, now time.Time) bool {
	if r.DeleteReceived.IsZero() {
		return false // the id is in its first life, so nothing else can be meant
	}
	by := r.DeleteReceived
	if r.State != Deleted {
		by = r.CreateReceived
	}
	ahead := now.Add(ClockSkew)
	return !received.After(by) && received.After(ahead) == by.After(ahead)
}

// deleteReceived records when the last request to delete arrived; a delayed request does not move
// the time back. A zero time means that the broker began the deletion by itself, without a request.
func (r *Record) deleteReceived(at, now time.Time) {
	if !at.IsZero() {
		r.DeleteReceived = later(r.DeleteReceived, after(earlier(at, now), r.CreateReceived))
	}
}

// AskedAgain records that the running deletion was requested once more, and reports whether
// the record changed. Requests sent between the two are overtaken too (ORB-03), and the
// earlier failure is forgotten (PROV-30).
func (r Record) AskedAgain(received, now time.Time) (Record, bool) {
	before := r
	r = r.clone()
	r.deleteReceived(received, now)
	r.Failed = nil
	return r, before.Failed != nil || !r.DeleteReceived.Equal(before.DeleteReceived)
}

// earlier returns the earlier time. It also bounds the time of a request by the time of the decision.
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
