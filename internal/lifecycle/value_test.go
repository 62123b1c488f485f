package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// The usual format verbs do not print a Sealed, and a log line of a record shows none of it. A Sealed is no secret
// without the vault, so it does no harm that %d, %s of a whole record, and a Sealed logged by itself do show it.
func TestSealedIsNotPrinted(t *testing.T) {
	const canary = "canary-7d31"
	sealed := lifecycle.Sealed(canary)
	a := attributes("small")
	a.Parameters = sealed
	binding := lifecycle.Record{BindingOnly: lifecycle.BindingOnly{Secret: sealed, Grant: sealed}, Attributes: a}
	instance := lifecycle.Record{Attributes: a, Operation: &lifecycle.Operation{Target: &a}}
	forms := []string{
		canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprintf("% x", canary),
		strings.Trim(fmt.Sprint([]byte(canary)), "[]"),
		strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", []byte(canary)), "[]byte{"), "}"),
	}
	for name, value := range map[string]any{
		"Alone": sealed, "Pointer": &sealed, "Slice": []lifecycle.Sealed{sealed}, "Map": map[string]lifecycle.Sealed{"a": sealed},
		"Attributes": a, "Instance": instance, "Binding": binding, "PointerToBinding": &binding, "Operation": *instance.Operation,
	} {
		verbs := []string{"%v", "%+v", "%#v"}
		switch value.(type) {
		case lifecycle.Sealed, *lifecycle.Sealed, []lifecycle.Sealed, map[string]lifecycle.Sealed:
			verbs = append(verbs, "%s", "%q", "%x", "%X", "% x")
		}
		for _, verb := range verbs {
			expect.Never(t, verb+" of "+name, fmt.Sprintf(verb, value), forms...)
		}
		expect.Never(t, "an error of "+name, fmt.Errorf("reading: %v", value).Error(), forms...)
		if name == "Alone" {
			continue
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("a line", "value", value)
		expect.Never(t, "a log line of "+name, log.String(), forms...)
	}
}

// A sealed value is stored as it is, and one that is not there stays so.
func TestSealedIsStored(t *testing.T) {
	for name, sealed := range map[string]lifecycle.Sealed{"Bytes": {0, 1, 0xff, '"'}, "None": nil} {
		body := expect.Get(json.Marshal(lifecycle.Record{BindingOnly: lifecycle.BindingOnly{Grant: sealed}}))(t)
		var back lifecycle.Record
		expect.OK(t, json.Unmarshal(body, &back))
		if !bytes.Equal(back.Grant, sealed) || (back.Grant == nil) != (sealed == nil) {
			t.Errorf("%s: %d bytes came back as %d", name, len(sealed), len(back.Grant))
		}
	}
}

func TestAskerIsZero(t *testing.T) {
	for name, tc := range map[string]struct {
		asker lifecycle.Asker
		want  bool
	}{
		"Nobody":   {lifecycle.Asker{}, true},
		"Empty":    {lifecycle.Asker{Identity: lifecycle.Sealed{}}, true},
		"Platform": {lifecycle.Asker{IdentityPlatform: "cf"}, false},
		"Identity": {lifecycle.Asker{Identity: lifecycle.Sealed("s")}, false},
		"Request":  {lifecycle.Asker{Request: "r"}, false},
	} {
		expect.Same(t, name+": zero", tc.want, tc.asker.IsZero())
		body := expect.Get(json.Marshal(lifecycle.Operation{Asker: tc.asker}))(t)
		expect.Same(t, name+": left out", tc.want, !bytes.Contains(body, []byte("asker")))
	}
}

func TestRefusals(t *testing.T) {
	cause := errors.New("the table is away")
	for name, tc := range map[string]struct {
		reason  string
		refusal *lifecycle.Refusal
		kind    lifecycle.Reason
		text    string
		cause   error
	}{
		"Plain": {"a message is its own text", lifecycle.Refuse(lifecycle.NotFound, "There is none."), lifecycle.NotFound,
			"There is none.", nil},
		"Format": {"it may have arguments", lifecycle.Refuse(lifecycle.TooLarge, "More than %d bytes, or %q.", 7, "x"),
			lifecycle.TooLarge, `More than 7 bytes, or "x".`, nil},
		"Empty": {"DEPR-03: it may be empty", lifecycle.Refuse(lifecycle.Gone, ""), lifecycle.Gone, "", nil},
		"Cause": {"the log gets the cause", &lifecycle.Refusal{Reason: lifecycle.Internal, Message: "Failed.", Cause: cause},
			lifecycle.Internal, "Failed.: the table is away", cause},
		"Async": {"ERR-03", lifecycle.RefuseAsyncRequired(), lifecycle.AsyncRequired,
			"This service plan requires client support for asynchronous service operations.", nil},
		"Parallel": {"ERR-04", lifecycle.RefuseConcurrent(), lifecycle.ConcurrencyError,
			"The Service Broker does not support concurrent requests that mutate the same resource.", nil},
		"App": {"ERR-05", lifecycle.RefuseRequiresApp(), lifecycle.RequiresApp,
			"This service supports generation of credentials through binding an application only.", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.refusal.Reason != tc.kind || tc.refusal.Error() != tc.text {
				t.Errorf("%s: reason %d, %q; want %d, %q", tc.reason, tc.refusal.Reason, tc.refusal.Error(), tc.kind, tc.text)
			}
			wrapped := fmt.Errorf("deciding: %w", tc.refusal)
			if found := (*lifecycle.Refusal)(nil); !errors.As(wrapped, &found) || found != tc.refusal {
				t.Errorf("%s: it is not found in what wraps it", tc.reason)
			}
			holds(t, errors.Unwrap(tc.refusal) == tc.cause, tc.reason+": its cause", tc.refusal)
			if tc.cause != nil && (!errors.Is(wrapped, tc.cause) || strings.Contains(tc.refusal.Message, tc.cause.Error())) {
				t.Errorf("%s: the cause is hidden, or shown to the user: %q", tc.reason, tc.refusal.Message)
			}
		})
	}
	expect.Same(t, "a refusal without a reason", lifecycle.Internal, (&lifecycle.Refusal{}).Reason)
}

