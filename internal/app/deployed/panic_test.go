package deployed

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
)

// Lambda logs a panic's value, and Step Functions keeps it in the history of the execution: neither gets to see it.
func TestAFunctionsPanicIsAnErrorWithoutItsValue(t *testing.T) {
	var log bytes.Buffer
	d := Parts{Log: slog.New(slog.NewJSONHandler(&log, nil))}
	err := func() (err error) {
		defer d.Recovered(context.Background(), &err)
		panic("canary-90d4")
	}()
	if err == nil || strings.Contains(err.Error()+log.String(), "canary-90d4") ||
		!strings.Contains(log.String(), "panic_test.go") {
		t.Errorf("error %v, log: %s", err, log.String())
	}
}
