package stepfunctions_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/workflow/stepfunctions"
)

const provisioner = "arn:aws:lambda:eu-central-1:111122223333:function:provisioner"

// A machine is a definition as AWS reads it, of all that ours uses. What it
// does not know it refuses.
type machine struct {
	Comment        string
	StartAt        string
	TimeoutSeconds int
	States         map[string]state
}

type state struct {
	Type, Resource, ResultPath, SecondsPath, Next, Default, Error, Cause string
	TimeoutSeconds                                                       int
	Parameters                                                           map[string]string
	Choices                                                              []choice
	Retry                                                                []retrier
	Catch                                                                []catcher
}

type choice struct {
	Variable      string
	BooleanEquals bool
	Next          string
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
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

func newMachine(t *testing.T) machine {
	t.Helper()
	return parse(t, stepfunctions.Definition(provisioner, 90*time.Second, 8*24*time.Hour))
}

// nexts are the states that may follow on one.
func (s state) nexts() []string {
	var next []string
	for _, n := range []string{s.Next, s.Default} {
		if n != "" {
			next = append(next, n)
		}
	}
	for _, c := range s.Choices {
		next = append(next, c.Next)
	}
	for _, c := range s.Catch {
		next = append(next, c.Next)
	}
	return next
}

func (s state) ends() bool { return s.Type == "Succeed" || s.Type == "Fail" }

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
	if d := cmp.Diff(all, slices.Sorted(maps.Keys(reached))); d != "" {
		t.Errorf("states that are never reached: -all +reached:\n%s", d)
	}
	want := slices.Sorted(slices.Values([]string{
		stepfunctions.StateStep, stepfunctions.StateChoice, stepfunctions.StateWait, stepfunctions.StateDone, stepfunctions.StateAbandoned,
	}))
	if d := cmp.Diff(want, all); d != "" {
		t.Errorf("states: -want +got:\n%s", d)
	}

	ends := map[string]bool{}
	for range all { // as often as an end may take to be seen from the start
		for name, s := range m.States {
			ends[name] = ends[name] || s.ends() || slices.ContainsFunc(s.nexts(), func(n string) bool { return ends[n] })
		}
	}
	for name, s := range m.States {
		if !ends[name] {
			t.Errorf("from state %q there is no end", name)
		}
		if s.ends() == (len(s.nexts()) > 0) {
			t.Errorf("state %q of type %s is followed by %q", name, s.Type, s.nexts())
		}
		if s.Type != "Wait" && m.returnsWithoutWait(name) {
			t.Errorf("state %q comes round without a wait", name)
		}
		switch s.Type {
		case "Task":
			if s.TimeoutSeconds <= 0 || s.Resource != provisioner || len(s.Retry) == 0 {
				t.Errorf("task %q is not whole: %+v", name, s)
			}
			if len(s.Catch) != 1 || !slices.Equal(s.Catch[0].ErrorEquals, []string{"States.ALL"}) || !m.States[s.Catch[0].Next].ends() {
				t.Errorf("task %q does not end with everything that is thrown: %+v", name, s.Catch)
			}
			for _, r := range s.Retry {
				if r.IntervalSeconds < 1 || r.MaxAttempts < 1 || r.BackoffRate <= 1 || r.MaxDelaySeconds < 1 {
					t.Errorf("task %q is repeated without a pause that grows: %+v", name, r)
				}
				for _, e := range r.ErrorEquals {
					if !strings.HasPrefix(e, "Lambda.") {
						t.Errorf("task %q is repeated after %q, which the provisioner itself may throw", name, e)
					}
				}
			}
		case "Choice":
			if s.Default == "" || len(s.Choices) == 0 {
				t.Errorf("choice %q has no choice or no default", name)
			}
		case "Wait":
			if s.SecondsPath == "" {
				t.Errorf("wait %q does not wait for what the step says", name)
			}
		case "Succeed":
		case "Fail":
			if s.Error == "" || s.Cause == "" {
				t.Errorf("state %q fails without a reason", name)
			}
		default:
			t.Errorf("state %q is of type %q, which this test does not know", name, s.Type)
		}
	}
}

// returnsWithoutWait reports whether a path leads from a state back to it with
// no Wait on it.
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
	if got := m.States[m.StartAt].TimeoutSeconds; got != 91 {
		t.Errorf("a step may take %d s, want 91", got)
	}
	if got := m.TimeoutSeconds; got != 8*24*60*60 {
		t.Errorf("an execution may take %d s, want 8 days", got)
	}
	// Deployed code gives a placeholder, which must come through as it is.
	const placeholder = "${Token[TOKEN.42]}&<>"
	if d := stepfunctions.Definition(placeholder, time.Second, time.Second); !strings.Contains(d, `"`+placeholder+`"`) {
		t.Errorf("the placeholder is changed: %s", d)
	}
}

// A thrown is an error of the provisioner, by the name that AWS gives it.
type thrown string

