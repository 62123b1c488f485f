package e2e_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/kit/conformance"
)

// The program keeps to the API, rule by rule.
func TestConformance(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), credentials("LONGSHORE_DEMO_DELAY=400ms")...)
	report := expect.Get(conformance.Run(t.Context(), conformance.Target{URL: p.url, Username: username, Password: password},
		conformance.Options{Now: time.Now, Parallel: 8, OperationTimeout: settleLimit}))(t)
	for _, r := range report.Results {
		if r.Outcome == conformance.Failed || r.Outcome == conformance.Blocked {
			t.Errorf("%s %s: %s %s %v", r.ID, r.Outcome, r.Title, r.Reason, r.Failures)
		}
	}
	if passed := report.Count(conformance.Passed); passed < 500 || len(report.Left) > 0 {
		t.Errorf("%d cases passed, left behind %v", passed, report.Left)
	}
}
