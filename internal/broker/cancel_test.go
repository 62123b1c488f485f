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

func TestCancel(t *testing.T) {
	d := newDesk(t)
	first, err := d.put("async", d.caller(true), "")
	expect.OK(t, err)
	op, deletion, err := d.cancel(first.Token)
	if err != nil || !op.Operation.Cancelled || op.Token != first.Token || deletion == nil {
		t.Fatalf("FAC-10: %+v %+v %v", op, deletion, err)
	}
	again, same, err := d.cancel(first.Token)
	if err != nil || !again.Operation.Cancelled || same == nil || same.Token != deletion.Token {
		t.Errorf("the same request has another effect: %+v %+v %v", again, same, err)
	}
	// FAC-15: both resources say the same, at every moment.
	p, err := d.LastOperation(t.Context(), first.Token.Key, first.Token.String())
	if err != nil || p.Operation.Phase != lifecycle.Failed {
		t.Errorf("FAC-10: last operation %+v %v", p.Operation, err)
	}
	if _, _, err := d.cancel(deletion.Token); reason(err) != lifecycle.Conflict {
		t.Errorf("FAC-10: a deletion was cancelled: %v", err)
	}
	d.settle(deletion.Token)
	refused(t, lifecycle.NotFound, expect.Err(d.Instance(t.Context(), d.caller(true), "i")), "FAC-10: the instance is there")
	if over, none, err := d.cancel(first.Token); err != nil || !over.Operation.Cancelled || none != nil {
		t.Errorf("after all is gone: %+v %+v %v", over, none, err)
	}
}

func TestCancelABind(t *testing.T) {
	d := newDesk(t)
	expect.Get(d.put("async-bind", d.caller(false), ""))(t)
	bind, err := d.bind("i", "b", "async-bind", d.caller(true))
	if err != nil || bind.Effect != broker.Accepted {
		t.Fatalf("%+v %v", bind.Effect, err)
	}
	op, deletion, err := d.cancel(bind.Token)
	if err != nil || !op.Operation.Cancelled || deletion == nil || deletion.Operation.Kind != lifecycle.Unbind {
		t.Fatalf("FAC-10: %+v %+v %v", op, deletion, err)
	}
	d.settle(deletion.Token)
	refused(t, lifecycle.NotFound, expect.Err(d.Binding(t.Context(), d.caller(true), "i", "b")), "FAC-10: the binding is there")
	// The instance is as it was.
	if _, err := d.Instance(t.Context(), d.caller(true), "i"); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeCancelled(t *testing.T) {
	d := newDesk(t)
	d.settles = false
	first, err := d.put("async", d.caller(true), "")
	expect.OK(t, err)
	other := first.Token
	other.Key.Platform = "other"
	unknown := first.Token
	unknown.Operation = "operation-999999999999"
	for name, token := range map[string]string{"Nonsense": "nonsense", "Unknown": unknown.String(), "OfAnotherPlatform": other.String()} {
		if _, _, err := d.Cancel(t.Context(), d.caller(true), token); reason(err) != lifecycle.NotFound {
			t.Errorf("FAC-12: %s: %v", name, err)
		}
	}
	d.settle(first.Token)
	if _, _, err := d.cancel(first.Token); reason(err) != lifecycle.Conflict {
		t.Errorf("FAC-10: a finished creation was cancelled: %v", err)
	}
	if _, err := d.Instance(t.Context(), d.caller(true), "i"); err != nil {
		t.Errorf("FAC-10: the instance was touched: %v", err)
	}
	update, err := d.Update(t.Context(), broker.UpdateRequest{
		Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], Parameters: []byte(`{"delay_seconds":1}`),
	})
	if err != nil || update.Effect != broker.Accepted {
		t.Fatalf("%+v %v", update, err)
	}
	if _, _, err := d.cancel(update.Token); reason(err) != lifecycle.Conflict {
		t.Errorf("FAC-10: an update was cancelled: %v", err)
	}
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
		"OfAPlatform": {"DEPR-07", func(d *desk, _ lifecycle.Token) error {
			_, err := d.delete(d.caller(true))
			return err
		}, lifecycle.AsyncRequired},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			first, err := d.put("async", d.caller(true), "")
			expect.OK(t, err)
			expect.OK(t, tc.begin(d, first.Token))
			got, err := d.delete(d.caller(false))
			if reason(err) != tc.want || err == nil && got.Effect != broker.Done {
				t.Errorf("%s: %+v %v", tc.reason, got, err)
			}
		})
	}
}
