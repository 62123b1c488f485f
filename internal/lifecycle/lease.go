package lifecycle

import (
	"slices"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
)

// A Life says whether the step that took a lease is alive.
type Life int

// The lives.
const (
	MayLive Life = iota // the step may live until its lease runs out
	Alive               // the lease counts, whatever the time
	Dead                // the lease means nothing, whatever the time
)

// A Witness tells whether the holder of a lease lives. A process that has its records to
// itself knows its own live steps, and that all others are dead. A nil Witness knows
// nothing.
type Witness func(holder string) Life

func (w Witness) of(l Lease) Life {
	if w == nil || l.Holder == nobody {
		return MayLive
	}
	return w(l.Holder)
}

// runs reports whether the step may be calling the cloud.
func (l Lease) runs(now time.Time, w Witness) bool {
	life := w.of(l)
	return life == Alive || life == MayLive && l.Until.After(now)
}

// lost reports whether the step has ended without giving its lease up.
func (l Lease) lost(now time.Time, w Witness) bool {
	return w.of(l) == MayLive && !l.Until.After(now)
}

// Busy returns the time until which a step may be calling the cloud, or zero. Steps of this
// operation count too: two callers must not both ask a cloud for a secret that it shows once. A
// step whose call timed out does not keep its own operation waiting. If the machine slept, a step
// may outlive its lease for an unknown time: Busy then returns a moment in the near future.
func (r Record) Busy(operation string, now time.Time, w Witness) time.Time {
	var until time.Time
	for _, l := range r.Leases {
		switch {
		case l.TimedOut && l.Operation == operation || !l.runs(now, w):
		case l.Until.After(now):
			until = later(until, l.Until)
		default:
			until = later(until, now.Add(time.Second))
		}
	}
	return until
}

// Unsure reports whether a call of another operation may still take effect: its lease
// ran out without being given up.
func (r Record) Unsure(operation string, now time.Time, w Witness) bool {
	return r.Wary || slices.ContainsFunc(r.Leases, func(l Lease) bool { return l.Operation != operation && l.lost(now, w) })
}

// Leased lets a step of the current operation call the cloud until the given time. It drops
// expired leases, but stays wary of their calls. A lost call of a creation or update counts
// too: the operation's own later steps need not care, but a deletion that overtakes them must.
func (r Record) Leased(holder string, now, until time.Time, w Witness) Record {
	r = r.clone()
	r.Wary = r.Unsure(r.Operation.ID, now, w) || !r.Operation.Kind.Deletes() && r.Unsure("", now, w)
	r.Leases = slices.DeleteFunc(r.Leases, func(l Lease) bool { return !l.runs(now, w) })
	r.Leases = merged(append(r.Leases, Lease{Holder: holder, Operation: r.Operation.ID, Taken: now, Until: until}))
	r.Due = later(r.Due, until)
	return r
}

// nobody is the holder of merged leases.
const nobody = "nobody"

// merged bounds the number of leases in a record: it merges the two oldest into one that lasts
// as long as both. The merged lease belongs to an operation only if both did, and no step gives
// it up, since either call may still be running.
func merged(leases []Lease) []Lease {
	for len(leases) > limits.Leases {
		a, b := leases[0], &leases[1]
		b.Holder = nobody
		if a.Operation != b.Operation {
			b.Operation = ""
		}
		b.TimedOut = a.TimedOut && b.TimedOut
		b.Taken, b.Until = later(a.Taken, b.Taken), later(a.Until, b.Until)
		leases = leases[1:]
	}
	return leases
}

// Released gives up a step's lease: the step's call has been answered.
func (r Record) Released(holder string) Record {
	r = r.clone()
	r.Leases = slices.DeleteFunc(r.Leases, func(l Lease) bool { return l.Holder == holder })
	if len(r.Leases) == 0 {
		r.Leases = nil
	}
	return r
}

// TimedOut keeps the lease of a step whose call timed out: other operations wait until the
// lease runs out, and the step's own operation goes on.
func (r Record) TimedOut(holder string) Record {
	r = r.clone()
	for i, l := range r.Leases {
		r.Leases[i].TimedOut = l.TimedOut || l.Holder == holder
	}
	return r
}

// BusyItself reports whether a step of this operation may be calling the cloud.
func (r Record) BusyItself(operation string, now time.Time, w Witness) bool {
	return slices.ContainsFunc(r.Leases, func(l Lease) bool {
		return l.Operation == operation && !l.TimedOut && l.runs(now, w)
	})
}

// Holds reports whether the holder's lease has been neither given up nor dropped.
func (r Record) Holds(holder string) bool {
	return slices.ContainsFunc(r.Leases, func(l Lease) bool { return l.Holder == holder })
}

// AbsenceSeen records that a deletion found nothing left, and reports whether that proves
// the absence. While a call of an overtaken operation may still take effect, only a second
// look proves it, SecondLook after the first.
func (r Record) AbsenceSeen(operation string, now time.Time, w Witness) (Record, bool) {
	if !r.Unsure(operation, now, w) {
		return r, true
	}
	r = r.clone()
	r.Wary = true
	if r.AbsentSince.IsZero() {
		r.AbsentSince = now
	}
	return r, !now.Before(r.AbsentSince.Add(SecondLook))
}
