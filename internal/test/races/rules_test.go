package races_test

import (
	"cmp"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
)

// A verb is what a request asks for.
type verb uint8

const (
	provision verb = iota
	update
	deprovision
	bind
	unbind
	pollInstance
	pollBinding
	getInstance
	getBinding
)

var verbs = [...]string{"PUT", "PATCH", "DELETE", "PUT", "DELETE", "POLL", "POLL", "GET", "GET"}

func (v verb) ofBinding() bool {
	return v == bind || v == unbind || v == pollBinding || v == getBinding
}

// Parameters that decide how operations end; the others succeed. A deletion
// that fails does so once: which one, the model need not know.
const (
	failsToCreate = 7
	failsToUpdate = 8
	failsToDelete = 9
)

// A part says which of the moments of a request an element of a history is.
type part uint8

const (
	whole part = iota
	arrival
	departure
)

// A request is what a client asks.
type request struct {
	verb              verb
	part              part
	instance, binding int
	parameters        int8
	permitted         bool  // accepts_incomplete
	sent              int64 // when it says that it arrived: before the call, if it was held up, or if clocks are off at any time
	polled            uint8 // the operation that is asked for; 0 for the latest
	call, answered    int64 // when, in nanoseconds of the brokers' clock
	off               span  // how far that was off meanwhile
}

// moment is when the request was on its way, by a clock that is never set.
func (q request) moment() moment { return moment{q.call - q.off.from, q.answered - q.off.to, q.off} }

// shown is the effect of a request that only reads.
const shown broker.Effect = 100

// An answer is what a client is told.
type answer struct {
	effect  broker.Effect // 0 for a refusal
	refused lifecycle.Reason
	// operation is the one that was accepted, waited for, or shown.
	operation  uint8
	parameters int8
	granted    uint8 // the operation that the credentials are of
	phase      phase
	slow       bool  // the operation did not settle while the request waited
	undone     uint8 // the deletion that was begun because of it
}

// at is what a request is about: the instance or the binding.
func (s *state) at(q request) *resource {
	if q.verb.ofBinding() {
		return &s.bindings[q.instance][q.binding].resource
	}
	return &s.instances[q.instance].resource
}

// answer gives what the request comes to in this very state: the states after it, none if the answer cannot be right.
func (s state) answer(q request, a answer) []state {
	if q.part == departure {
		return s.depart(q, a)
	}
	r := *s.at(q)
	switch q.verb {
	case provision, bind:
		return s.creation(r, q, a)
	case update:
		return s.update(s.instances[q.instance], q, a)
	case deprovision, unbind:
		return s.deletion(r, q, a)
	case pollInstance, pollBinding:
		return s.poll(r, q, a)
	}
	switch r.stage { // getInstance, getBinding
	case ready, deleteFailed:
		return s.provided(a.effect == shown && a.parameters == r.parameters && a.granted == r.granted)
	case updating, deleting: // GETB-03
		return s.refused(a, lifecycle.ConcurrencyError)
	}
	return s.refused(a, lifecycle.NotFound)
}

// provided is the same state, provided that the answer is right.
func (s state) provided(right bool) []state {
	if right {
		return []state{s}
	}
	return nil
}

func (s state) refused(a answer, r lifecycle.Reason) []state {
	return s.provided(a.effect == 0 && a.refused == r && a.operation == 0)
}

// begin requires an answer that tells of an operation which nobody has heard of before, and enters it.
func (s *state) begin(q request, a answer, success broker.Effect) bool {
	if a.operation == 0 || s.operations[a.operation].phase != none {
		return false
	}
	if q.permitted {
		if q.part != whole || a.effect != broker.Accepted {
			return false
		}
	} else if q.part != arrival || a.effect != 0 && a.effect != success {
		return false
	}
	s.operations[a.operation] = operation{phase: running, deletes: q.verb == deprovision || q.verb == unbind,
		waited: !q.permitted}
	return true
}

