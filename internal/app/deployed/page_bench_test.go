package deployed_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore/longshore/internal/test/emulator"
)

// far is the way to a cloud whose answers come later by a time.
type far struct {
	aws.HTTPClient
	by time.Duration
}

func (f far) Do(r *http.Request) (*http.Response, error) {
	time.Sleep(f.by)
	return f.HTTPClient.Do(r)
}

// BenchmarkPage compares the page of an instance, with facts and a history, with a poll. The emulator answers one call after the
// other, which the table on AWS does not: on a longer way, the number of calls in a row decides. `make bench-page` runs it.
func BenchmarkPage(b *testing.B) {
	for _, by := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		b.Run(fmt.Sprintf("every call takes %v longer", by), func(b *testing.B) {
			cfg := emulator.Config(b)
			cfg.HTTPClient = far{cfg.HTTPClient, by}
			f := newTogether(b, cfg)
			service, plan := f.plan("demo", "sync")
			f.call("PUT", "/v2/service_instances/i", "", order(service, plan, ""), 201)
			look := f.page("i")
			look()
			var page, poll time.Duration
			for b.Loop() {
				began := time.Now()
				if got := look(); got.StatusCode != 200 {
					b.Fatal(got.StatusCode, got.Body)
				}
				page += time.Since(began)
				began = time.Now()
				f.call("GET", "/v2/service_instances/i/last_operation", "", "", 200)
				poll += time.Since(began)
			}
			b.ReportMetric(float64(page.Microseconds())/1000/float64(b.N), "ms/page")
			b.ReportMetric(float64(poll.Microseconds())/1000/float64(b.N), "ms/poll")
			b.ReportMetric(float64(page)/float64(poll), "pages/poll")
		})
	}
}
