package stepfunctions_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

const provisioner = "arn:aws:lambda:eu-central-1:111122223333:function:provisioner"

// A machine is a definition as AWS reads it, of all that ours uses. What it does not know it refuses.
type machine struct {
	Comment        string
	StartAt        string
	TimeoutSeconds int
	States         map[string]state
}

type state struct {
	Type, Resource, TimestampPath, Next, Error, Cause string
	End                                               bool
	TimeoutSeconds                                    int
	Parameters                                        map[string]any
	Retry                                             []retrier
	Catch                                             []catcher
}

type retrier struct {
	ErrorEquals                                   []string
	IntervalSeconds, MaxDelaySeconds, MaxAttempts int
	BackoffRate                                   float64
	JitterStrategy                                string
}

type catcher struct {
	ErrorEquals []string
	ResultPath  *string
	Next        string
}

func parse(t *testing.T, definition string) machine {
	t.Helper()
	var m machine
	d := json.NewDecoder(strings.NewReader(definition))
	d.DisallowUnknownFields()
	expect.OK(t, d.Decode(&m))
	return m
}

func newMachine(t *testing.T) machine {
	t.Helper()
	return parse(t, stepfunctions.Definition(provisioner, 90*time.Second, 8*24*time.Hour))
}

// nexts are the states that may follow on one.
func (s state) nexts() []string {
	var next []string
	if s.Next != "" {
		next = append(next, s.Next)
	}
	for _, c := range s.Catch {
		next = append(next, c.Next)
	}
	return next
}

func (s state) ends() bool { return s.End || s.Type == "Fail" }

// Every state is reached, every path ends or comes round through a wait, and
// nothing that is thrown is left without an answer.
func TestEveryState(t *testing.T) {
	m := newMachine(t)
	reached, left := map[string]bool{}, []string{m.StartAt}
	for len(left) > 0 {
		name := left[0]
		left = left[1:]
		if reached[name] {
			continue
		}
		reached[name] = true
		s, ok := m.States[name]
		if !ok {
			t.Fatalf("state %q does not exist", name)
		}
		left = append(left, s.nexts()...)
	}
	all := slices.Sorted(maps.Keys(m.States))
	expect.Same(t, "states that are reached", all, slices.Sorted(maps.Keys(reached)))
	want := slices.Sorted(slices.Values([]string{
		stepfunctions.StateStep, stepfunctions.StatePending, stepfunctions.StateWait, stepfunctions.StateAbandoned,
	}))
	expect.Same(t, "states", want, all)

	ends := map[string]bool{}
	for range all { // as often as an end may take to be seen from the start
		for name, s := range m.States {
			ends[name] = ends[name] || s.ends() || slices.ContainsFunc(s.nexts(), func(n string) bool { return ends[n] })
		}
	}
	for name, s := range m.States {
		holds := func(is bool, otherwise string) {
			t.Helper()
			if !is {
				t.Errorf("state %q: %s: %+v", name, otherwise, s)
			}
		}
		holds(ends[name], "from it there is no end")
		holds(s.ends() != (s.Next != ""), "it ends and is followed by another, or neither")
		holds(s.Type == "Wait" || !m.returnsWithoutWait(name), "it comes round without a wait")
		switch s.Type {
		case "Task":
			holds(s.TimeoutSeconds > 0 && s.Resource == provisioner && len(s.Retry) > 0, "it is not whole")
			// States.ALL stands alone and last.
			last := s.Catch[len(s.Catch)-1]
			holds(slices.Equal(last.ErrorEquals, []string{"States.ALL"}) && m.States[last.Next].Type == "Fail",
				"it does not end with everything that is thrown")
			for _, r := range s.Retry {
				holds(r.IntervalSeconds >= 1 && r.MaxAttempts >= 1 && r.BackoffRate > 1 && r.MaxDelaySeconds >= 1,
					"it is repeated without a pause that grows")
				for _, e := range r.ErrorEquals {
					holds(strings.HasPrefix(e, "Lambda."), "it is repeated after what the provisioner itself may throw: "+e)
				}
			}
		case "Wait":
			holds(s.TimestampPath != "", "it does not wait for what the step says")
		case "Pass":
		case "Fail":
			holds(s.Error != "" && s.Cause != "", "it fails without a reason")
		default:
			holds(false, "this test does not know its type")
		}
	}
}

// returnsWithoutWait reports whether a path leads from a state back to it with no Wait on it.
func (m machine) returnsWithoutWait(from string) bool {
	seen, left := map[string]bool{}, m.States[from].nexts()
	for len(left) > 0 {
		name := left[0]
		left = left[1:]
		if name == from {
			return true
		}
		if !seen[name] && m.States[name].Type != "Wait" {
			seen[name] = true
			left = append(left, m.States[name].nexts()...)
		}
	}
	return false
}

func TestTimeouts(t *testing.T) {
	m := parse(t, stepfunctions.Definition(provisioner, 90*time.Second+1, 8*24*time.Hour))
	expect.Same(t, "seconds of a step", 91, m.States[m.StartAt].TimeoutSeconds)
	expect.Same(t, "seconds of an execution", 8*24*60*60, m.TimeoutSeconds)
	// Deployed code gives a placeholder, which must come through as it is.
	const placeholder = "${Token[TOKEN.42]}&<>"
	if d := stepfunctions.Definition(placeholder, time.Second, time.Second); !strings.Contains(d, `"`+placeholder+`"`) {
		t.Errorf("the placeholder is changed: %s", d)
	}
}

