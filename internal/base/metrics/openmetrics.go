package metrics

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// ContentType is that of OpenMetrics.
const ContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// The format is written here, and not by Prometheus's own library, which makes the program 2 MB
// larger: with it come Protocol Buffers and their reflection.

// A total is the sum of the measurements that have the same name and labels.
type total struct {
	family, labels string
	sum            float64
	// counts has how many were at most as long as each of the steps; nil for what is a count
	// itself.
	counts []int
}

// steps are the seconds by which durations are told apart; the last one is none.
var steps = []float64{1, 5, 15, 60, 300, 900, 3600}

// Totals makes one that adds its measurements up.
func Totals() *Metrics { return &Metrics{totals: map[string]*total{}} }

// add adds measurements up.
func (m *Metrics) add(dimensions map[string]string, values []Value) {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(dimensions)) {
		labels = append(labels, fmt.Sprintf("%s=%q", snake(name), dimensions[name]))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range values {
		t := &total{family: "longshore_" + snake(v.Name), labels: strings.Join(labels, ",")}
		if v.Unit == Milliseconds {
			t.family, t.counts, v.N = t.family+"_seconds", make([]int, len(steps)+1), v.N/1000
		}
		key := t.family + "{" + t.labels
		if m.totals[key] == nil {
			m.totals[key] = t
		}
		m.totals[key].take(v.N)
	}
}

// take adds one measurement.
func (t *total) take(n float64) {
	t.sum += n
	for i := range t.counts {
		if i == len(steps) || n <= steps[i] {
			t.counts[i]++
		}
	}
}

// WriteTotals writes all totals, without the end.
func (m *Metrics) WriteTotals(to io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	family := ""
	for _, key := range slices.Sorted(maps.Keys(m.totals)) {
		t := m.totals[key]
		if t.family != family {
			family = t.family
			kind := map[bool]string{true: "counter", false: "histogram"}[t.counts == nil]
			_, _ = fmt.Fprintf(to, "# TYPE %s %s\n", family, kind)
		}
		t.write(to)
	}
}

func (t *total) write(to io.Writer) {
	within := func(label string) string {
		if all := strings.Trim(t.labels+","+label, ","); all != "" {
			return "{" + all + "}"
		}
		return ""
	}
	if t.counts == nil {
		_, _ = fmt.Fprintf(to, "%s_total%s %g\n", t.family, within(""), t.sum)
		return
	}
	for i, n := range t.counts {
		le := "+Inf"
		if i < len(steps) {
			le = fmt.Sprintf("%.1f", steps[i])
		}
		_, _ = fmt.Fprintf(to, "%s_bucket%s %d\n", t.family, within(fmt.Sprintf("le=%q", le)), n)
	}
	_, _ = fmt.Fprintf(to, "%s_sum%s %g\n%[1]s_count%[2]s %[4]d\n", t.family, within(""), t.sum, t.counts[len(steps)])
}

// snake is a name of CloudWatch's as Prometheus writes names: PastDue is past_due.
func snake(name string) string {
	var b strings.Builder
	for n, r := range name {
		if unicode.IsUpper(r) && n > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
