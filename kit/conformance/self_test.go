package conformance_test

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/kit/conformance"
)

const (
	username = "platform"
	password = "kit-password-5c1e"
	// demoDelay is how long the demo's operations take: long enough to be asked about while they run.
	demoDelay = "400ms"
)

// delayed gives the demo its delay.
func delayed(name string) string { return map[string]string{app.EnvDemoDelay: demoDelay}[name] }

// open starts the embedded broker.
func open(t *testing.T) *embedded.Broker {
	t.Helper()
	broker, err := embedded.Open(embedded.Settings{Data: t.TempDir(), Username: username, Password: password, Getenv: delayed},
		testkit.Shipped(), slog.New(slog.DiscardHandler))
	expect.OK(t, err, "opening the broker")
	t.Cleanup(broker.Close)
	return broker
}

// at is a handler's own target.
func at(t *testing.T, h http.Handler) conformance.Target {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return conformance.Target{URL: server.URL, Username: username, Password: password}
}

// checked asks a broker as most tests do.
func checked(t *testing.T, target conformance.Target, o conformance.Options) conformance.Report {
	t.Helper()
	o.Now, o.Parallel, o.OperationTimeout = time.Now, cmp.Or(o.Parallel, 8), cmp.Or(o.OperationTimeout, 5*time.Minute)
	if o.Only == nil {
		o.Only = only(t)
	}
	return expect.Get(conformance.Run(t.Context(), target, o))(t)
}

// notOffered are the cases that no plan of the demo has anything to show for.
var notOffered = []string{"UPD-15/allowed", "CAT-19/endpoint", "ROT-06"}

// Our broker passes.
func TestOurBrokerConforms(t *testing.T) {
	report := checked(t, at(t, open(t).Handler), conformance.Options{})
	for _, r := range report.Results {
		switch r.Outcome {
		case conformance.Failed, conformance.Blocked:
			saysWrong(t, r)
		case conformance.NotApplicable:
			if !slices.Contains(notOffered, r.ID) {
				t.Errorf("%s was not asked: %s", r.ID, r.Reason)
			}
		}
	}
	for _, left := range report.Left {
		t.Errorf("left behind: %s", left)
	}
	t.Logf("%d cases in %v: %d passed, %d not applicable", len(report.Results), report.Duration,
		report.Count(conformance.Passed), report.Count(conformance.NotApplicable))
}

// onlyVariable restricts the cases, for work on one of them.
const onlyVariable = "LONGSHORE_CHECK_ONLY"

// only are the cases that are asked: all, unless it is set.
func only(t *testing.T) *regexp.Regexp {
	t.Helper()
	if pattern := os.Getenv(onlyVariable); pattern != "" {
		return regexp.MustCompile(pattern)
	}
	return nil
}