// join requires the operation that runs already (PROV-10, PROV-12).
func (s state) join(current uint8, q request, a answer) []state {
	switch {
	case q.permitted:
		if op := &s.operations[current]; op.waited && !op.deletes {
			op.given = true
		}
		return s.provided(q.part == whole && a.effect == broker.Accepted && a.operation == current)
	case s.operations[current].waited:
		return s.provided(q.part == arrival && (a.effect == 0 || a.effect == broker.Done) && a.operation == current)
	}
	return s.refused(a, lifecycle.AsyncRequired)
}

// staysFailed reports whether an operation that has failed goes on saying so (PROV-30):
// not one that only told whoever waited for it.
func (s state) staysFailed(current uint8) bool {
	op := s.operations[current]
	return op.phase == failed && (!op.waited || op.given)
}

// repeatsFailed is a creation that repeats one which has failed (PROV-30): the answers that begin nothing.
func (s state) repeatsFailed(current uint8, q request, a answer) []state {
	switch {
	case !q.permitted:
		return nil
	case s.staysFailed(current):
		return s.provided(q.part == whole && a.effect == broker.Accepted && a.operation == current)
	}
	// It joined the operation, which failed before its token could be given away.
	return s.refused(a, lifecycle.OperationFailed)
}

// arrived is when the request counts as arrived: not after it was decided.
func (q request) arrived() span { return span{min(q.sent, q.call), min(q.sent, q.answered)} }

// overtaken are the two things that may come of a request for an id that was deleted before: refused, if it arrived before
// that deletion, or before the request that made what is there since; and not, if it did not, or if that time is from before
// the clock stepped back.
func (r resource) overtaken(q request) (refused, not bool) {
	if r.buried == (span{}) {
		return false, true
	}
	by := r.created
	if r.stage == deleted {
		by = r.buried
	}
	itself := span{q.sent, q.sent}
	alike := q.maybeAhead(itself) && q.maybeAhead(by) || q.maybeNot(itself) && q.maybeNot(by)
	unlike := q.maybeAhead(itself) && q.maybeNot(by) || q.maybeNot(itself) && q.maybeAhead(by)
	return q.sent <= by.to && alike, q.sent > by.from || unlike
}

// maybeAhead and maybeNot report whether a time may be, or not be, from before the clock of whoever decides stepped back.
func (q request) maybeAhead(s span) bool { return s.to > q.call+lifecycle.ClockSkew.Nanoseconds() }
func (q request) maybeNot(s span) bool   { return s.from <= q.answered+lifecycle.ClockSkew.Nanoseconds() }

// unless gives what may come of a request that may be overtaken.
func (s state) unless(r resource, q request, a answer, otherwise func(s state) []state) (after []state) {
	refused, not := r.overtaken(q)
	if refused {
		after = s.refused(a, lifecycle.ConcurrencyError)
	}
	if not {
		after = append(after, otherwise(s)...)
	}
	return after
}

// depart is the end of a request that has waited for an operation.
func (s state) depart(q request, a answer) []state {
	if a.slow {
		return s.departSlow(q, a)
	}
	switch s.operations[a.operation].phase {
	case succeeded:
		if r := s.bindings[q.instance][q.binding]; q.verb == bind {
			if r.stage != ready || r.incarnation != a.operation {
				return s.provided(a.effect == 0 && a.refused == lifecycle.ConcurrencyError)
			}
			return s.provided(a.effect != 0 && a.granted == a.operation)
		}
		return s.provided(a.effect != 0)
	case cancelled:
		return s.provided(a.effect == 0 && a.refused == lifecycle.ConcurrencyError)
	case failed:
		return s.provided(a.effect == 0 && a.refused == lifecycle.OperationFailed)
	}
	return nil
}

// departSlow is a bind that stops because its instance is being deleted, and that its request turns into a deletion of the
// broker's own, unless it has gone by then, or another request was given its token.
func (s state) departSlow(q request, a answer) []state {
	r := &s.bindings[q.instance][q.binding]
	if q.verb != bind || a.effect != 0 || a.refused != lifecycle.OperationFailed {
		return nil
	}
	op := &s.operations[a.operation]
	if a.undone == 0 {
		return s.provided(op.phase == cancelled || op.phase == failed || op.given)
	}
	if op.given || r.stage != creating || r.current != a.operation || s.operations[a.undone].phase != none {
		return nil
	}
	op.phase = cancelled
	// No request has asked for it: one that may not be answered later waits for it.
	s.operations[a.undone] = operation{phase: running, deletes: true, waited: true}
	r.stage, r.current = deleting, a.undone
	return []state{s}
}

