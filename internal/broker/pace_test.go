package broker_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
)

// took records that operations like these took d.
func (d *desk) took(plan string, kind lifecycle.Kind, took time.Duration) {
	d.Helper()
	k := ledger.PaceKey{ServiceID: d.ids["demo"], PlanID: d.ids[plan], Kind: kind}
	p, err := d.records.Pace(d.Context(), k)
	if err == nil {
		err = d.records.Commit(d.Context(), ledger.PutPace(k, p.With(took)))
	}
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) pass(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = d.clock.Add(t)
}

func near(got, want time.Duration) bool { return got > want-time.Second && got <= want }

// FAC-16: Retry-After is what is left of the time that such operations take,
// the same on both resources, and shrinks towards the end.
func TestRetryAfterComesFromWhatOperationsTook(t *testing.T) {
	d := newDesk(t)
	d.took("async", lifecycle.Provision, 40*time.Second)
	accepted, err := d.put("async", d.caller(17, true), "")
	if err != nil || !near(accepted.RetryAfter, 40*time.Second) {
		t.Fatalf("accepted %v %v, want about 40 s", accepted.RetryAfter, err)
	}
	for left := 30 * time.Second; left > 0; left -= 10 * time.Second {
		d.pass(10 * time.Second)
		p, err := d.LastOperation(t.Context(), accepted.Token.Key, accepted.Token.String())
		if err != nil || !near(p.RetryAfter, left) {
			t.Errorf("with %v left, last_operation says %v %v", left, p.RetryAfter, err)
		}
		o, err := d.Operation(t.Context(), d.caller(17, true), accepted.Token.String())
		if err != nil || !near(o.RetryAfter, left) {
			t.Errorf("with %v left, the status resource says %v %v", left, o.RetryAfter, err)
		}
	}
	d.pass(time.Hour)
	if p, err := d.LastOperation(t.Context(), accepted.Token.Key, ""); err != nil || p.RetryAfter != 10*time.Second {
		t.Errorf("longer than expected: %v %v, want a quarter of it", p.RetryAfter, err)
	}
	// Other plans and kinds have a pace of their own.
	d.settle(accepted.Token)
	removal, err := d.delete(d.caller(17, true))
	if err != nil || removal.RetryAfter != 5*time.Second {
		t.Errorf("a deletion, of which nothing is known: %v %v", removal.RetryAfter, err)
	}
}

func TestRetryAfterIsWithinBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		took, least, most, want time.Duration
	}{
		"Long":         {time.Hour, 0, 0, broker.MaxRetryAfter},
		"Short":        {time.Millisecond, 0, 0, broker.MinRetryAfter},
		"ChosenMost":   {time.Hour, 0, 7 * time.Second, 7 * time.Second},
		"ChosenLeast":  {time.Second, 20 * time.Second, 0, 20 * time.Second},
		"UnknownLeast": {0, 20 * time.Second, 0, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			o := d.Broker.Options
			if o.MinRetryAfter = tc.least; tc.most != 0 || tc.least == 0 {
				o.MaxRetryAfter = tc.most
			}
			d.Broker = broker.New(o)
			if tc.took != 0 {
				d.took("async", lifecycle.Provision, tc.took)
			}
			if r, err := d.put("async", d.caller(17, true), ""); err != nil || r.RetryAfter != tc.want {
				t.Errorf("got %v %v, want %v", r.RetryAfter, err, tc.want)
			}
		})
	}
}

// A pace is read once in a minute, whoever asks.
func TestPacesAreKeptForAMinute(t *testing.T) {
	d := newDesk(t)
	accept := func(want time.Duration) {
		t.Helper()
		r, err := d.put("async", d.caller(17, true), "")
		if err != nil || !near(r.RetryAfter, want) {
			t.Errorf("got %v %v, want about %v", r.RetryAfter, err, want)
		}
		d.settle(r.Token)
		removal, err := d.delete(d.caller(17, true))
		if err != nil {
			t.Fatal(err)
		}
		d.settle(removal.Token)
	}
	d.took("async", lifecycle.Provision, 10*time.Second)
	accept(10 * time.Second)
	d.took("async", lifecycle.Provision, 30*time.Second) // the mean is 20 s now
	accept(10 * time.Second)
	d.pass(time.Minute)
	accept(20 * time.Second)
}
