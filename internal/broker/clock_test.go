package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
)

// steps is how the clock is set while nothing happens.
func (d *desk) steps(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = d.clock.Add(by)
}

func (d *desk) unbind(instance, binding string, c broker.Caller) (broker.Result, error) {
	return d.Delete(context.Background(),
		broker.DeleteRequest{Caller: c, InstanceID: instance, BindingID: binding, ServiceID: "s", PlanID: "p"})
}

// A DELETE of what exists is never answered 410, whatever the clock does (ORB-01,
// ORB-02). The ids are used three times, so that there are tombstones too. A step
// that is too small to be told from a delay may refuse a request for as long as it
// is.
func TestTheClockSteps(t *testing.T) {
	for name, tc := range map[string]struct {
		by    time.Duration
		tries int
	}{
		"BackBySeconds": {-5 * time.Second, 1}, "BackByAnHour": {-time.Hour, 1}, "OnByAnHour": {time.Hour, 1},
		"BackABit": {-20 * time.Millisecond, 100},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			ask := func(what string, want broker.Effect, send func(c broker.Caller) (broker.Result, error)) {
				t.Helper()
				var r broker.Result
				var err error
				for range tc.tries {
					if r, err = send(d.caller(false)); reason(err) != lifecycle.ConcurrencyError {
						break
					}
				}
				if err != nil || r.Effect != want {
					t.Errorf("%s: %+v %v", what, r, err)
				}
				d.steps(tc.by)
			}
			for range 3 {
				ask("PUT of the instance", broker.Created, func(c broker.Caller) (broker.Result, error) { return d.put("sync", c, "") })
				ask("PUT of the binding", broker.Created, func(c broker.Caller) (broker.Result, error) {
					r, err := d.bind("i", "b", "sync", c)
					return r.Result, err
				})
				ask("DELETE of the binding", broker.Done, func(c broker.Caller) (broker.Result, error) { return d.unbind("i", "b", c) })
				ask("DELETE of the instance", broker.Done, d.delete)
			}
		})
	}
}
