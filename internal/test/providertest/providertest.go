// Package providertest is the suite that every provider passes: each verb
// repeated, from every partial state, with answers lost and late, killed
// between any two calls, and across restarts; with what is not the provider's
// own standing in its way, another broker beside it, and at the wrong target.
// It tells and records target and state as a worker does.
//
// A provider's test writes a Factory and calls Run. The suite owns the
// requests and the clock; what the provider stands on belongs to the harness.
package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
)

// A Factory makes a harness with nothing in it, and cleans up with t.Cleanup.
type Factory func(t *testing.T) *Harness

// A Harness is a provider and the world that it stands on. Every field is set,
// except those that say that they may be zero.
type Harness struct {
	Provider  provider.Provider
	Inventory provider.Inventory

	// Broker is whose the provider is.
	Broker string

	// Target is where new instances are made; zero if there is one place only.
	// Its identity may be empty: then the provider tells it.
	Target provider.Target

	// Elsewhere makes a provider of the same broker whose way to the target of
	// this name leads to another one, in which there is nothing; nil if there
	// is one place only.
	Elsewhere func(t testing.TB) (provider.Provider, provider.Inventory)

	// Clock is the one that the provider reads. Only the suite moves it.
	Clock *Clock

	// ServiceID, PlanID and Settings are those of a plan whose operations all
	// end well, and whose bindings have credentials.
	ServiceID, PlanID string
	Settings          map[string]any

	// Parameters makes an object that the provider accepts of instances and of
	// bindings, with the canary as a value in it. An update to another canary
	// is seen by Look.
	Parameters func(canary string) json.RawMessage

	// Fail arranges that the next operation of the kind that is given the
	// settings fails for good, and no other.
	Fail func(t testing.TB, kind operation.Kind) (settings map[string]any)

	// Plant makes, without the provider, a thing with the name that the
	// provider uses for at, and with the tags of owner; none if owner is zero.
	Plant func(t testing.TB, at, owner provider.Tags)

	// Look tells what stands at the name that the provider uses for at,
	// whoever owns it: its tags and how it is configured, not how far work on
	// it has come. It is empty if nothing stands there.
	Look func(t testing.TB, at provider.Tags) string

	// Opens reports whether the service accepts the credentials.
	Opens func(t testing.TB, g *provider.Grant) bool

	// Secrets counts the secrets that the service accepts at the name that the
	// provider uses for at.
	Secrets func(t testing.TB, at provider.Tags) int

	// Fill keeps something in an instance by a binding's credentials, and Holds reports whether it is there for those of
	// another one. Both are nil where nothing can be kept.
	Fill  func(t testing.TB, g *provider.Grant)
	Holds func(t testing.TB, g *provider.Grant) bool

	// Falter makes the nth call from now, of those by which the provider
	// reaches its world, go wrong; see Calls.Arm.
	Falter func(n int, fault Fault) (struck func() bool, disarm func())

	// Open makes a new provider of a broker over the same world, as after a
	// crash. The one before may still be in use.
	Open func(t testing.TB, broker string) (provider.Provider, provider.Inventory)

	// PageSize is the most that a page of the inventory holds here.
	PageSize int
}

// Run runs the suite, once for asynchronous and once for synchronous work.
func Run(t *testing.T, factory Factory) {
	t.Helper()
	RunExcept(t, factory)
}

// RunExcept runs the suite without some of its cases, for a provider that passes
// them over another world: those that make every call go wrong are long over a
// slow one. A case is left out by its name, or in one mode as "Synchronous/Name".
func RunExcept(t *testing.T, factory Factory, except ...string) {
	t.Helper()
	for _, mode := range []struct {
		name        string
		synchronous bool
	}{{"Asynchronous", false}, {"Synchronous", true}} {
		t.Run(mode.name, func(t *testing.T) {
			for _, c := range cases {
				if slices.Contains(except, c.name) || slices.Contains(except, mode.name+"/"+c.name) {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					c.run(t, func(t *testing.T) *scene { return newScene(t, factory, mode.synchronous) })
				})
			}
		})
	}
}

