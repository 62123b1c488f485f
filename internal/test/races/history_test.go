package races_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
)

// A plot is what the clients of one history will ask: all of it follows from a
// seed. Which request meets which is up to the machine.
type plot struct {
	before  []planned // one after the other
	clients [][]planned
	// off is how far the brokers' clocks are off until the clients come: then they are set right.
	off time.Duration
}

// A planned request names its group of twins, and what it waits before it is sent and on its way.
type planned struct {
	request
	group     int
	pause     time.Duration
	underway  time.Duration
	amiss     time.Duration // how far the clock is off of whatever it arrives at
	recollect uint64        // which of the tokens known by then is polled
	// sets says that the brokers' clocks are set before it, to be so far off.
	sets *time.Duration
}

// Tastes are how often each verb is asked for, in the order of the verbs.
var (
	everything = taste{22, 12, 12, 18, 10, 7, 6, 7, 6}
	instances  = taste{25, 16, 22, 6, 4, 8, 2, 12, 3}
	bindings   = taste{6, 1, 1, 36, 28, 1, 5, 2, 20}
	endings    = taste{12, 2, 16, 44, 4, 4, 8, 2, 8} // of instances that are being bound

	tastes = []taste{everything, instances, bindings, endings}
)

type taste [getBinding + 1]int

func (t taste) pick(r *rand.Rand) verb {
	var each []verb
	for v, n := range t {
		each = append(each, slices.Repeat([]verb{verb(v)}, n)...)
	}
	return each[r.IntN(len(each))]
}

func newPlot(seed uint64, z size) plot {
	r := rand.New(rand.NewPCG(seed, 0))
	p := plot{clients: make([][]planned, z.clients)}
	// Most requests are alike, so that they meet their repetitions.
	usual := int8(1 + r.IntN(2))
	if r.IntN(8) == 0 {
		usual = []int8{failsToCreate, failsToDelete}[r.IntN(2)]
	}
	parameters := func() int8 {
		if r.IntN(20) < 17 {
			return usual
		}
		return []int8{1, 2, failsToCreate, failsToDelete}[r.IntN(4)]
	}
	weights := tastes[r.IntN(len(tastes))]
	if z.taste != nil {
		weights = *z.taste
	}
	if r.IntN(3) == 0 {
		p.off = anHour(r)
	}
	for group := range z.groups {
		for i := range twins {
			if r.IntN(4) != 0 {
				p.before = append(p.before, planned{group: group,
					request: request{verb: provision, instance: i, parameters: usual}})
			}
			for p.off != 0 && r.IntN(4) != 0 { // tombstones, and what lives again
				q := request{verb: []verb{provision, bind, unbind, deprovision}[r.IntN(4)], instance: i, binding: r.IntN(binds),
					parameters: usual}
				p.before = append(p.before, planned{group: group, request: q})
			}
		}
	}
	amiss := r.IntN(3) == 0
	for n := range p.clients {
		for range z.requests {
			q := planned{group: r.IntN(z.groups), recollect: r.Uint64(), pause: time.Duration(r.IntN(1000)) * time.Microsecond}
			q.instance, q.binding, q.permitted = r.IntN(3)/2, r.IntN(3)/2, r.IntN(10) < 7
			q.parameters = parameters()
			if q.verb = weights.pick(r); q.verb == update {
				q.parameters = []int8{1, 2, 3, failsToUpdate, failsToDelete}[r.IntN(5)]
			}
			if q.verb < pollInstance && r.IntN(6) == 0 {
				q.underway = time.Duration(r.IntN(25_000)) * time.Microsecond
				if r.IntN(8) == 0 { // longer than clocks may differ
					q.underway += lifecycle.ClockSkew
				}
			}
			if amiss && q.verb < pollInstance && r.IntN(4) == 0 {
				q.amiss = anHour(r)
			}
			p.clients[n] = append(p.clients[n], q)
		}
	}
	if r.IntN(3) == 0 { // midway
		step := anHour(r)
		p.clients[r.IntN(z.clients)][r.IntN(z.requests)].sets = &step
	}
	return p
}

// anHour is up to an hour, back or on.
func anHour(r *rand.Rand) time.Duration {
	return time.Duration(r.Int64N(int64(2*time.Hour))) - time.Hour
}

// A history is what one group of twins saw.
type history struct {
	elements []porcupine.Operation
	numbers  map[string]uint8 // of operations, in the order in which they were heard of
	known    map[names][]known
	faults   []string // answers that no state allows
}

