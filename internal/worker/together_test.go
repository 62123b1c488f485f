package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
)

// An unbind and the deletion of its instance run at once, as after a bind whose
// answer was lost: the platform deletes the binding and then the instance. Each
// would begin the binding's deletion anew whenever the other had begun it.
func TestUnbindAndDeprovisionDoNotHinderOneAnother(t *testing.T) {
	w := newWorld(t)
	done(provision, bind)(w)
	for _, ask := range []func(*world, *broker.Broker) (broker.Result, error){unbind, deprovision} {
		if _, err := ask(w, w.broker()); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		for name, ref := range w.started {
			outcome, err := w.worker().Step(context.Background(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if outcome.Settled {
				delete(w.started, name)
			}
		}
		w.clock = w.clock.Add(time.Second)
	}
	if len(w.started) > 0 || w.held() > 0 {
		t.Errorf("after 100 s %d operations run and %d things are held", len(w.started), w.held())
	}
	w.ended(deed{state: lifecycle.Deleted, key: instanceKey}, "in the end")
	w.ended(deed{state: lifecycle.Deleted, key: bindingKey}, "in the end")
}