// RunOnce runs the suite for asynchronous work alone, without some of its cases: for
// a provider over a real server, to which both are the same.
func RunOnce(t *testing.T, factory Factory, except ...string) {
	t.Helper()
	runOnce(t, factory, func(*testing.T) {}, except)
}

// RunSideBySide is RunOnce with all cases at the same time. Of the faults of what is
// retained, it makes those alone that leave something there that the caller does not
// know: a fault that changes nothing, or as much as another, is made over a fast world.
func RunSideBySide(t *testing.T, factory Factory, except ...string) {
	t.Helper()
	runOnce(t, factory, (*testing.T).Parallel, append(except, "RetentionFaults"))
	for _, fault := range []Fault{Late, Killed} {
		t.Run("RetentionFaults"+fault.String(), func(t *testing.T) {
			t.Parallel()
			retentionFaults(t, func(t *testing.T) *scene { return newScene(t, factory, false) }, fault)
		})
	}
}

func runOnce(t *testing.T, factory Factory, begin func(*testing.T), except []string) {
	for _, c := range cases {
		if !slices.Contains(except, c.name) {
			t.Run(c.name, func(t *testing.T) {
				begin(t)
				c.run(t, func(t *testing.T) *scene { return newScene(t, factory, false) })
			})
		}
	}
}

// RunTwoCallers runs the one case that has several callers, for asynchronous work:
// the others are walked by one goroutine, and have nothing for the race detector,
// under which they take ten times as long.
func RunTwoCallers(t *testing.T, factory Factory) {
	t.Helper()
	testTwoCallers(t, func(t *testing.T) *scene { return newScene(t, factory, false) })
}

// RunFaults has every call go wrong in one way, for asynchronous work: over a real
// server, which keeps what a call has left half done.
func RunFaults(t *testing.T, factory Factory, fault Fault) {
	t.Helper()
	everyCall(t, func(t *testing.T) *scene { return newScene(t, factory, false) }, fault, 0, wentOn)
}

// A Clock stands still until it is moved.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock makes a clock that shows start.
func NewClock(start time.Time) *Clock { return &Clock{now: start.UTC()} }

// Now is the time it shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves it on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// MaxSteps is how many steps an operation of the suite may take.
const MaxSteps = 200

// A Step is one call of a verb.
type Step func(context.Context) (provider.Status, error)

// Drive repeats a step as a worker does, moving the clock on by what the
// provider asks for, until the operation is done or has failed. Passing faults
// are repeated. More than MaxSteps steps end the test.
func Drive(t testing.TB, clock *Clock, step Step) (provider.Status, *provider.Failure) {
	t.Helper()
	var last error
	for range MaxSteps {
		st, err := step(t.Context())
		if f, ok := errors.AsType[*provider.Failure](err); ok {
			return provider.Status{}, f
		}
		if err == nil && st.Done {
			return st, nil
		}
		last = err
		clock.Advance(pause(st, err))
	}
	t.Fatalf("the operation did not end within %d steps; last error: %v", MaxSteps, last)
	return provider.Status{}, nil
}

// pause is how long a worker waits before the next step.
func pause(st provider.Status, err error) time.Duration {
	if err != nil || st.After == 0 {
		return time.Second
	}
	return st.After
}

// zeroFields names every part of v that is zero.
func zeroFields(v reflect.Value, path string) []string {
	if v.Kind() == reflect.Struct && v.NumField() == 0 { // a secret.Holder
		return nil
	}
	var zero []string
	if v.IsZero() {
		return append(zero, path)
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return zero
		}
		for i := range v.NumField() {
			zero = append(zero, zeroFields(v.Field(i), path+"."+v.Type().Field(i).Name)...)
		}
	case reflect.Map, reflect.Slice:
		if v.Len() == 0 {
			zero = append(zero, path)
		}
	}
	return zero
}