// LOP-20: the failure of what took too long says what can be done.
func TestOverdue(t *testing.T) {
	f := lifecycle.Overdue()
	holds(t, f.Message != "" && f.InstanceUsable == nil && f.UpdateRepeatable == nil, "the failure", f)
}

// A provider's text is shown to people and kept in a record. The record clips a long one
// between two characters, whatever its source.
func TestDescriptionsAreClipped(t *testing.T) {
	long := "a" + strings.Repeat("ü", 20_000)
	i, b := instances.after(t, lifecycle.BeginCreate), bindings.after(t, lifecycle.BeginCreate)
	failure := lifecycle.Failure{Message: long}
	for name, c := range map[string]lifecycle.Record{
		"Progress":        i.Looked(at(1), lifecycle.Look{Description: long}),
		"Trouble":         i.Faulted(at(1), lifecycle.Fault{Trouble: long, Description: long}),
		"InstanceFailure": expect.Get(i.Fail(at(1), failure))(t),
		"BindingFailure":  expect.Get(b.Fail(at(1), failure))(t),
	} {
		got := c.Operation.Description
		if len(got) > limits.Description || len(got) < limits.Description-4 || !utf8.ValidString(got) ||
			!strings.HasPrefix(got, "aüü") || !strings.HasSuffix(got, "ü…") {
			t.Errorf("%s: %d bytes, valid %v, end %q", name, len(got), utf8.ValidString(got), got[max(0, len(got)-8):])
		}
	}
}

