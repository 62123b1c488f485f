package small_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/bench/small"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/kit/conformance"
)

const (
	username = "platform"
	password = "small-password-3f9d"
)

// departures are the rules with MUST that a small broker on brokerapi breaks; `longshore check` prints the sentence for each.
var departures = []string{
	"DEPR-07", "ERR-06", "INP-01", "INP-02", "INP-03", "PROV-06", "PROV-12", "PROV-15", "PROV-20", "UPD-17",
}

// The kit finds these and no more that bind: whatever else brokerapi does is permitted.
func TestTheKitOnBrokerapi(t *testing.T) {
	server := httptest.NewServer(small.New(username, password, 400*time.Millisecond, slog.New(slog.DiscardHandler)))
	defer server.Close()
	report := expect.Get(conformance.Run(context.Background(),
		conformance.Target{URL: server.URL, Username: username, Password: password},
		conformance.Options{Now: time.Now, Parallel: 8, OperationTimeout: 20 * time.Second}))(t)
	found := map[string]bool{}
	for _, r := range report.Results {
		rule := conformance.Case{ID: r.ID}.Rule()
		switch {
		case r.Outcome == conformance.Blocked:
			t.Errorf("%s blocked: %s", r.ID, r.Reason)
		case r.Outcome == conformance.Failed && r.Level == conformance.Must && !slices.Contains(departures, rule):
			t.Errorf("%s failed: %v\n%s", r.ID, r.Failures, r.Source)
		case r.Outcome == conformance.Failed && r.Level == conformance.Must:
			found[rule] = true
		}
	}
	for _, rule := range departures {
		if !found[rule] {
			t.Errorf("%s was not found", rule)
		}
	}
	expect.Same(t, "left behind", "", strings.Join(report.Left, "\n"))
}