// creation is a provision or a bind.
func (s state) creation(r resource, q request, a answer) []state {
	if s.refusedByOther(q, a) {
		return []state{s}
	}
	same := r.parameters == q.parameters
	if r.stage == createFailed && same {
		if after := s.repeatsFailed(r.current, q, a); after != nil || s.staysFailed(r.current) && q.permitted {
			return after
		}
	}
	begun := func(s state) []state { return s.beginCreation(q, a) }
	switch {
	case r.stage == deleted:
		return s.unless(r, q, a, begun)
	case r.stage == absent, r.stage == createFailed && same:
		return begun(s)
	case !same:
		return s.refused(a, lifecycle.Conflict)
	case r.stage == creating:
		return s.join(r.current, q, a)
	case r.stage == ready:
		return s.provided(a.effect == broker.Done && a.operation == 0 && a.granted == r.granted)
	case r.stage == deleteFailed:
		return s.refused(a, lifecycle.Unprocessable)
	}
	return s.refused(a, lifecycle.ConcurrencyError)
}

func (s state) beginCreation(q request, a answer) []state {
	if q.verb == bind {
		in := s.instances[q.instance]
		switch owner := s.owner[q.binding]; {
		case in.stage.gone():
			return s.refused(a, lifecycle.NotFound)
		case in.stage == createFailed || in.stage == deleteFailed:
			return s.refused(a, lifecycle.Unprocessable)
		case in.stage != ready:
			return s.refused(a, lifecycle.ConcurrencyError)
		case owner != 0 && owner != int8(q.instance+1): // BIND-19
			return s.refused(a, lifecycle.Conflict)
		}
		if _, not := in.overtaken(q); !not {
			return nil // it was for the instance that had the id then: see aside
		}
		s.owner[q.binding], s.bindings[q.instance][q.binding].incarnation = int8(q.instance+1), a.operation
	}
	if !s.begin(q, a, broker.Created) {
		return nil
	}
	r := s.at(q)
	r.stage, r.parameters, r.current, r.granted = creating, q.parameters, a.operation, 0
	r.make(q.arrived())
	return []state{s}
}

func (s state) update(in instance, q request, a answer) []state {
	switch in.stage {
	case absent, deleted:
		return s.refused(a, lifecycle.NotFound)
	case createFailed, deleteFailed:
		return s.refused(a, lifecycle.Unprocessable)
	case updating:
		if in.target == q.parameters {
			return s.join(in.current, q, a)
		}
	case ready:
		return s.unless(in.resource, q, a, func(s state) []state {
			if in.parameters == q.parameters {
				return s.provided(a.effect == broker.Done && a.operation == 0)
			}
			if !s.begin(q, a, broker.Done) {
				return nil
			}
			in.stage, in.target, in.current = updating, q.parameters, a.operation
			s.instances[q.instance] = in
			return []state{s}
		})
	}
	return s.refused(a, lifecycle.ConcurrencyError)
}

// deletion is a deprovision or an unbind.
func (s state) deletion(r resource, q request, a answer) []state {
	if s.refusedByOther(q, a) {
		return []state{s}
	}
	in := s.instances[q.instance]
	begun := func(s state) []state {
		if q.verb == unbind && (in.stage == updating || in.stage == deleting) { // CONC-08
			return s.refused(a, lifecycle.ConcurrencyError)
		}
		if !s.begin(q, a, broker.Done) {
			return nil
		}
		if op := &s.operations[r.current]; op.phase == running {
			op.phase = cancelled
		}
		if q.verb == deprovision {
			s.instances[q.instance].deletion = q.moment()
		}
		r := s.at(q)
		r.stage, r.current = deleting, a.operation
		r.bury(q.arrived())
		return []state{s}
	}
	switch r.stage {
	case absent, deleted:
		if q.verb == deprovision || in.stage != absent {
			r := s.at(q)
			r.stage = deleted
			r.bury(q.arrived())
		}
		return s.refused(a, lifecycle.Gone)
	case updating:
		return s.refused(a, lifecycle.ConcurrencyError)
	case deleting:
		after := s.join(r.current, q, a)
		for n := range after {
			if a.operation != 0 {
				after[n].at(q).bury(q.arrived())
			}
		}
		return after
	case deleteFailed:
		return begun(s)
	}
	return s.unless(r, q, a, begun)
}