// However many calls are lost on their way, a record keeps few leases, and no
// operation that overtakes them waits less than it would for all.
func TestLeasesAreFew(t *testing.T) {
	c := lifecycle.Record{Operation: &lifecycle.Operation{ID: "op", Kind: lifecycle.Provision, Phase: lifecycle.InProgress}}
	for n := range 5 * limits.Leases {
		until := 1000 + n
		if n == 3 {
			until = 9000 // the longest is among those that are merged
		}
		c = c.Leased(fmt.Sprintf("step-%d", n), sec(n), sec(until), nil)
		if len(c.Leases) > limits.Leases {
			t.Fatalf("%d leases after %d calls", len(c.Leases), n+1)
		}
		if !c.Holds(fmt.Sprintf("step-%d", n)) {
			t.Fatalf("step %d does not hold its own lease", n)
		}
	}
	expect.Same(t, "another operation waits for the longest lease, until", sec(9000), c.Busy("other", sec(100), nil))
	expect.Same(t, "the operation itself waits for what is its own, until", sec(9000), c.Busy("op", sec(100), nil))
	// No step gives a merged lease up: one of its calls may go on.
	for n := range 5 * limits.Leases {
		c = c.Released(fmt.Sprintf("step-%d", n))
	}
	if c = c.Released(""); len(c.Leases) != 1 || !c.Busy("other", sec(100), nil).Equal(sec(9000)) {
		t.Errorf("after all steps gave theirs up: %v", c.Leases)
	}
	// When it has run out, a call may have been lost, and one look proves nothing.
	expect.Same(t, "unsure", true, c.Unsure("other", sec(9000), nil))

	// Merged leases of two operations belong to neither.
	c = inCourseOf(lifecycle.Deprovision, "op", lease("a", "other", 0, 500))
	for n := range limits.Leases {
		c = c.Leased(fmt.Sprintf("step-%d", n), sec(n), sec(400), nil)
	}
	expect.Same(t, "the operation waits for the call of the other, until", sec(500), c.Busy("op", sec(100), nil))
}

// The entry of a settled operation names its plan and its parameters, and says why a failure
// failed. A record on which no operation has ended gives none. A deletion that overtakes a
// creation ends it, as cancelled; a tombstone's entry keeps the plan that the instance had.
func TestEnded(t *testing.T) {
	begun := lifecycle.Start{ID: "op", Now: at(0), Timeout: 3600e9, Parameters: []string{"size"}}
	running := expect.Get(lifecycle.Record{Key: instanceKey}.BeginCreate(begun,
		lifecycle.Record{Attributes: lifecycle.Attributes{PlanID: "small"}}))(t)
	failed := expect.Get(running.Fail(at(5), lifecycle.Failure{Message: "No room."}))(t)
	want := &lifecycle.Entry{Key: running.Key, Incarnation: "op", ID: "op", Kind: lifecycle.Provision,
		Phase: lifecycle.Failed, Description: "No room.", Started: at(0), Ended: at(5), PlanID: "small",
		Parameters: []string{"size"}}
	expect.Same(t, "of a failure", want, failed.Ended(running))
	expect.Same(t, "of a running operation", nil, running.Looked(at(1), lifecycle.Look{}).Ended(running))
	expect.Same(t, "of a later write of the record", nil, failed.Ended(failed))
	deleting, err := running.BeginDelete(lifecycle.Start{ID: "remove", Now: at(3)})
	expect.OK(t, err)
	e := deleting.Ended(running)
	holds(t, e != nil && e.ID == "op" && e.Cancelled && e.Phase == lifecycle.Failed && e.PlanID == "small", "the first", e)
	gone := expect.Get(deleting.Succeed(at(4), nil))(t)
	e = gone.Ended(deleting)
	holds(t, e != nil && e.ID == "remove" && e.Kind == lifecycle.Deprovision && e.PlanID == "small", "the deletion", e)
}

// An operation keeps the names of parameters, in order, as far as there is room: never a value.
func TestParameterNames(t *testing.T) {
	of := lifecycle.ParameterNames
	expect.Same(t, "the names", []string{"b", "size"}, of(json.RawMessage(`{"size":"s3cret","b":{"c":1}}`)))
	expect.Same(t, "the names of nothing", nil, of(nil))
	members := map[string]bool{}
	for n := range 100 {
		members[fmt.Sprintf("%03d%s", n, strings.Repeat("\x01", 4))] = true
	}
	many, _ := json.Marshal(members)
	names := of(many)
	if kept, _ := json.Marshal(names); len(kept) > limits.ParameterNames+1 || len(names) < 5 {
		t.Errorf("%d names take %d bytes", len(names), len(kept))
	}
}
