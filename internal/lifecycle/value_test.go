package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/lifecycle"
)

// The usual format verbs do not print a Sealed, and a log line of a record shows none of
// it. A Sealed is no secret without the vault, so it does no harm that %d, %s of a whole
// record, and a Sealed logged by itself do show it.
func TestSealedIsNotPrinted(t *testing.T) {
	const canary = "canary-7d31"
	sealed := lifecycle.Sealed(canary)
	a := attributes("small")
	a.Parameters = sealed
	binding := lifecycle.Record{BindingOnly: lifecycle.BindingOnly{Secret: sealed, Grant: sealed}, Attributes: a}
	instance := lifecycle.Record{Attributes: a, Operation: &lifecycle.Operation{Target: &a}}
	values := map[string]any{
		"Alone": sealed, "Pointer": &sealed, "Slice": []lifecycle.Sealed{sealed}, "Map": map[string]lifecycle.Sealed{"a": sealed},
		"Attributes": a, "Instance": instance, "Binding": binding, "PointerToBinding": &binding, "Operation": *instance.Operation,
	}
	forms := []string{
		canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprintf("% x", canary),
		strings.Trim(fmt.Sprint([]byte(canary)), "[]"),
		strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", []byte(canary)), "[]byte{"), "}"),
	}
	leaks := func(out string) bool {
		for _, f := range forms {
			if strings.Contains(out, f) {
				return true
			}
		}
		return false
	}
	for name, value := range values {
		verbs := []string{"%v", "%+v", "%#v"}
		switch value.(type) {
		case lifecycle.Sealed, *lifecycle.Sealed, []lifecycle.Sealed, map[string]lifecycle.Sealed:
			verbs = append(verbs, "%s", "%q", "%x", "%X", "% x")
		}
		for _, verb := range verbs {
			if out := fmt.Sprintf(verb, value); leaks(out) {
				t.Errorf("%s of %s prints %s", verb, name, out)
			}
		}
		if err := fmt.Errorf("reading: %v", value); leaks(err.Error()) {
			t.Errorf("an error prints %s: %v", name, err)
		}
		if name == "Alone" {
			continue
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("a line", "value", value)
		if leaks(log.String()) {
			t.Errorf("a log line of %s: %s", name, &log)
		}
	}
}

// A sealed value is stored as it is, and one that is not there stays so.
func TestSealedIsStored(t *testing.T) {
	for name, sealed := range map[string]lifecycle.Sealed{"Bytes": {0, 1, 0xff, '"'}, "None": nil} {
		body, err := json.Marshal(lifecycle.Record{BindingOnly: lifecycle.BindingOnly{Grant: sealed}})
		if err != nil {
			t.Fatal(err)
		}
		var back lifecycle.Record
		if err := json.Unmarshal(body, &back); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Grant, sealed) || (back.Grant == nil) != (sealed == nil) {
			t.Errorf("%s: %d bytes came back as %d", name, len(sealed), len(back.Grant))
		}
	}
}

func TestAskerIsZero(t *testing.T) {
	tests := map[string]struct {
		asker lifecycle.Asker
		want  bool
	}{
		"Nobody":   {lifecycle.Asker{}, true},
		"Empty":    {lifecycle.Asker{Identity: lifecycle.Sealed{}}, true},
		"Platform": {lifecycle.Asker{IdentityPlatform: "cf"}, false},
		"Identity": {lifecycle.Asker{Identity: lifecycle.Sealed("s")}, false},
		"Request":  {lifecycle.Asker{Request: "r"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.asker.IsZero(); got != tc.want {
				t.Errorf("zero is %v", got)
			}
			body, err := json.Marshal(lifecycle.Operation{Asker: tc.asker})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(body), "asker") == tc.want {
				t.Errorf("it is stored as %s", body)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	cause := errors.New("the table is away")
	tests := map[string]struct {
		reason  string
		refusal *lifecycle.Refusal
		kind    lifecycle.Reason
		text    string
		cause   error
	}{
		"Plain": {"a message is its own text", lifecycle.Refuse(lifecycle.NotFound, "There is none."), lifecycle.NotFound, "There is none.",
			nil},
		"Format": {"it may have arguments", lifecycle.Refuse(lifecycle.TooLarge, "More than %d bytes, or %q.", 7, "x"), lifecycle.TooLarge,
			`More than 7 bytes, or "x".`, nil},
		"Empty": {"DEPR-03: it may be empty", lifecycle.Refuse(lifecycle.Gone, ""), lifecycle.Gone, "", nil},
		"Cause": {"the log gets the cause", &lifecycle.Refusal{Reason: lifecycle.Internal, Message: "Failed.", Cause: cause},
			lifecycle.Internal, "Failed.: the table is away", cause},
		"Async": {"ERR-03", lifecycle.RefuseAsyncRequired(), lifecycle.AsyncRequired,
			"This service plan requires client support for asynchronous service operations.", nil},
		"Parallel": {"ERR-04", lifecycle.RefuseConcurrent(), lifecycle.ConcurrencyError,
			"The Service Broker does not support concurrent requests that mutate the same resource.", nil},
		"App": {"ERR-05", lifecycle.RefuseRequiresApp(), lifecycle.RequiresApp,
			"This service supports generation of credentials through binding an application only.", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.refusal.Reason != tc.kind || tc.refusal.Error() != tc.text {
				t.Errorf("%s: reason %d, %q; want %d, %q", tc.reason, tc.refusal.Reason, tc.refusal.Error(), tc.kind, tc.text)
			}
			wrapped := fmt.Errorf("deciding: %w", tc.refusal)
			var found *lifecycle.Refusal
			if !errors.As(wrapped, &found) || found != tc.refusal {
				t.Errorf("%s: it is not found in what wraps it", tc.reason)
			}
			if got := errors.Unwrap(tc.refusal); got != tc.cause {
				t.Errorf("%s: its cause is %v", tc.reason, got)
			}
			if tc.cause != nil && (!errors.Is(wrapped, tc.cause) || strings.Contains(tc.refusal.Message, tc.cause.Error())) {
				t.Errorf("%s: the cause is hidden, or shown to the user: %q", tc.reason, tc.refusal.Message)
			}
		})
	}
}

// The reasons are all different, and what is not a reason is Internal.
func TestReasons(t *testing.T) {
	reasons := []lifecycle.Reason{
		lifecycle.Internal, lifecycle.OperationFailed, lifecycle.BadRequest, lifecycle.Unauthorized, lifecycle.NotFound,
		lifecycle.MethodNotAllowed, lifecycle.Conflict, lifecycle.Gone, lifecycle.VersionUnsupported, lifecycle.TooLarge,
		lifecycle.Unprocessable, lifecycle.TooManyRequests, lifecycle.AsyncRequired, lifecycle.ConcurrencyError, lifecycle.RequiresApp,
		lifecycle.MaintenanceInfoConflict,
	}
	for n, r := range reasons {
		if int(r) != n {
			t.Errorf("reason %d is the %dth", r, n)
		}
	}
	if diff := cmp.Diff(lifecycle.Internal, (&lifecycle.Refusal{}).Reason); diff != "" {
		t.Errorf("a refusal without a reason (-want +got):\n%s", diff)
	}
}

// LOP-20: the failure of what took too long says what can be done.
func TestOverdue(t *testing.T) {
	f := lifecycle.Overdue()
	if f.Message == "" || f.InstanceUsable != nil || f.UpdateRepeatable != nil {
		t.Errorf("it is %+v", f)
	}
}