type known struct {
	token  string
	number uint8
}

// A chronicle records the histories of all groups.
type chronicle struct {
	*arena
	began  int64
	mu     sync.Mutex
	groups []*history
}

func newChronicle(a *arena, groups int) *chronicle {
	c := &chronicle{arena: a, began: now().UnixNano()}
	for range groups {
		c.groups = append(c.groups, &history{numbers: map[string]uint8{}, known: map[names][]known{}})
	}
	return c
}

func (h *history) number(operation string) uint8 {
	if operation == "" {
		return 0
	}
	if _, ok := h.numbers[operation]; !ok {
		h.numbers[operation] = uint8(len(h.numbers) + 1)
	}
	return h.numbers[operation]
}

func namesOf(group int, q request) names {
	n := names{instance: fmt.Sprintf("g%d-i%d", group, q.instance)}
	if q.verb.ofBinding() {
		n.binding = fmt.Sprintf("g%d-b%d", group, q.binding)
	}
	return n
}

// send asks and records.
func (c *chronicle) send(client int, p planned) answer {
	q, h, about := p.request, c.groups[p.group], namesOf(p.group, p.request)
	token := ""
	if q.verb == pollInstance || q.verb == pollBinding {
		c.mu.Lock()
		if all := h.known[about]; len(all) > 0 && p.recollect%4 != 0 {
			k := all[p.recollect/4%uint64(len(all))]
			token, q.polled = k.token, k.number
		}
		c.mu.Unlock()
	}
	time.Sleep(p.pause)
	q.sent = c.now().Add(p.amiss).UnixNano()
	time.Sleep(p.underway)
	call, off := now().UnixNano(), c.off.Load()
	r := c.ask(client, q, about, token)
	answered, then := now().UnixNano(), c.off.Load()
	// If the clock was set meanwhile, nobody knows by which of the two it was decided.
	q.off = span{min(off, then), max(off, then)}
	q.call, q.answered = call+q.off.from, answered+q.off.to

	c.mu.Lock()
	defer c.mu.Unlock()
	a := answer{effect: r.Effect}
	refusal := r.refusal()
	switch {
	case refusal != nil:
		a.effect, a.refused = 0, refusal.Reason
	case r.err != nil:
		h.faults = append(h.faults, fmt.Sprintf("client %d: %v: %v", client, q, r.err))
	case q.verb >= pollInstance:
		a.effect = shown
	}
	if r.err == nil {
		a.parameters, a.granted = decoded(r.parameters), h.number(r.credentials())
	}
	learn := func(t lifecycle.Token) {
		a.operation = h.number(t.Operation)
		if k := (known{t.String(), a.operation}); !slices.Contains(h.known[about], k) {
			h.known[about] = append(h.known[about], k)
		}
	}
	if r.poll != nil {
		learn(r.poll.Token)
		a.phase = map[lifecycle.Phase]phase{lifecycle.InProgress: running, lifecycle.Succeeded: succeeded,
			lifecycle.Failed: failed}[r.poll.Operation.Phase]
		if r.poll.Operation.Cancelled {
			a.phase = cancelled
		}
	}
	if a.effect == broker.Accepted {
		learn(r.Token)
	}
	record := func(q request, a answer) {
		h.elements = append(h.elements,
			porcupine.Operation{ClientId: client, Input: q, Call: call - c.began, Output: a, Return: answered - c.began})
	}
	if r.note.waited == "" {
		record(q, a)
		return a
	}
	a.operation, a.undone = h.number(r.note.waited), h.number(r.note.started)
	a.slow = refusal != nil && refusal.Reason == lifecycle.OperationFailed && refusal.Cause != nil
	q.part = arrival
	record(q, a)
	q.part = departure
	record(q, a)
	return a
}

// play lets all clients ask at once, and when no operation runs any more asks for what has become of everything.
func (c *chronicle) play(p plot) {
	c.off.Store(int64(p.off))
	for _, q := range p.before {
		c.send(0, q)
	}
	c.off.Store(0)
	var all sync.WaitGroup
	for client, requests := range p.clients {
		all.Go(func() {
			for _, q := range requests {
				if q.sets != nil {
					c.off.Store(int64(*q.sets))
				}
				c.send(client, q)
			}
		})
	}
	all.Wait()
	for group := range c.groups {
		for i := range twins {
			c.close(len(p.clients), planned{request: request{instance: i}, group: group})
		}
	}
}

