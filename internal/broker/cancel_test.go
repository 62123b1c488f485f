package broker_test

import (
	"testing"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

func (d *desk) cancel(token lifecycle.Token) (broker.Poll, *broker.Poll, error) {
	return d.Cancel(d.Context(), d.caller(true), token.String())
}

// A cancelled operation says so, and what it was about is deleted; FAC-15: both resources say the
// same, at every moment.
func TestCancel(t *testing.T) {
	d := newDesk(t)
	first := expect.Get(d.put("async", d.caller(true), ""))(t).Token
	cancelled := func(when string) *broker.Poll {
		t.Helper()
		op, deletion, err := d.cancel(first)
		if err != nil || !op.Operation.Cancelled || op.Token != first {
			t.Fatalf("FAC-10: %s: %+v %v", when, op, err)
		}
		return deletion
	}
	deletion := cancelled("at once")
	if again := cancelled("once more"); deletion == nil || again == nil || again.Token != deletion.Token {
		t.Fatalf("the same request has another effect: %+v %+v", deletion, again)
	}
	d.reads(lifecycle.Failed, "FAC-10")(d.LastOperation(t.Context(), first.Key, first.String()))
	_, _, err := d.cancel(deletion.Token)
	refused(t, lifecycle.Conflict, err, "FAC-10: a deletion was cancelled")
	d.settle(deletion.Token)
	refused(t, lifecycle.NotFound, expect.Err(d.Instance(t.Context(), d.caller(true), "i")), "FAC-10: the instance is there")
	if none := cancelled("after all is gone"); none != nil {
		t.Errorf("after all is gone: %+v", none)
	}
}

func TestCancelABind(t *testing.T) {
	d := newDesk(t)
	expect.Get(d.put("async-bind", d.caller(false), ""))(t)
	op, deletion, err := d.cancel(d.gives(broker.Accepted, "the bind")(d.bind("i", "b", "async-bind", d.caller(true))).Token)
	if err != nil || !op.Operation.Cancelled || deletion == nil || deletion.Operation.Kind != lifecycle.Unbind {
		t.Fatalf("FAC-10: %+v %+v %v", op, deletion, err)
	}
	d.settle(deletion.Token)
	refused(t, lifecycle.NotFound, expect.Err(d.Binding(t.Context(), d.caller(true), "i", "b")), "FAC-10: the binding is there")
	expect.OK(t, expect.Err(d.Instance(t.Context(), d.caller(true), "i")), "the instance is as it was")
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
	expect.OK(t, expect.Err(d.Instance(t.Context(), d.caller(true), "i")), "FAC-10: the instance was touched")
	update := d.gives(broker.Accepted, "an update")(d.change(d.caller(true), "", `{"delay_seconds":1}`))
	refuses(lifecycle.Conflict, "FAC-10: an update", update.Token.String())
}

// A platform that allows no answer before the work is done meets a deletion
// that it did not ask for, and that nobody polls: it waits for it. One that a
// platform asked for asynchronously stays that (DEPR-07).
func TestDeletionsWithoutPermission(t *testing.T) {
	tests := map[string]struct {
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
	}
	for name, tc := range tests {
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
