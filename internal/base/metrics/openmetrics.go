package metrics

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/longshore/longshore/internal/base/sorted"
)

// ContentType is the media type of OpenMetrics.
const ContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// This package writes the format itself: Prometheus's own library makes the program 2 MB
// larger, since it brings in Protocol Buffers and their reflection.

// A measured identifies measurements that are added up.
type measured struct {
	name, unit string
	labels     Labels
}

// text returns the name and the labels as OpenMetrics writes them.
func (m measured) text() (family, labels string) {
	family = "longshore_" + snake(m.name)
	if m.unit == Milliseconds {
		family += "_seconds"
	}
	var all []string
	for _, l := range m.labels {
		if l.Name != "" {
			all = append(all, fmt.Sprintf("%s=%q", snake(l.Name), l.Value))
		}
	}
	return family, strings.Join(all, ",")
}

// A total is the sum of measurements, in seconds if the metric is a duration.
type total struct {
	sum float64
	// counts[i] is the number of measurements of at most steps[i], and the last that of all;
	// nil if the metric is a plain counter.
	counts []int
}

// steps are the upper bounds, in seconds, of a histogram's buckets; the last bucket has none.
var steps = []float64{1, 5, 15, 60, 300, 900, 3600}

// Totals returns a Metrics that adds its measurements up.
func Totals() *Metrics { return &Metrics{totals: map[measured]*total{}} }

// add adds a measurement to its total.
func (m *Metrics) add(of measured, n float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.totals[of]
	if t == nil {
		t = &total{}
		if of.unit == Milliseconds {
			t.counts = make([]int, len(steps)+1)
		}
		m.totals[of] = t
	}
	if t.counts != nil {
		n /= 1000
	}
	t.sum += n
	for i := range t.counts {
		if i == len(steps) || n <= steps[i] {
			t.counts[i]++
		}
	}
}

// WriteTotals writes all totals, without the marker that ends the format.
//
// Hazard: a reader may be slow, and requests wait while the totals are locked. So the text is whole
// before any of it is written.
func (m *Metrics) WriteTotals(to io.Writer) {
	var text bytes.Buffer
	m.format(&text)
	_, _ = text.WriteTo(to)
}

func (m *Metrics) format(to io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]*total{} // by family and labels, in this order
	for of, t := range m.totals {
		family, labels := of.text()
		all[family+"\x00"+labels] = t
	}
	before := ""
	for key, t := range sorted.Map(all) {
		family, labels, _ := strings.Cut(key, "\x00")
		if family != before {
			before = family
			kind := map[bool]string{true: "counter", false: "histogram"}[t.counts == nil]
			_, _ = fmt.Fprintf(to, "# TYPE %s %s\n", family, kind)
		}
		t.write(to, family, labels)
	}
}

func (t *total) write(to io.Writer, family, labels string) {
	within := func(label string) string {
		if all := strings.Trim(labels+","+label, ","); all != "" {
			return "{" + all + "}"
		}
		return ""
	}
	if t.counts == nil {
		_, _ = fmt.Fprintf(to, "%s_total%s %g\n", family, within(""), t.sum)
		return
	}
	for i, n := range t.counts {
		le := "+Inf"
		if i < len(steps) {
			le = fmt.Sprintf("%.1f", steps[i])
		}
		_, _ = fmt.Fprintf(to, "%s_bucket%s %d\n", family, within(fmt.Sprintf("le=%q", le)), n)
	}
	_, _ = fmt.Fprintf(to, "%s_sum%s %g\n%[1]s_count%[2]s %[4]d\n", family, within(""), t.sum, t.counts[len(steps)])
}

// snake returns a name of CloudWatch's in the form that Prometheus uses: PastDue becomes past_due.
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
