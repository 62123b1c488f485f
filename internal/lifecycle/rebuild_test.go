package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// Credentials that are lost stay so when an unbind has failed: the binding is
// not shown as one that never had any (GETB-01).
func TestLostCredentialsStayLost(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	key := lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}
	b, err := lifecycle.Binding{}.Rebuild(lifecycle.Stray{Key: key, Incarnation: "x", Provider: "demo"}, lifecycle.Instance{Incarnation: "y"}, now)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err = b.BeginUnbind(lifecycle.Start{ID: "unbind", Now: now, Received: now, Timeout: time.Hour})
	if err == nil {
		b, err = b.Fail(now, lifecycle.Failure{Message: "No."})
	}
	if err != nil || b.State != lifecycle.DeleteFailed {
		t.Fatalf("%v %v", b.State, err)
	}
	var refusal *lifecycle.Refusal
	if err := b.OnRead(); !errors.As(err, &refusal) || refusal.Reason != lifecycle.Unprocessable {
		t.Errorf("read as %v", err)
	}
}
