package races_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The model is the broker as it would be if it did one thing at a time: what is recorded of two instances that share their
// bindings' ids, and what each request then comes to (IDEM-*, CONC-*). It knows nothing of records, versions and commits.
//
// The end of an operation's work cannot be seen. The model is therefore nondeterministic: before each request, any operation
// that runs may have ended, and any binding of an instance that is being deleted may be gone.
//
// A request that waits for its work is two things, each at one moment between its call and its return: its arrival, where it
// begins or joins an operation, and its departure, where it finds the operation settled.

// Sizes of the model, which is an array so that two of them are compared fast.
const (
	twins = 2  // instances that share the ids of their bindings
	binds = 2  // binding ids
	most  = 96 // operations that one history can begin, and one more
)

// A stage is a state of the lifecycle, as a number.
type stage uint8

const (
	absent stage = iota
	creating
	ready
	updating
	createFailed
	deleting
	deleteFailed
	deleted
)

var stages = [...]string{"absent", "creating", "ready", "updating", "create failed", "deleting", "delete failed", "deleted"}

func (s stage) String() string { return stages[s] }

// gone: there is nothing with this id.
func (s stage) gone() bool { return s == absent || s == deleted }

// A phase is how far an operation is; none is the phase of one that was never begun.
type phase uint8

const (
	none phase = iota
	running
	succeeded
	failed
	cancelled
)

// An operation is what is remembered of one, under its number.
type operation struct {
	phase   phase
	deletes bool
	waited  bool // the request that began it waits for it, or no request did
	given   bool // another request was given its token all the same
}

// A resource is what instances and bindings have in common.
type resource struct {
	stage      stage
	parameters int8
	current    uint8 // the latest operation; 0 for none
	granted    uint8 // what credentials tell: the operation that began the binding, once it has succeeded
	// created is when the request arrived that made what is there, and buried
	// when the last request to delete what has the id did; zero if there was none.
	created, buried span
}

// A span is what is known of a time: no request arrives after it is decided, and
// when that was is known no better than that it was between call and return.
type span struct{ from, to int64 }

// tick is how much later each time on a record is than the one before.
const tick = int64(time.Millisecond)

// later and earlier are the later and the earlier of two times.
func (s span) later(t span) span   { return span{max(s.from, t.from), max(s.to, t.to)} }
func (s span) earlier(t span) span { return span{min(s.from, t.from), min(s.to, t.to)} }

// after is the time, or what comes after the other one if that is later.
func (s span) after(t span) span { return s.later(span{t.from + tick, t.to + tick}) }

// make and bury remember that a request came; see lifecycle's order of requests.
func (r *resource) make(arrived span) {
	r.created = arrived.after(r.created.later(r.buried))
}

func (r *resource) bury(arrived span) {
	r.buried = r.buried.later(arrived.after(r.created))
}

type instance struct {
	resource
	target int8 // of the update that runs
	// deletion is when the deletion that runs began.
	deletion moment
}

// A moment is between the call and the return of a request, by a clock that is never set. Off is how
// far the brokers' clocks were off meanwhile.
type moment struct {
	call, answered int64
	off            span
}

// grain is what the end of until is rounded up to: a binding that may have gone before any of many
// requests would else be in as many states, and the check of one history would take half a minute.
const grain = 50 * int64(time.Millisecond)

// until is what the brokers' clocks may show from this moment on until another one.
func (m moment) until(n moment) span {
	last := n.answered + max(m.off.to, n.off.to)
	return span{m.call + min(m.off.from, n.off.from), last - last%grain + grain}
}

type binding struct {
	resource
	incarnation uint8 // the operation that began it
}

// A state is all that the model remembers. It is never changed in place.
type state struct {
	instances  [twins]instance
	bindings   [twins][binds]binding
	owner      [binds]int8 // whose binding has the id: the instance and 1, or 0
	operations [most]operation
}