// refusedByOther reports a refusal for the instance's sake, or for that of the other holder of the id, whatever the binding
// or the instance has become meanwhile: they are records of their own, read one after the other. What begins anything is
// checked as a whole when it is committed.
func (s state) refusedByOther(q request, a answer) bool {
	in := s.instances[q.instance]
	switch {
	case !q.verb.ofBinding() || a.effect != 0 || a.operation != 0:
		return false
	case a.refused == lifecycle.ConcurrencyError:
		overtaken, _ := in.overtaken(q)
		return q.verb == bind && (in.stage == creating || in.stage == ready && overtaken) || in.stage == updating ||
			in.stage == deleting
	case a.refused == lifecycle.Conflict:
		owner := s.owner[q.binding]
		return q.verb == bind && owner != 0 && owner != int8(q.instance+1)
	}
	return false
}

func (s state) poll(r resource, q request, a answer) []state {
	if r.current == 0 {
		return s.refused(a, lifecycle.NotFound)
	}
	shows := r.current
	if q.polled != 0 && s.operations[q.polled].phase != none {
		shows = q.polled
		if op := s.operations[shows]; op.deletes && op.phase == succeeded {
			return s.refused(a, lifecycle.Gone)
		}
	}
	return s.provided(a.effect == shown && a.operation == shows && a.phase == s.operations[shows].phase)
}

var phases = [...]string{"not begun", "in progress", "succeeded", "failed", "failed, cancelled"}

var effects = map[broker.Effect]string{broker.Created: "created", broker.Done: "done", broker.Accepted: "accepted"}

var reasons = map[lifecycle.Reason]string{
	lifecycle.OperationFailed: "500 operation failed", lifecycle.NotFound: "404", lifecycle.Conflict: "409",
	lifecycle.Gone: "410", lifecycle.Unprocessable: "422", lifecycle.AsyncRequired: "422 AsyncRequired",
	lifecycle.ConcurrencyError: "422 ConcurrencyError",
}

func (q request) String() string {
	out := fmt.Sprintf("%s i%d", verbs[q.verb], q.instance)
	if q.verb.ofBinding() {
		out += fmt.Sprintf("/b%d", q.binding)
	}
	switch q.verb {
	case provision, update, bind:
		out += fmt.Sprintf(" v%d", q.parameters)
	case pollInstance, pollBinding:
		return out + fmt.Sprintf(" op %d", q.polled)
	case getInstance, getBinding:
		return out
	}
	if !q.permitted {
		out += " and wait"
	}
	if held := time.Duration(q.call - q.sent); held.Abs() > time.Millisecond {
		out += fmt.Sprintf(" (sent %v before)", held.Round(time.Microsecond))
	}
	return out
}

func (a answer) String() string {
	out := effects[a.effect]
	switch {
	case a.effect == 0:
		out = cmp.Or(reasons[a.refused], fmt.Sprintf("refused for reason %d", a.refused))
	case a.effect == shown && a.phase != none:
		out = phases[a.phase]
	case a.effect == shown:
		out = fmt.Sprintf("v%d", a.parameters)
	}
	if a.slow {
		out += ", too slow"
	}
	for _, about := range []struct {
		text      string
		operation uint8
	}{{", undone by op %d", a.undone}, {", op %d", a.operation}, {", credentials of op %d", a.granted}} {
		if about.operation != 0 {
			out += fmt.Sprintf(about.text, about.operation)
		}
	}
	return out
}

func describe(q request, a answer) string {
	switch q.part {
	case arrival:
		return fmt.Sprintf("%v → waits for op %d", q, a.operation)
	case departure:
		return fmt.Sprintf("%v → left with %v", q, a)
	}
	return fmt.Sprintf("%v → %v", q, a)
}
