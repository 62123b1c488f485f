package broker_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
)

func (d *desk) cancel(token lifecycle.Token) (broker.Poll, *broker.Poll, error) {
	return d.Cancel(d.Context(), d.caller(true), token.String())
}

// A cancelled operation says so, and what it was about is deleted; FAC-15: both resources say the
// same, at every moment.
func TestCancel(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			k.before(d)
			first := d.gives(broker.Accepted, "the creation")(k.put(d, d.caller(true))).Token
			cancelled := func(when string) *broker.Poll {
				t.Helper()
				op, deletion, err := d.cancel(first)
				if err != nil || !op.Operation.Cancelled || op.Token != first {
					t.Fatalf("FAC-10: %s: %+v %v", when, op, err)
				}
				return deletion
			}
			deletion := cancelled("at once")
			again := cancelled("once more")
			if deletion == nil || again == nil || again.Token != deletion.Token || !deletion.Operation.Kind.Deletes() {
				t.Fatalf("the same request has another effect: %+v %+v", deletion, again)
			}
			d.reads(lifecycle.Failed, "FAC-10")(d.LastOperation(t.Context(), first.Key, first.String()))
			_, _, err := d.cancel(deletion.Token)
			refused(t, lifecycle.Conflict, err, "FAC-10: a deletion was cancelled")
			d.settle(deletion.Token)
			refused(t, lifecycle.NotFound, questions[name](d), "FAC-10: it is there")
			if none := cancelled("after all is gone"); none != nil {
				t.Errorf("after all is gone: %+v", none)
			}
			if name == "Binding" {
				expect.OK(t, questions["Instance"](d), "the instance is as it was")
			}
		})
	}
}

func TestWhatCannotBeCancelled(t *testing.T) {
	d := newDesk(t)
	d.settles = false
	refuses := func(want lifecycle.Reason, what, token string) {
		t.Helper()
		_, _, err := d.Cancel(t.Context(), d.caller(true), token)
		refused(t, want, err, "%s", what)
	}
	first := expect.Get(d.put("async", d.caller(true), ""))(t).Token
	other, unknown := first, first
	other.Key.Platform, unknown.Operation = "other", "operation-999999999999"
	refuses(lifecycle.NotFound, "FAC-12: nonsense", "nonsense")
	refuses(lifecycle.NotFound, "FAC-12: what is unknown", unknown.String())
	refuses(lifecycle.NotFound, "FAC-12: what is another platform's", other.String())
	d.settle(first)
	refuses(lifecycle.Conflict, "FAC-10: a finished creation", first.String())
	expect.OK(t, expect.Err(d.View(t.Context(), d.caller(true), "i", "")), "FAC-10: the instance was touched")
	update := d.gives(broker.Accepted, "an update")(d.change(d.caller(true), "", `{"delay_seconds":1}`))
	refuses(lifecycle.Conflict, "FAC-10: an update", update.Token.String())
}

// A platform that allows no answer before the work is done meets a deletion that it did not ask for, and that nobody
// polls: it waits for it. One that a platform asked for asynchronously stays that (DEPR-07).
func TestDeletionsWithoutPermission(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		begin  func(d *desk, first lifecycle.Token) error
		want   lifecycle.Reason // -1 if it is done
	}{
		"OfTheBrokersOwn": {"DEPR-01: a plan that may answer at once does", func(d *desk, first lifecycle.Token) error {
			_, _, err := d.cancel(first)
			return err
		}, -1},
		"OfAPlatform": {"DEPR-07", func(d *desk, _ lifecycle.Token) error { return expect.Err(d.delete(d.caller(true))) },
			lifecycle.AsyncRequired},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			expect.OK(t, tc.begin(d, expect.Get(d.put("async", d.caller(true), ""))(t).Token))
			got, err := d.delete(d.caller(false))
			if reason(err) != tc.want || err == nil && got.Effect != broker.Done {
				t.Errorf("%s: %+v %v", tc.reason, got, err)
			}
		})
	}
}

// typical is a catalog whose plans say how long a provision takes.
type typical struct {
	broker.Catalog
	seconds int
}

func (c typical) Plan(serviceID, planID string) (catalog.Offering, catalog.Plan, bool) {
	o, p, ok := c.Catalog.Plan(serviceID, planID)
	p.TypicalDuration = c.seconds
	return o, p, ok
}