// settled are the states that follow when one operation ends, or one binding goes with its instance, before the moment now.
func (s state) settled(now moment) []state {
	var out []state
	end := func(change func(next *state)) {
		next := s
		change(&next)
		out = append(out, next)
	}
	for i := range s.instances {
		in := s.instances[i]
		finish := func(to stage, p phase) {
			end(func(next *state) {
				next.instances[i].stage, next.instances[i].target, next.instances[i].deletion = to, 0, moment{}
				next.operations[in.current].phase = p
				switch {
				case to == deleted:
					next.instances[i].parameters = 0
				case in.stage == updating && p == succeeded:
					next.instances[i].parameters = in.target
				}
			})
		}
		switch in.stage {
		case creating:
			finish(outcome(in.parameters == failsToCreate, createFailed))
		case updating:
			finish(outcome(in.target == failsToUpdate, ready))
		case deleting:
			left, stuck := false, false
			for b, r := range s.bindings[i] {
				if r.stage.gone() {
					continue
				}
				left = true
				stuck = stuck || r.parameters == failsToDelete
				end(func(next *state) { next.remove(i, b, now) })
			}
			if !left {
				finish(deleted, succeeded)
			}
			if stuck || !left && in.parameters == failsToDelete {
				finish(deleteFailed, failed)
			}
		}
		for b, r := range s.bindings[i] {
			finish := func(to stage, p phase) { end(func(next *state) { next.finishBinding(i, b, to, p) }) }
			// It waits for the instance; not for an update that began when its call to the cloud had been made.
			goesOn := in.stage == ready || in.stage == updating
			switch r.stage {
			case creating:
				if in.stage == deleteFailed {
					finish(createFailed, failed)
				} else if goesOn {
					finish(outcome(r.parameters == failsToCreate, createFailed))
				}
			case deleting:
				finish(deleted, succeeded)
				if r.parameters == failsToDelete {
					finish(deleteFailed, failed)
				}
			}
		}
	}
	return out
}

// outcome is what becomes of a creation or an update, and of what it is of.
func outcome(fails bool, then stage) (stage, phase) {
	if fails {
		return then, failed
	}
	return ready, succeeded
}

func (s *state) finishBinding(i, b int, to stage, p phase) {
	r := &s.bindings[i][b]
	s.operations[r.current].phase = p
	r.stage = to
	switch to {
	case ready:
		r.granted = r.incarnation
	case deleted:
		s.strip(i, b)
	}
}

// remove ends a binding with its instance, before the moment now. The time of that is the instance's,
// but never ahead of the worker's clock. It is ahead if the clock has stepped back since.
func (s *state) remove(i, b int, now moment) {
	r := &s.bindings[i][b]
	r.stage = deleted
	if op := &s.operations[r.current]; op.phase == running {
		op.phase = succeeded
		if !op.deletes {
			op.phase = cancelled
		}
	}
	in := s.instances[i]
	r.bury(in.buried.earlier(in.deletion.until(now)))
	s.strip(i, b)
}

func (s *state) strip(i, b int) {
	r := &s.bindings[i][b]
	r.parameters, r.incarnation, r.granted = 0, 0, 0
	if s.owner[b] == int8(i+1) {
		s.owner[b] = 0
	}
}

// reachable is the state itself and all that it may have become without any request, before the moment now.
func (s state) reachable(now moment) []state {
	all := []state{s}
	for n := 0; n < len(all); n++ {
		for _, next := range all[n].settled(now) {
			if !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

func (s state) String() string {
	var b strings.Builder
	for i, in := range s.instances {
		if in.stage == absent && in.buried == (span{}) {
			continue
		}
		fmt.Fprintf(&b, "i%d: %s v%d", i, in.stage, in.parameters)
		if in.stage == updating {
			fmt.Fprintf(&b, " to v%d", in.target)
		}
		if in.current != 0 {
			fmt.Fprintf(&b, " (op %d)", in.current)
		}
		for n, r := range s.bindings[i] {
			if r.stage != absent {
				fmt.Fprintf(&b, ", b%d %s v%d (op %d)", n, r.stage, r.parameters, r.current)
			}
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// model is what porcupine checks a history of two twins against.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{state{}} },
	Step: func(s, input, output any) (after []any) {
		q := input.(request)
		for _, now := range s.(state).reachable(q.moment()) {
			for _, next := range now.answer(q, output.(answer)) {
				after = append(after, next)
			}
		}
		return after
	},
	Equal:             func(a, b any) bool { return a.(state) == b.(state) },
	DescribeOperation: func(input, output any) string { return describe(input.(request), output.(answer)) },
	DescribeState:     func(s any) string { return s.(state).String() },
}).ToModel()