// run interprets the machine, as far as ours goes. Each call of the
// provisioner takes the next of the answers: a stepfunctions.Output or thrown.
func (m machine) run(t *testing.T, input string, answers ...any) (path []string, sent []map[string]any, waits []int) {
	t.Helper()
	var data map[string]any
	if err := json.Unmarshal([]byte(input), &data); err != nil {
		t.Fatal(err)
	}
	at := func(path string) any {
		var v any = data
		for _, name := range strings.Split(strings.TrimPrefix(path, "$."), ".") {
			members, _ := v.(map[string]any)
			v = members[name]
		}
		return v
	}
	for name := m.StartAt; ; {
		s := m.States[name]
		path = append(path, name)
		if len(path) > 100 {
			t.Fatalf("it does not end: %q", path[:10])
		}
		switch s.Type {
		case "Task":
			payload := map[string]any{}
			for member, from := range s.Parameters {
				payload[strings.TrimSuffix(member, ".$")] = at(from)
			}
			name = s.Next
			for tries := 0; ; tries++ {
				sent = append(sent, payload)
				if len(answers) == 0 {
					t.Fatal("more calls than answers")
				}
				answer := answers[0]
				answers = answers[1:]
				e, failed := answer.(thrown)
				if !failed {
					body, err := json.Marshal(answer)
					if err != nil {
						t.Fatal(err)
					}
					var v any
					if err := json.Unmarshal(body, &v); err != nil {
						t.Fatal(err)
					}
					data[strings.TrimPrefix(s.ResultPath, "$.")] = v
					break
				}
				if slices.ContainsFunc(s.Retry, func(r retrier) bool {
					return slices.Contains(r.ErrorEquals, string(e)) && tries < r.MaxAttempts
				}) {
					continue
				}
				name = s.Catch[0].Next
				break
			}
		case "Choice":
			name = s.Default
			for _, c := range s.Choices {
				if at(c.Variable) == c.BooleanEquals {
					name = c.Next
				}
			}
		case "Wait":
			seconds, ok := at(s.SecondsPath).(float64)
			if !ok || seconds < 1 || seconds != float64(int(seconds)) {
				t.Fatalf("it is to wait %v s", at(s.SecondsPath))
			}
			waits = append(waits, int(seconds))
			name = s.Next
		default:
			return path, sent, waits
		}
	}
}

func TestWalk(t *testing.T) {
	const (
		step, choice, wait, done, abandoned = stepfunctions.StateStep, stepfunctions.StateChoice, stepfunctions.StateWait, stepfunctions.StateDone, stepfunctions.StateAbandoned
		busy                                = thrown("Lambda.TooManyRequestsException")
	)
	settled, again := stepfunctions.Output{Settled: true}, func(seconds int) stepfunctions.Output { return stepfunctions.Output{WaitSeconds: seconds} }
	tests := map[string]struct {
		reason  string
		answers []any
		path    []string
		calls   int
		waits   []int
	}{
		"AtOnce": {"what is settled ends", []any{settled}, []string{step, choice, done}, 1, nil},
		"Rounds": {
			"what is not goes on after the time that the step said", []any{again(10), again(300), settled},
			[]string{step, choice, wait, step, choice, wait, step, choice, done}, 3, []int{10, 300},
		},
		"Thrown":       {"what the step throws only ends the execution", []any{thrown("errorString")}, []string{step, abandoned}, 1, nil},
		"ThrownLater":  {"also later", []any{again(1), thrown("Runtime.ExitError")}, []string{step, choice, wait, step, abandoned}, 2, []int{1}},
		"TimedOut":     {"so does a step that does not answer", []any{thrown("States.Timeout")}, []string{step, abandoned}, 1, nil},
		"Transient":    {"what is transient is tried again", []any{busy, busy, settled}, []string{step, choice, done}, 3, nil},
		"NotTransient": {"but not for ever", slices.Repeat([]any{busy}, 9), []string{step, abandoned}, 9, nil},
		"Nonsense":     {"an answer that says nothing does not settle anything", []any{map[string]any{"wait_seconds": 5}, settled}, []string{step, choice, wait, step, choice, done}, 2, []int{5}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path, sent, waits := newMachine(t).run(t, `{"token":"T.p.i","attempt":3}`, test.answers...)
			if d := cmp.Diff(test.path, path); d != "" {
				t.Errorf("%s: path (-want +got):\n%s", test.reason, d)
			}
			if d := cmp.Diff(test.waits, waits); d != "" {
				t.Errorf("%s: waits (-want +got):\n%s", test.reason, d)
			}
			if len(sent) != test.calls {
				t.Errorf("%s: %d calls, want %d", test.reason, len(sent), test.calls)
			}
			for _, payload := range sent {
				if d := cmp.Diff(map[string]any{"token": "T.p.i", "attempt": 3.0}, payload); d != "" {
					t.Errorf("%s: the provisioner was given (-want +got):\n%s", test.reason, d)
				}
			}
		})
	}
}

// A week of waiting, as long as the worker waits, stays within what one
// execution may record. AWS counts the events of a function as these.
func TestHistory(t *testing.T) {
	events := map[string]int{"Task": 5, "Choice": 2, "Wait": 2}
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
