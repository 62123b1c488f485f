package lifecycle_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// The transitions: the state that each event leads to, and the refusals.
const (
	instanceMatrix = `
begin create: absent > creating, create failed > creating, deleted > creating
begin update: ready > updating
begin delete: creating > deleting, ready > deleting, create failed > deleting
begin delete: delete failed > deleting, quarantining > deleting, quarantined > deleting, releasing > deleting
entomb: absent > deleted, deleted > deleted
begin orphan deletion: absent > deleting, deleted > deleting
begin quarantine: absent > quarantining, deleted > quarantining
begin release: quarantining > releasing, quarantined > releasing
succeed: creating > ready, updating > ready, deleting > deleted, quarantining > quarantined, releasing > ready
fail: creating > create failed, updating > ready, deleting > delete failed, quarantining > quarantined, releasing > quarantined
keep: deleting > deleted
remove:
`
	bindingMatrix = `
begin create: absent > creating, create failed > creating, deleted > creating
begin update:
begin delete: creating > deleting, ready > deleting, create failed > deleting
begin delete: delete failed > deleting, quarantining > deleting, quarantined > deleting, releasing > deleting
entomb: absent > deleted, deleted > deleted
begin orphan deletion: absent > deleting, deleted > deleting
begin quarantine: absent > quarantining, deleted > quarantining
begin release: quarantining > releasing, quarantined > releasing
succeed: creating > ready, deleting > deleted, quarantining > quarantined, releasing > ready
fail: creating > create failed, deleting > delete failed, quarantining > quarantined, releasing > quarantined
keep:
remove: creating > deleted, ready > deleted, create failed > deleted, deleting > deleted, delete failed > deleted
`
)

// transitions reads a matrix: the name of the state that comes of each event,
// or a dash. It fails unless each event has a line and each state that is named exists.
func transitions(t *testing.T, matrix string) map[lifecycle.State]map[lifecycle.Event]string {
	t.Helper()
	out, states := map[lifecycle.State]map[lifecycle.Event]string{}, map[string]lifecycle.State{}
	for _, s := range lifecycle.States() {
		states[name(s)], out[s] = s, map[lifecycle.Event]string{}
		for _, e := range lifecycle.Events() {
			out[s][e] = "-"
		}
	}
	read := map[lifecycle.Event]bool{}
	for _, line := range strings.Split(strings.TrimSpace(matrix), "\n") {
		event, ways, _ := strings.Cut(line, ":")
		read[lifecycle.Event(event)] = true
		for _, way := range strings.Split(ways, ",") {
			from, to, leads := strings.Cut(strings.TrimSpace(way), " > ")
			if !leads {
				continue // it is refused in every state
			}
			s, known := states[from]
			if _, exists := states[to]; !known || !exists || out[s][lifecycle.Event(event)] != "-" {
				t.Fatalf("event %q: %q is no way, or a second one", event, way)
			}
			out[s][lifecycle.Event(event)] = to
		}
	}
	for _, e := range lifecycle.Events() {
		if !read[e] {
			t.Fatalf("event %q has no line", e)
		}
	}
	if len(read) != len(lifecycle.Events()) {
		t.Fatalf("the matrix has %d events, not %d", len(read), len(lifecycle.Events()))
	}
	return out
}

// States and Events list every constant of their types: what is added to the
// one and not to the other would never be tested.
func TestListsAreComplete(t *testing.T) {
	file := expect.Get(parser.ParseFile(token.NewFileSet(), "state.go", nil, 0))(t)
	declared := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		kind, ok := spec.Type.(*ast.Ident)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			value := expect.Get(strconv.Unquote(literal.Value))(t)
			declared[kind.Name] = append(declared[kind.Name], value)
		}
		return true
	})
	listed := map[string][]string{}
	for _, s := range lifecycle.States() {
		listed["State"] = append(listed["State"], string(s))
	}
	for _, e := range lifecycle.Events() {
		listed["Event"] = append(listed["Event"], string(e))
	}
	same(t, "constants, and what is listed", declared, listed)
}

