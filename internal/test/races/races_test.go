package races_test

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/store"
)

func asked(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(variable), strconv.Itoa(otherwise)))
	if err != nil || n < 0 {
		t.Fatalf("%s is %d: give a number: %v", variable, n, err)
	}
	return n
}

func seedOf(t *testing.T) int {
	t.Helper()
	seed := asked(t, "SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("run again with SEED=%d", seed)
	return seed
}

// A size says how much one history is, and of what; each group of it is checked
// by itself. Without a taste, the seed chooses one.
type size struct {
	clients, requests, groups int
	taste                     *taste
}

// run plays one history and gives what is wrong with it, and how long it is.
func run(t *testing.T, s store.Store, m mutant, seed int, z size) (wrong string, elements int) {
	t.Helper()
	c := newChronicle(newArena(t, s, m), z.groups)
	c.play(newPlot(uint64(seed), z))
	for _, h := range c.groups {
		elements += len(h.elements)
	}
	return c.verdict(t), elements
}

// budgets are what is run by default.
var budgets = map[string]struct {
	histories, atOnce int
	size
}{
	"Bolt":   {100, 4, size{clients: 5, requests: 10, groups: 2}},
	"Dynamo": {15, 4, size{clients: 5, requests: 10, groups: 2}},
}

// Everything that the model allows, at once, also while clocks are set (IDEM-01 to IDEM-09, CONC-01 to CONC-09).
func TestHistories(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, seed := budgets[name], seedOf(t)
			histories := asked(t, "HISTORIES", b.histories)
			began := time.Now()
			var next, elements atomic.Int64
			var all sync.WaitGroup
			for range min(b.atOnce, histories) {
				all.Go(func() {
					for n := int(next.Add(1)) - 1; n < histories; n = int(next.Add(1)) - 1 {
						t.Run(fmt.Sprintf("Seed%d", seed+n), func(t *testing.T) {
							wrong, length := run(t, open(t), mutant{}, seed+n, b.size)
							if elements.Add(int64(length)); wrong != "" {
								t.Errorf("SEED=%d HISTORIES=1 asks the same again\n%s", seed+n, wrong)
							}
						})
					}
				})
			}
			all.Wait()
			t.Logf("%d histories of %d elements in all, %v", histories, elements.Load(),
				time.Since(began).Round(time.Millisecond))
		})
	}
}

// TestBindingsAreBuriedByTheClock proves that the model knows the time of a binding that goes with its instance: the
// instance's times are an hour ahead, since the clock has stepped back after it was made, and the binding's are right, also in
// its second life. So a bind that was sent before the end of that life is refused (ORB-03), and one that was sent after it is
// not.
func TestBindingsAreBuriedByTheClock(t *testing.T) {
	for sent, want := range map[time.Duration]lifecycle.Reason{
		8500 * time.Millisecond: lifecycle.ConcurrencyError, // before the end
		11 * time.Second:        lifecycle.NotFound,         // after it
	} {
		for _, told := range []lifecycle.Reason{lifecycle.ConcurrencyError, lifecycle.NotFound} {
			h := aged()
			h.tell(request{verb: bind, parameters: 1, permitted: true, sent: int64(sent)}, answer{refused: told})
			if illegal := h.illegal(); illegal != (told != want) {
				t.Errorf("sent at %v: the model takes %s for illegal: %v\n%s", sent, reasons[told], illegal, &h.history)
			}
		}
	}
}

// An aging is a history of requests one after the other, a second each.
type aging struct {
	history
	off time.Duration // of the brokers' clocks
}

// aged is a history of an instance that was made an hour ahead of the clock, and of a binding that has gone with it twice.
func aged() *aging {
	h := &aging{off: time.Hour}
	for _, step := range []struct {
		verb      verb
		operation uint8
	}{
		{provision, 1}, {pollInstance, 1}, {bind, 2}, {deprovision, 3}, {pollInstance, 3},
		{provision, 4}, {pollInstance, 4}, {bind, 5}, {deprovision, 6}, {pollInstance, 6},
	} {
		a := answer{effect: broker.Accepted, operation: step.operation}
		if step.verb == pollInstance {
			a.effect, a.phase = shown, succeeded
		}
		h.tell(request{verb: step.verb, parameters: 1, permitted: true}, a)
		if step.verb == pollInstance {
			h.off = 0
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
