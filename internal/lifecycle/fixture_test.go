package lifecycle_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

var (
	epoch = time.Date(2030, time.January, 2, 3, 4, 5, 678_901_234, time.UTC)

	instanceKey = lifecycle.Key{Platform: "platform", Instance: "instance"}
	bindingKey  = instanceKey.BindingKey("binding")

	asker = lifecycle.Asker{IdentityPlatform: "cloudfoundry", Identity: lifecycle.Sealed("sealed"), Request: "request"}
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
	return lifecycle.Attributes{ServiceID: "service", PlanID: plan, OrganizationGUID: "organization", SpaceGUID: "space",
		Parameters: lifecycle.Sealed("sealed parameters of " + plan),
		Context:    json.RawMessage(`{"instance_name":"` + plan + `"}`), MaintenanceVersion: "1.0.0"}
}

// bound is what a binding begins with: everything that is its own.
func bound(plan string) lifecycle.Record {
	return lifecycle.Record{
		Provider: "provider",
		Attributes: lifecycle.Attributes{ServiceID: "service", PlanID: plan,
			Parameters: lifecycle.Sealed("sealed parameters"), Context: json.RawMessage(`{"platform":"cloudfoundry"}`)},
		BindingOnly: lifecycle.BindingOnly{InstanceIncarnation: "incarnation", AppGUID: "app", Route: "route",
			Predecessor: "predecessor", Secret: lifecycle.Sealed("sealed secret")},
	}
}

// A machine is what a test needs to know of instances, or of bindings.
type machine struct {
	key   lifecycle.Key
	fresh lifecycle.Record // what one begins as
	// matrix is every state and every event: see table_test.go.
	matrix string
	// unreachable are the states that no event leads to.
	unreachable []lifecycle.State
}

var (
	instances = machine{
		key: instanceKey, fresh: lifecycle.Record{Provider: "provider", Attributes: attributes("small")}, matrix: instanceMatrix,
	}
	bindings = machine{key: bindingKey, fresh: bound("small"), matrix: bindingMatrix,
		unreachable: []lifecycle.State{lifecycle.Updating}}
)

// absent is what a record begins as.
func (m machine) absent() lifecycle.Record { return lifecycle.Record{Key: m.key} }

// orphan is the incarnation of what no record knew of: of that, a record knows little.
const orphan = "orphan"

// apply calls the exported method that causes the event. What no method does is refused like what none may do.
func (m machine) apply(r lifecycle.Record, e lifecycle.Event, now time.Time,
	id string) (next lifecycle.Record, err error) {
	switch e {
	case lifecycle.BeginCreate:
		return r.BeginCreate(start(id, now), m.fresh)
	case lifecycle.BeginUpdate:
		return r.BeginUpdate(start(id, now), attributes("large"))
	case lifecycle.BeginDelete:
		return r.BeginDelete(start(id, now))
	case lifecycle.Entomb:
		return r.Entomb(now, now)
	case lifecycle.BeginOrphanDeletion:
		return r.BeginOrphanDeletion(start(id, now), lifecycle.Thing{Key: m.key, Incarnation: orphan, Provider: "provider", Created: now})
	case lifecycle.Succeed:
		return r.Succeed(now, lifecycle.Sealed("sealed grant"))
	case lifecycle.Fail:
		return r.Fail(now, lifecycle.Failure{Message: "no room"})
	case lifecycle.BeginQuarantine:
		return r.BeginQuarantine(start(id, now), lifecycle.Thing{Name: "thing", Incarnation: orphan,
			Provider: "provider", Created: now})
	case lifecycle.BeginRelease:
		return r.BeginRelease(start(id, now))
	case lifecycle.Keep:
		next, _, err = r.Keep(now, now.Add(time.Hour))
	case lifecycle.Remove:
		return r.Remove(now, now)
	default:
		return r, &lifecycle.IllegalTransition{State: r.State, Event: e}
	}
	return next, err
}

func onPut(r lifecycle.Record, same, permitted bool, received, now time.Time) (lifecycle.Answer, error) {
	return r.Answer(lifecycle.Put, lifecycle.Conditions{Same: same, Permitted: permitted, Received: received, Now: now})
}

func onPatch(r lifecycle.Record, same bool, received, now time.Time) (lifecycle.Answer, error) {
	return r.Answer(lifecycle.Patch, lifecycle.Conditions{Same: same, Received: received, Now: now})
}

func onDelete(r lifecycle.Record, received, now time.Time) (lifecycle.Answer, error) {
	return r.Answer(lifecycle.Delete, lifecycle.Conditions{Received: received, Now: now})
}

func onGet(r lifecycle.Record) error {
	_, err := r.Answer(lifecycle.Get, lifecycle.Conditions{})
	return err
}

func onBind(r lifecycle.Record, received, now time.Time) error {
	_, err := r.Answer(lifecycle.BindOn, lifecycle.Conditions{Received: received, Now: now})
	return err
}

func onUnbind(r lifecycle.Record) error {
	_, err := r.Answer(lifecycle.UnbindOn, lifecycle.Conditions{})
	return err
}

// after is the record that these events make, a minute apart.
func (m machine) after(t *testing.T, events ...lifecycle.Event) lifecycle.Record {
	t.Helper()
	record := m.absent()
	for n, e := range events {
		next, err := m.apply(record, e, at(n), string(e)+" "+at(n).Format(time.TimeOnly))
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
	expect.Same(t, reason, want, got)
}

// holds reports what must be and is not, with values that help to see why.
func holds(t *testing.T, is bool, otherwise string, values ...any) {
	t.Helper()
	if !is {
		t.Errorf("%s: %+v", otherwise, values)
	}
}

// name is the state as tables have it.
func name(s lifecycle.State) string {
	if s == lifecycle.Absent {
		return "absent"
	}
	return string(s)
}
