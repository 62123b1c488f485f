package broker_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// A DELETE of what exists is never answered 410, whatever the clock does (ORB-01, ORB-02). The ids are used three
// times, so that there are tombstones too. A step that is too small to be told from a delay may refuse a request for as
// long as it is.
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

// of is a caller of another platform than the desk's.
func (d *desk) of(platform string, permitted bool) broker.Caller {
	c := d.caller(permitted)
	c.Platform = platform
	return c
}

// The same ids may exist on two platforms, and neither touches the other's.
func TestPlatformsAreApart(t *testing.T) {
	d := newDesk(t)
	first := expect.Get(d.put("async", d.of("a", true), ""))(t).Token
	second := d.gives(broker.Accepted, "the same id")(d.put("async", d.of("b", true), `{"delay_seconds":1}`)).Token
	if second == first {
		t.Fatalf("two platforms have the token %v", first)
	}
	running := d.reads(lifecycle.InProgress, "to its own platform")(d.Operation(t.Context(), d.of("a", true), first.String()))
	if running.RetryAfter <= 0 {
		t.Errorf("%+v", running)
	}
	d.settle(first)
	d.settle(second)
	passwords := map[any]bool{}
	for _, platform := range []string{"a", "b"} {
		expect.OK(t, expect.Err(d.bind("i", "b", "async", d.of(platform, false))), "BIND-19 is of one platform")
		passwords[expect.Get(d.View(t.Context(), d.of(platform, false), "i", "b"))(t).Grant.Credentials["password"]] = true
	}
	expect.Same(t, "credentials of two platforms", 2, len(passwords))
	// A deletion by one platform leaves the other's instance alone.
	expect.Get(d.delete(d.of("a", true)))(t)
	expect.OK(t, expect.Err(d.View(t.Context(), d.of("b", false), "i", "")), "it is gone for the other")
	// Nor is anything told of a third.
	nobody, forged := d.of("c", true), second
	forged.Key.Platform = "c"
	refused(t, lifecycle.NotFound, expect.Err(d.View(t.Context(), nobody, "i", "")), "an instance is shown")
	refused(t, lifecycle.NotFound, expect.Err(d.Operation(t.Context(), nobody, second.String())), "FAC-12: an operation is shown")
	refused(t, lifecycle.NotFound, expect.Err(d.Operation(t.Context(), nobody, forged.String())), "a forged token reads")
	_, _, err := d.Cancel(t.Context(), nobody, second.String())
	refused(t, lifecycle.NotFound, err, "FAC-12: an operation is cancelled")
	refused(t, lifecycle.Gone, expect.Err(d.delete(nobody)), "a deletion reached another's")
	expect.OK(t, expect.Err(d.View(t.Context(), d.of("b", false), "i", "")), "it is gone")
}

// A platform can order nothing that it may not see, but keeps what it ordered before.
func TestAViewLimitsWhatCanBegin(t *testing.T) {
	d := newDesk(t)
	offered := d.Broker.Catalog.(*catalog.Catalog).Offerings()
	view := expect.Get(catalog.NewView(offered, []string{"demo/async", "demo/sync"}))(t)
	seeing := func(permitted bool) broker.Caller {
		c := d.caller(permitted)
		c.View = view
		return c
	}
	refused(t, lifecycle.BadRequest, expect.Err(d.put("maintenance", seeing(true), "")), "a plan that is not seen")
	hidden := d.order("default", seeing(true))
	hidden.ServiceID = d.ids["demo-other"]
	refused(t, lifecycle.BadRequest, expect.Err(d.Provision(t.Context(), hidden)), "an offering that is not seen")
	// It had this one before its view was narrowed.
	expect.Get(d.put("maintenance", d.caller(false), ""))(t)
	expect.OK(t, expect.Err(d.bind("i", "b", "maintenance", seeing(false))), "CAT-28: a bind is refused")
	d.gives(broker.Done, "CAT-28: the same request")(d.put("maintenance", seeing(false), ""))
	refused(t, lifecycle.BadRequest, expect.Err(d.change(seeing(true), "rotatable", "")), "an update to a plan that is not seen")
	expect.OK(t, expect.Err(d.change(seeing(true), "", `{"delay_seconds":1}`)), "CAT-28: an update is refused")
	expect.OK(t, expect.Err(d.delete(seeing(true))), "CAT-28: a deletion is refused")
}