// close asks what has become of an instance and its bindings.
func (c *chronicle) close(client int, q planned) {
	// settled waits for the latest operation, and reports whether it is a deletion that has failed.
	settled := func(v verb) (broken bool) {
		q.verb = v
		p, settles := c.latest(client, v, namesOf(q.group, q.request))
		if !settles {
			c.groups[q.group].faults = append(c.groups[q.group].faults, fmt.Sprintf("%v: never settles", q.request))
		}
		return settles && p != nil && p.Operation.Kind.Deletes() && p.Operation.Phase == lifecycle.Failed
	}
	look := func(v verb) {
		q.verb = v
		if a := c.send(client, q); v != pollInstance && v != pollBinding && a.effect != shown {
			c.vanished(q)
		}
	}
	broken := settled(pollInstance)
	look(pollInstance)
	look(getInstance)
	if broken {
		// A failed deletion keeps the bindings as they were, also those that were being made: the reaper goes on with them.
		return
	}
	for q.binding = range binds {
		settled(pollBinding)
		look(pollBinding)
		look(getBinding)
	}
}

// vanished requires that the cloud holds nothing of what the broker has not.
func (c *chronicle) vanished(q planned) {
	about := namesOf(q.group, q.request)
	name := about.instance
	if about.binding != "" {
		name += "/" + about.binding
	}
	if c.cloud.holds(name) {
		h := c.groups[q.group]
		h.faults = append(h.faults, fmt.Sprintf("%q was left behind", name))
	}
}

// checkWait bounds the check of one group.
const checkWait = 3 * time.Minute

// verdict says what is wrong with the histories; empty if nothing is.
func (c *chronicle) verdict(t *testing.T) string {
	var b strings.Builder
	for n, h := range c.groups {
		if len(h.numbers) >= most {
			t.Fatalf("%d operations in one history: the model ends at %d", len(h.numbers), most)
		}
		result := porcupine.CheckOperationsTimeout(model, h.elements, checkWait)
		if result == porcupine.Ok && len(h.faults) == 0 {
			continue
		}
		fmt.Fprintf(&b, "group %d", n)
		for _, f := range h.faults {
			fmt.Fprintf(&b, "\n  %s", f)
		}
		switch result {
		case porcupine.Unknown:
			fmt.Fprintf(&b, "\n  not decided within %v: make histories smaller", checkWait)
		case porcupine.Illegal:
			path := ""
			if dir, err := os.MkdirTemp("", "longshore-races-"); err == nil {
				path = filepath.Join(dir, "history.html")
			}
			culprit, err := h.explained(path)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(&b, "\n  no order of these requests explains their answers; to look at: %s\n  where it is first stuck: "+
				"%s", path, culprit)
		}
		b.WriteString("\n" + h.String())
	}
	return b.String()
}

// String is the history, client by client.
func (h *history) String() string {
	var b strings.Builder
	ordered := slices.Clone(h.elements)
	slices.SortStableFunc(ordered, func(x, y porcupine.Operation) int {
		return cmp.Or(cmp.Compare(x.ClientId, y.ClientId), cmp.Compare(x.Call, y.Call))
	})
	client := -1
	for _, e := range ordered {
		if e.ClientId != client {
			client = e.ClientId
			fmt.Fprintf(&b, "  client %d\n", client)
		}
		fmt.Fprintf(&b, "    %8.3f to %8.3f ms  %s\n", float64(e.Call)/1e6, float64(e.Return)/1e6,
			describe(e.Input.(request), e.Output.(answer)))
	}
	return b.String()
}

func (h *history) illegal() bool {
	return porcupine.CheckOperationsTimeout(model, h.elements, checkWait) == porcupine.Illegal
}

// explained names the first request to return that the order which came
// furthest leaves out, and writes all orders as HTML, unless path is empty.
func (h *history) explained(path string) (culprit string, err error) {
	_, info := porcupine.CheckOperationsVerbose(model, h.elements, checkWait)
	var furthest []int
	for _, order := range info.PartialLinearizations()[0] {
		if len(order) > len(furthest) {
			furthest = order
		}
	}
	var first *porcupine.Operation
	for n := range h.elements {
		if e := &h.elements[n]; !slices.Contains(furthest, n) && (first == nil || e.Return < first.Return) {
			first = e
		}
	}
	if first != nil {
		culprit = fmt.Sprintf("client %d, %.3f ms: %s", first.ClientId, float64(first.Call)/1e6,
			describe(first.Input.(request), first.Output.(answer)))
	}
	if path != "" {
		err = porcupine.VisualizePath(model, info, path)
	}
	return culprit, err
}
