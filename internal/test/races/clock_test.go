package races_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
)

// TestBindingsAreBuriedByTheClock proves that the model knows the time of a binding that goes with its
// instance: the instance's times are an hour ahead, since the clock has stepped back after it was made,
// and the binding's are right, also in its second life. So a bind that was sent before the end of that
// life is refused (ORB-03), and one that was sent after it is not.
func TestBindingsAreBuriedByTheClock(t *testing.T) {
	tests := map[string]struct {
		sent time.Duration
		want lifecycle.Reason
	}{
		"SentBeforeTheEnd": {8500 * time.Millisecond, lifecycle.ConcurrencyError},
		"SentAfterTheEnd":  {11 * time.Second, lifecycle.NotFound},
	}
	for name, tc := range tests {
		for _, told := range []lifecycle.Reason{lifecycle.ConcurrencyError, lifecycle.NotFound} {
			h := aged(2)
			h.tell(request{verb: bind, parameters: 1, permitted: true, sent: int64(tc.sent)}, answer{refused: told})
			if illegal := h.illegal(); illegal != (told != tc.want) {
				t.Errorf("%s: the model takes %s for illegal: %v\n%s", name, reasons[told], illegal, &h.history)
			}
		}
	}
}

// An aging is a history of requests one after the other, a second each.
type aging struct {
	history
	off time.Duration // of the brokers' clocks
}

// aged is a history of an instance that was made an hour ahead of the clock, and of a binding that has
// gone with it so many times.
func aged(lives uint8) *aging {
	h := &aging{off: time.Hour}
	h.tell(request{verb: provision, parameters: 1, permitted: true}, answer{effect: broker.Accepted, operation: 1})
	for n := range lives {
		op := 1 + 3*n
		h.tell(request{verb: pollInstance}, answer{effect: shown, operation: op, phase: succeeded})
		h.off = 0
		h.tell(request{verb: bind, parameters: 1, permitted: true}, answer{effect: broker.Accepted, operation: op + 1})
		h.tell(request{verb: deprovision, permitted: true}, answer{effect: broker.Accepted, operation: op + 2})
		h.tell(request{verb: pollInstance}, answer{effect: shown, operation: op + 2, phase: succeeded})
		if n+1 < lives {
			h.tell(request{verb: provision, parameters: 1, permitted: true}, answer{effect: broker.Accepted, operation: op + 3})
		}
	}
	return h
}

// tell adds a request that takes half a second. One that does not say when it was sent was sent then.
func (h *aging) tell(q request, a answer) {
	call := int64(len(h.elements)+1) * int64(time.Second)
	end := call + int64(time.Second)/2
	q.off = span{int64(h.off), int64(h.off)}
	q.call, q.answered = call+q.off.from, end+q.off.to
	if q.sent == 0 {
		q.sent = q.call
	}
	h.elements = append(h.elements, porcupine.Operation{Input: q, Call: call, Output: a, Return: end})
}
