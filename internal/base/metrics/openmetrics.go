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

// most is how many dimensions a metric has beside the stack.
const most = 2

// A label is a dimension with its value.
type label struct{ name, value string }

// A measured is what is added up by itself. Its labels are in order; those that it lacks are empty.
type measured struct {
	name, unit string
	labels     [most]label
}

func labelsOf(dimensions map[string]string) (all [most]label) {
	for i, name := range slices.Sorted(maps.Keys(dimensions)) {
		all[i] = label{name, dimensions[name]}
	}
	return all
}

// text is the name and the labels as OpenMetrics writes them.
func (m measured) text() (family, labels string) {
	family = "longshore_" + snake(m.name)
	if m.unit == Milliseconds {
		family += "_seconds"
	}
	var all []string
	for _, l := range m.labels {
		if l.name != "" {
			all = append(all, fmt.Sprintf("%s=%q", snake(l.name), l.value))
		}
	}
	return family, strings.Join(all, ",")
}

// A total is the sum of what was measured, in seconds where it is a duration.
type total struct {
	sum float64
	// counts has how many were at most as long as each of the steps; nil for what is a count
	// itself.
	counts []int
}

// steps are the seconds by which durations are told apart; the last one is none.
var steps = []float64{1, 5, 15, 60, 300, 900, 3600}

// Totals makes one that adds its measurements up.
func Totals() *Metrics { return &Metrics{totals: map[measured]*total{}} }

// add adds a measurement up.
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

// WriteTotals writes all totals, without the end.
func (m *Metrics) WriteTotals(to io.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[[2]string]*total{}
	for of, t := range m.totals {
		family, labels := of.text()
		all[[2]string{family, labels}] = t
	}
	before := ""
	for _, key := range slices.SortedFunc(maps.Keys(all), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		t, family := all[key], key[0]
		if family != before {
			before = family
			kind := map[bool]string{true: "counter", false: "histogram"}[t.counts == nil]
			_, _ = fmt.Fprintf(to, "# TYPE %s %s\n", family, kind)
		}
		t.write(to, family, key[1])
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
