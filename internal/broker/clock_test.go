package broker_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
)

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
			ask := func(what string, want broker.Effect, send func(*desk, broker.Caller) (broker.Result, error)) {
				t.Helper()
				var r broker.Result
				var err error
				for range tc.tries {
					if r, err = send(d, d.caller(false)); reason(err) != lifecycle.ConcurrencyError {
						break
					}
				}
				d.gives(want, what)(r, err)
				d.pass(tc.by)
			}
			for range 3 {
				ask("PUT of the instance", broker.Created, eithers["Instance"])
				ask("PUT of the binding", broker.Created, eithers["Binding"])
				ask("DELETE of the binding", broker.Done, kinds["Binding"].remove)
				ask("DELETE of the instance", broker.Done, (*desk).delete)
			}
		})
	}
}
