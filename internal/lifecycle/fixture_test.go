package lifecycle_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/lifecycle"
)

var (
	epoch = time.Date(2030, time.January, 2, 3, 4, 5, 678_901_234, time.UTC)

	instanceKey = lifecycle.Key{Platform: "platform", Instance: "instance"}
	bindingKey  = instanceKey.BindingKey("binding")

	asker = lifecycle.Asker{IdentityPlatform: "cloudfoundry", Identity: json.RawMessage(`{"user_id":"u"}`), Request: "request"}
	no    = false
	yes   = true
)

// at is some minutes after the epoch.
func at(minutes int) time.Time { return epoch.Add(time.Duration(minutes) * time.Minute) }

// start is what an operation begins with: its request arrived a second ago.
func start(id string, now time.Time) lifecycle.Start {
	return lifecycle.Start{ID: id, Now: now, Received: now.Add(-time.Second), Timeout: time.Hour, Asker: asker}
}

// attributes have no field that is zero.
func attributes(plan string) lifecycle.Attributes {
	return lifecycle.Attributes{
		ServiceID: "service", PlanID: plan, OrganizationGUID: "organization", SpaceGUID: "space",
		Parameters: lifecycle.Sealed("sealed parameters of " + plan), Context: json.RawMessage(`{"instance_name":"` + plan + `"}`),
		MaintenanceVersion: "1.0.0",
	}
}

// bound is what a binding begins with: everything that is its own.
func bound(plan string) lifecycle.Binding {
	return lifecycle.Binding{
		InstanceIncarnation: "incarnation", Provider: "provider", ServiceID: "service", PlanID: plan, AppGUID: "app", Route: "route",
		Context: json.RawMessage(`{"platform":"cloudfoundry"}`), Parameters: lifecycle.Sealed("sealed parameters"),
		Predecessor: "predecessor", Secret: lifecycle.Sealed("sealed secret"),
	}
}

// A machine is what a test needs to know of instances, or of bindings.
type machine[T any] struct {
	apply  func(record T, e lifecycle.Event, now time.Time, id string) (T, *lifecycle.PastOperation, error)
	course func(record *T) *lifecycle.Course
	// matrix is every state and every event: see table_test.go.
	matrix string
	// unreachable are the states that no event leads to.
	unreachable []lifecycle.State
}

// stray is the incarnation of what was adopted: of that, a record knows little.
const stray = "stray"

// applyToInstance calls the exported method that causes the event. What no
// method does is refused like what none may do.
func applyToInstance(i lifecycle.Instance, e lifecycle.Event, now time.Time, id string) (lifecycle.Instance, *lifecycle.PastOperation, error) {
	switch e {
	case lifecycle.BeginCreate:
		return i.BeginProvision(start(id, now), instanceKey, "provider", attributes("small"))
	case lifecycle.BeginUpdate:
		return i.BeginUpdate(start(id, now), attributes("large"))
	case lifecycle.BeginDelete:
		return i.BeginDeprovision(start(id, now))
	case lifecycle.Entomb:
		next, err := i.Entomb(instanceKey, now, now)
		return next, nil, err
	case lifecycle.Adopt:
		return i.Adopt(start(id, now), lifecycle.Stray{Key: instanceKey, Incarnation: stray, Provider: "provider", Created: now})
	case lifecycle.Succeed:
		next, err := i.Succeed(now)
		return next, nil, err
	case lifecycle.Fail:
		next, err := i.Fail(now, lifecycle.Failure{Message: "no room"})
		return next, nil, err
	}
	return i, nil, &lifecycle.IllegalTransition{State: i.State, Event: e}
}

func applyToBinding(b lifecycle.Binding, e lifecycle.Event, now time.Time, id string) (lifecycle.Binding, *lifecycle.PastOperation, error) {
	switch e {
	case lifecycle.BeginCreate:
		return b.BeginBind(start(id, now), bindingKey, bound("small"))
	case lifecycle.BeginDelete:
		return b.BeginUnbind(start(id, now))
	case lifecycle.Entomb:
		next, err := b.Entomb(bindingKey, now, now)
		return next, nil, err
	case lifecycle.Adopt:
		return b.Adopt(start(id, now), lifecycle.Stray{Key: bindingKey, Incarnation: stray, Provider: "provider", Created: now})
	case lifecycle.Succeed:
		next, err := b.Succeed(now, lifecycle.Sealed("sealed grant"))
		return next, nil, err
	case lifecycle.Fail:
		next, err := b.Fail(now, lifecycle.Failure{Message: "no room"})
		return next, nil, err
	case lifecycle.Remove:
		next, err := b.Remove(now, now)
		return next, nil, err
	}
	return b, nil, &lifecycle.IllegalTransition{State: b.State, Event: e}
}

var (
	instances = machine[lifecycle.Instance]{
		apply:  applyToInstance,
		course: func(i *lifecycle.Instance) *lifecycle.Course { return &i.Course },
		matrix: instanceMatrix,
	}
	bindings = machine[lifecycle.Binding]{
		apply:       applyToBinding,
		course:      func(b *lifecycle.Binding) *lifecycle.Course { return &b.Course },
		matrix:      bindingMatrix,
		unreachable: []lifecycle.State{lifecycle.Updating},
	}
)

// after is the record that these events make, a minute apart.
func (m machine[T]) after(t *testing.T, events ...lifecycle.Event) T {
	t.Helper()
	var record T
	for n, e := range events {
		next, _, err := m.apply(record, e, at(n), string(e)+" "+at(n).Format(time.TimeOnly))
		if err != nil {
			t.Fatalf("event %d of %q: %v", n, events, err)
		}
		record = next
	}
	return record
}

// deepCopy shares nothing with v.
func deepCopy[T any](v T) T { return copied(reflect.ValueOf(&v)).Elem().Interface().(T) }

func copied(v reflect.Value) reflect.Value {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		return v
	case v.Kind() == reflect.Pointer && !v.IsNil():
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(copied(v.Elem()))
		return out
	case v.Kind() == reflect.Slice && !v.IsNil():
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(copied(v.Index(i)))
		}
		return out
	case v.Kind() == reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			out.Field(i).Set(copied(v.Field(i)))
		}
		return out
	}
	return v
}

// same fails the test unless got is want.
func same[T any](t *testing.T, reason string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", reason, diff)
	}
}

// name is the state as tables have it.
func name(s lifecycle.State) string {
	if s == lifecycle.Absent {
		return "absent"
	}
	return string(s)
}
