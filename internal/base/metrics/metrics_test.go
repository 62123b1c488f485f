package metrics_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestLinesAreInTheEmbeddedFormat(t *testing.T) {
	var out bytes.Buffer
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	m := metrics.New("Longshore", &out, func() time.Time { return at })
	m.Write(metrics.Labels{
		{Name: metrics.DimensionKind, Value: "provision"}, {Name: metrics.DimensionResult, Value: "succeeded"},
	},
		map[string]string{"plan": "p"}, metrics.Value{Name: metrics.Settled, N: 1},
		metrics.Value{Name: metrics.Duration, N: 1500, Unit: "Milliseconds"})
	var got map[string]any
	expect.OK(t, json.Unmarshal(out.Bytes(), &got))
	want := map[string]any{
		"Stack": "Longshore", "Kind": "provision", "Result": "succeeded", "plan": "p", "Settled": 1.0, "Duration": 1500.0,
		"_aws": map[string]any{
			"Timestamp": float64(at.UnixMilli()),
			"CloudWatchMetrics": []any{map[string]any{
				"Namespace": "Longshore", "Dimensions": []any{[]any{"Stack", "Kind", "Result"}},
				"Metrics": []any{map[string]any{"Name": "Settled", "Unit": "Count"},
					map[string]any{"Name": "Duration", "Unit": "Milliseconds"}},
			}},
		},
	}
	expect.Same(t, "the line", want, got)
	if !strings.HasSuffix(out.String(), "}\n") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("not one line: %q", out.String())
	}
}

func TestWithoutMetricsNothingIsWritten(t *testing.T) {
	var m *metrics.Metrics
	m.Count(metrics.Accepted, metrics.DimensionKind, "provision")
}

// Lines of requests side by side do not mix.
func TestLinesAreWhole(t *testing.T) {
	var out bytes.Buffer
	m := metrics.New("s", &out, time.Now)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				m.Count(metrics.Answered, metrics.DimensionClass, "2xx")
			}
		})
	}
	all.Wait()
	lines := 0
	for line := range strings.Lines(out.String()) {
		if lines++; !json.Valid([]byte(line)) {
			t.Fatalf("line %q", line)
		}
	}
	expect.Same(t, "lines", 800, lines)
}

// A reader who takes the totals slowly, or not at all, keeps no request from being counted.
func TestASlowReaderHoldsNothingUp(t *testing.T) {
	m := metrics.Totals()
	m.Count(metrics.Answered, metrics.DimensionClass, "2xx")
	read, reading := io.Pipe()
	written := make(chan struct{})
	go func() {
		m.WriteTotals(reading)
		close(written)
	}()
	_, _ = read.Read(make([]byte, 1)) // the rest waits for its reader
	counted := make(chan struct{})
	go func() {
		m.Count(metrics.Answered, metrics.DimensionClass, "2xx")
		close(counted)
	}()
	select {
	case <-counted:
	case <-time.After(10 * time.Second):
		t.Error("a count waits for the reader of the totals")
	}
	expect.OK(t, read.Close())
	<-written
}