func TestInstanceTransitions(t *testing.T) { testTransitions(t, instances) }
func TestBindingTransitions(t *testing.T)  { testTransitions(t, bindings) }

// testTransitions goes every way of up to six legal events, and from each record that it comes to tries every event.
func testTransitions(t *testing.T, m machine) {
	table := transitions(t, m.matrix)
	seen := map[lifecycle.State]bool{}
	var explore func(record lifecycle.Record, path []lifecycle.Event)
	explore = func(record lifecycle.Record, path []lifecycle.Event) {
		seen[record.State] = true
		for _, e := range lifecycle.Events() {
			next, legal := m.tries(t, table, record, e, at(len(path)), fmt.Sprint("operation ", len(path)), path)
			if legal && len(path) < 6 {
				explore(next, append(slices.Clip(path), e))
			}
		}
	}
	explore(m.absent(), nil)
	for _, s := range lifecycle.States() {
		if seen[s] == slices.Contains(m.unreachable, s) {
			t.Errorf("state %q was reached: %v", name(s), seen[s])
		}
	}
	for _, s := range m.unreachable {
		for _, e := range lifecycle.Events() {
			record := m.absent()
			record.State = s
			_, err := m.apply(record, e, epoch, "operation")
			refused(t, fmt.Sprintf("%q in %q", e, s), s, e, err)
		}
	}
}

// tries requires that an event after others comes to what the table says, and that it changes nothing if it is refused.
func (m machine) tries(t *testing.T, table map[lifecycle.State]map[lifecycle.Event]string, r lifecycle.Record, e lifecycle.Event,
	now time.Time, id string, after any) (next lifecycle.Record, legal bool) {
	t.Helper()
	before := deepCopy(r)
	next, err := m.apply(r, e, now, id)
	if !reflect.DeepEqual(before, r) {
		same(t, fmt.Sprintf("%q after %q changed the record that it was made from", e, after), before, r)
	}
	if want := table[r.State][e]; want != "-" {
		if err != nil || name(next.State) != want {
			t.Errorf("%q after %q: %q and error %v, want %q", e, after, next.State, err, want)
		}
		return next, err == nil
	}
	refused(t, fmt.Sprintf("%q after %q", e, after), r.State, e, err)
	if !reflect.DeepEqual(before, next) {
		same(t, fmt.Sprintf("%q after %q was refused but left another record", e, after), before, next)
	}
	return next, false
}

func refused(t *testing.T, what string, s lifecycle.State, e lifecycle.Event, err error) {
	t.Helper()
	var illegal *lifecycle.IllegalTransition
	switch {
	case !errors.As(err, &illegal):
		t.Errorf("%s: error %v, want an illegal transition", what, err)
	case *illegal != lifecycle.IllegalTransition{State: s, Event: e}:
		t.Errorf("%s: refused as %+v", what, *illegal)
	case !strings.Contains(err.Error(), strconv.Quote(string(s))) || !strings.Contains(err.Error(), strconv.Quote(string(e))):
		t.Errorf("%s: the error does not name the state and the event: %v", what, err)
	}
}

// Nothing settles without an operation that runs, whatever the state says.
func TestNothingSettlesTwice(t *testing.T) {
	for _, s := range []lifecycle.State{lifecycle.Creating, lifecycle.Updating, lifecycle.Deleting} {
		for name, op := range map[string]*lifecycle.Operation{
			"None":      nil,
			"Succeeded": {ID: "operation", Kind: lifecycle.Update, Phase: lifecycle.Succeeded},
			"Failed":    {ID: "operation", Kind: lifecycle.Update, Phase: lifecycle.Failed},
		} {
			t.Run(fmt.Sprint(s, name), func(t *testing.T) {
				for _, key := range []lifecycle.Key{instanceKey, bindingKey} {
					r := lifecycle.Record{Key: key, State: s, Operation: op}
					refused(t, "success", s, lifecycle.Succeed, expect.Err(r.Succeed(epoch, nil)))
					refused(t, "failure", s, lifecycle.Fail, expect.Err(r.Fail(epoch, lifecycle.Failure{})))
				}
			})
		}
	}
}