// meets counts the calls of a task of which each throws the next of the errors, until one throws
// none, and gives the state that comes then; "" for the end.
func (s state) meets(errs []string) (calls int, next string) {
	for n, e := range errs {
		if slices.ContainsFunc(s.Retry, func(r retrier) bool { return slices.Contains(r.ErrorEquals, e) && n < r.MaxAttempts }) {
			continue
		}
		at := slices.IndexFunc(s.Catch, func(c catcher) bool {
			return slices.Contains(c.ErrorEquals, e) || slices.Contains(c.ErrorEquals, "States.ALL")
		})
		return n + 1, s.Catch[at].Next
	}
	return len(errs) + 1, s.Next
}

// The machine answers each error that a step throws. TestEngine and TestExecutions walk its rounds on an emulator.
func TestWhatIsThrown(t *testing.T) {
	const busy = "Lambda.TooManyRequestsException"
	m, pending := newMachine(t), reflect.TypeFor[stepfunctions.Pending]().Name()
	for reason, tc := range map[string]struct {
		thrown []string
		calls  int
		next   string
	}{
		"what is settled ends":                    {nil, 1, ""},
		"what is not goes on later":               {[]string{pending}, 1, stepfunctions.StatePending},
		"what the step throws ends the execution": {[]string{"errorString"}, 1, stepfunctions.StateAbandoned},
		"also if it does so by itself":            {[]string{"Runtime.ExitError"}, 1, stepfunctions.StateAbandoned},
		"so does a step that does not answer":     {[]string{"States.Timeout"}, 1, stepfunctions.StateAbandoned},
		"what is transient is tried again":        {[]string{busy, busy}, 3, ""},
		"but not for ever":                        {slices.Repeat([]string{busy}, 9), 9, stepfunctions.StateAbandoned},
	} {
		calls, next := m.States[m.StartAt].meets(tc.thrown)
		if calls != tc.calls || next != tc.next {
			t.Errorf("%s: after %d calls comes %q, want %d and %q", reason, calls, next, tc.calls, tc.next)
		}
	}
	step := map[string]any{"token.$": "$.token", "attempt.$": "$.attempt"}
	expect.Same(t, "the input of a step", step, m.States[m.StartAt].Parameters)
	expect.Same(t, "where Pending is put", new("$.thrown"), m.States[m.StartAt].Catch[0].ResultPath)
	step["thrown.$"] = "States.StringToJson($.thrown.Cause)"
	expect.Same(t, "the same input, with what was thrown", step, m.States[stepfunctions.StatePending].Parameters)
	expect.Same(t, "what a Wait waits for", "$.thrown.errorMessage", m.States[stepfunctions.StateWait].TimestampPath)
	until := stepfunctions.Pending{Until: walked.Add(10 * time.Second)}
	expect.Same(t, "the time that is thrown", "2030-01-02T03:04:15Z", until.Error())
}

// walked is when a step is made.
var walked = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// An unsettled outcome is thrown to a state machine and returned to a waiting request.
func TestAnswer(t *testing.T) {
	pending, settled := workflow.Outcome{Wait: 1500 * time.Millisecond}, workflow.Outcome{Settled: true}
	for name, test := range map[string]struct {
		until   time.Time
		outcome workflow.Outcome
		want    stepfunctions.Output
		thrown  error
	}{
		"Waits":   {time.Time{}, pending, stepfunctions.Output{}, stepfunctions.Pending{Until: walked.Add(3 * time.Second)}},
		"Ends":    {time.Time{}, settled, stepfunctions.Output{Settled: true}, nil},
		"Request": {walked, pending, stepfunctions.Output{WaitSeconds: 2}, nil},
	} {
		got, err := stepfunctions.Answer(stepfunctions.Input{Until: test.until}, test.outcome, walked.Add(time.Millisecond))
		if got != test.want || err != test.thrown {
			t.Errorf("%s: %+v, %v, want %+v, %v", name, got, err, test.want, test.thrown)
		}
	}
}

// A week of waiting, as long as the worker waits, stays within what one
// execution may record. AWS counts the events of a function as these.
func TestHistory(t *testing.T) {
	events := map[string]int{"Task": 5, "Pass": 2, "Wait": 2}
	round := 0
	m := newMachine(t)
	for _, s := range m.States {
		round += events[s.Type]
	}
	if round != stepfunctions.EventsOfStep {
		t.Fatalf("a round has %d events, want %d", round, stepfunctions.EventsOfStep)
	}
	rounds := 0
	for age := time.Duration(0); age < 7*24*time.Hour; rounds++ {
		pause := 5 * time.Minute
		if age < time.Hour {
			pause = 10*time.Second + time.Duration(float64(50*time.Second)*float64(age)/float64(time.Hour))
		}
		age += pause
	}
	if n := rounds * round; n > 25_000*9/10 {
		t.Errorf("a week is %d rounds with %d events, too near to 25 000", rounds, n)
	}
	t.Log(fmt.Sprint(rounds, " rounds a week"))
}
