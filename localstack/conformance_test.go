//go:build deployed

package localstack_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/servicestest"
	"github.com/longshore/longshore/kit/conformance"
)

// emulatorFaults are the cases that an emulator answers wrongly by itself, by what its URLs look like.
var emulatorFaults = map[string]map[string]string{
	"/_user_request_": {"INP-11/slash": "MiniStack decodes %2F in a path, after which it is another path"},
}

// The deployed broker keeps to the API, rule by rule. AWS services are left to TestServices: what the kit asks of a plan is the
// same for all, and they take longer. LONGSHORE_CHECK_ONLY matches the cases that are asked, where all are asked elsewhere.
func TestConformance(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	only := expect.Get(regexp.Compile(os.Getenv("LONGSHORE_CHECK_ONLY")))(t, "LONGSHORE_CHECK_ONLY")
	var services []string
	for _, s := range append(servicestest.Services(), servicestest.Own()) {
		services = append(services, s.Offering)
	}
	options := conformance.Options{Now: time.Now, Only: only, OperationTimeout: settleLimit, Without: services}
	report := expect.Get(conformance.Run(context.WithoutCancel(t.Context()),
		conformance.Target{URL: p.url, Username: p.username, Password: p.password}, options))(t)
	faults := map[string]string{}
	for suffix, cases := range emulatorFaults {
		if strings.HasSuffix(p.url, suffix) {
			faults = cases
		}
	}
	for _, r := range report.Results {
		why, known := faults[r.ID]
		switch failed := r.Outcome == conformance.Failed || r.Outcome == conformance.Blocked; {
		case known && failed:
			t.Logf("%s: %s", r.ID, why)
		case known:
			t.Errorf("%s passes, although: %s", r.ID, why)
		case failed:
			t.Errorf("%s [%s] %s (%s): %s %s %q", r.ID, r.Level, r.Outcome, r.Plan, r.Title, r.Reason, r.Failures)
		}
	}
	if len(report.Left) > 0 {
		t.Errorf("left behind: %s", report.Left)
	}
	passed, chosen := report.Count(conformance.Passed), len(options.Cases())
	t.Logf("%d cases in %v: %d passed", len(report.Results), report.Duration.Round(time.Second), passed)
	if passed == 0 || passed < chosen*3/4 {
		t.Errorf("only %d of %d cases passed", passed, chosen)
	}
}