// takes has plans say that a provision takes so many seconds; 0 for nothing.
func (d *desk) takes(seconds int) { d.Catalog = typical{d.Catalog, seconds} }

func (d *desk) pass(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = d.clock.Add(t)
}

// looked records a look after which the provider is to be asked again.
func (d *desk) looked(after time.Duration) {
	d.Helper()
	d.commit(ledger.Put(d.instance().Looked(d.now(), lifecycle.Look{After: after})))
}

func near(got, want time.Duration) bool { return got > want-time.Second && got <= want }

// says checks what both resources say of an operation.
func (d *desk) says(t lifecycle.Token, want time.Duration, reason string) {
	d.Helper()
	if p, err := d.LastOperation(d.Context(), t.Key, t.String()); err != nil || !near(p.RetryAfter, want) {
		d.Errorf("%s: last_operation says %v %v, want about %v", reason, p.RetryAfter, err, want)
	}
	if p, err := d.Operation(d.Context(), d.caller(true), t.String()); err != nil || !near(p.RetryAfter, want) {
		d.Errorf("%s: the status resource says %v %v, want about %v", reason, p.RetryAfter, err, want)
	}
}

// FAC-16: nobody is told to wait longer than it takes. Of what is not known, the
// first look tells; then Retry-After is when the provider is asked next.
func TestRetryAfterIsTheNextLook(t *testing.T) {
	d := newDesk(t)
	accepted, err := d.put("async", d.caller(true), "")
	if err != nil || accepted.RetryAfter != broker.MinRetryAfter {
		t.Fatalf("accepted %v %v, want %v", accepted.RetryAfter, err, broker.MinRetryAfter)
	}
	d.looked(3 * time.Second)
	d.says(accepted.Token, 3*time.Second, "the provider is asked in 3 s")
	d.pass(2 * time.Second)
	d.says(accepted.Token, time.Second, "it shrinks")
	d.pass(time.Minute)
	d.says(accepted.Token, broker.MinRetryAfter, "the look is late, and may be at any time")
	d.looked(30 * time.Second)
	d.says(accepted.Token, 30*time.Second, "the provider is asked again")
}

// FAC-16: what the plan says of how long it takes saves polls, and shrinks
// towards the end. It says so of a provision only.
func TestRetryAfterIsWhatThePlanNeeds(t *testing.T) {
	d := newDesk(t)
	d.takes(40)
	accepted, err := d.put("async", d.caller(true), "")
	if err != nil || !near(accepted.RetryAfter, 40*time.Second) {
		t.Fatalf("accepted %v %v, want about 40 s", accepted.RetryAfter, err)
	}
	d.looked(10 * time.Second)
	for left := 30 * time.Second; left > 0; left -= 10 * time.Second {
		d.pass(10 * time.Second)
		d.says(accepted.Token, left, "what is left")
	}
	d.pass(15 * time.Second)
	d.looked(8 * time.Second)
	d.says(accepted.Token, 8*time.Second, "it takes longer: when the provider is asked next")
	d.settle(accepted.Token)
	if removal, err := d.delete(d.caller(true)); err != nil || removal.RetryAfter != broker.MinRetryAfter {
		t.Errorf("a deletion, of which nothing is known: %v %v", removal.RetryAfter, err)
	}
}

func TestRetryAfterIsWithinBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		typical     int // seconds
		least, most time.Duration
		want        time.Duration
	}{
		"Long":         {3600, 0, 0, broker.MaxRetryAfter},
		"Short":        {1, 0, 0, broker.MinRetryAfter},
		"ChosenMost":   {3600, 0, 7 * time.Second, 7 * time.Second},
		"ChosenLeast":  {1, 20 * time.Second, 0, 20 * time.Second},
		"UnknownLeast": {0, 20 * time.Second, 0, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.takes(tc.typical)
			if d.MinRetryAfter = max(tc.least, broker.MinRetryAfter); tc.most != 0 {
				d.MaxRetryAfter = tc.most
			}
			if r, err := d.put("async", d.caller(true), ""); err != nil || r.RetryAfter != tc.want {
				t.Errorf("got %v %v, want %v", r.RetryAfter, err, tc.want)
			}
		})
	}
}
