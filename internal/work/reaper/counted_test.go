package reaper_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/work/reaper"
)

// A sweep counts the cases that alarms ring for, with no dimension beside the stack, and nothing
// if it found nothing or did nothing.
func TestSweepsAreCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		report reaper.Report
		want   string
	}{
		"Nothing":   {reaper.Report{}, ""},
		"Busy":      {reaper.Report{Busy: true, Unreached: true}, ""},
		"Halted":    {reaper.Report{Halted: true}, `"Halted":1`},
		"Unreached": {reaper.Report{Unreached: true}, `"Trouble":1`},
		"PastDue":   {reaper.Report{Swept: ledger.Swept{Redriven: 1, Overdue: 2}}, `"PastDue":3`},
	} {
		var out bytes.Buffer
		tc.report.Count(metrics.New("s", &out, time.Now))
		line, _, _ := strings.Cut(out.String(), "\n")
		if tc.want == "" && line != "" || !strings.Contains(line, tc.want) || line != "" &&
			!strings.Contains(line, `"Dimensions":[["Stack"]]`) {
			t.Errorf("%s: %q, want %q", name, line, tc.want)
		}
	}
}
