// Package metrics counts events for operators. On AWS, each measurement is a line of JSON in a
// function's log, in CloudWatch's embedded metric format. A single process adds its
// measurements up, and writes them in OpenMetrics. Both forms use the same names. No
// measurement ever holds a user's text.
package metrics

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// Namespace is the namespace under which CloudWatch lists the metrics.
const Namespace = "Longshore"

// DimensionStack distinguishes the brokers of an account.
const DimensionStack = "Stack"

// The metrics, with the dimensions that each has beside the stack.
const (
	Accepted = "Accepted" // operations that were begun; kind
	Settled  = "Settled"  // operations that ended; kind, result
	Duration = "Duration" // how long operations took, in milliseconds; kind, result
	Answered = "Answered" // requests, by the class of their status; class
	PastDue  = "PastDue"  // operations that the reaper found stuck; not written if there are none
	Reaped   = "Reaped"   // acts of the reaper; what
	Trouble  = "Trouble"  // 1, every ten minutes, for a target that operations wait for, or that an inventory did not reach
	Halted   = "Halted"   // 1 while the reaper leaves orphans alone until it is told to go on

	DimensionKind   = "Kind"
	DimensionResult = "Result"
	DimensionClass  = "Class"
	DimensionWhat   = "What"
)

// A Metrics takes measurements. The nil Metrics drops them.
type Metrics struct {
	stack string
	now   func() time.Time

	mu     sync.Mutex
	out    io.Writer // nil if measurements are added up
	totals map[measured]*total
}

// New returns a Metrics that writes to out.
func New(stack string, out io.Writer, now func() time.Time) *Metrics {
	return &Metrics{stack: stack, out: out, now: now}
}

// A Value is one number of a measurement.
type Value struct {
	Name string
	N    float64
	Unit string // Count unless it is set
}

// Milliseconds is the unit of a duration.
const Milliseconds = "Milliseconds"

// Write writes one measurement. Fields are logged beside it, and are not dimensions: each value of
// a field that has many values, such as the plan, would be a metric of its own, and cost money.
func (m *Metrics) Write(dimensions, fields map[string]string, values ...Value) {
	switch {
	case m == nil:
		return
	case m.out == nil:
		for _, v := range values {
			m.add(measured{v.Name, v.Unit, labelsOf(dimensions)}, v.N)
		}
		return
	}
	names := append([]string{DimensionStack}, slices.Sorted(maps.Keys(dimensions))...)
	line := map[string]any{DimensionStack: m.stack}
	for _, texts := range []map[string]string{fields, dimensions} {
		for name, text := range texts {
			line[name] = text
		}
	}
	var defined []map[string]string
	for _, v := range values {
		defined = append(defined, map[string]string{"Name": v.Name, "Unit": cmp.Or(v.Unit, "Count")})
		line[v.Name] = v.N
	}
	line["_aws"] = map[string]any{"Timestamp": m.now().UnixMilli(), "CloudWatchMetrics": []map[string]any{
		{"Namespace": Namespace, "Dimensions": [][]string{names}, "Metrics": defined},
	}}
	raw, _ := json.Marshal(line) // texts and numbers can always be encoded
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.out.Write(append(raw, '\n'))
}

// Count writes a count of one, with one dimension beside the stack.
func (m *Metrics) Count(name, dimension, value string) {
	switch {
	case m == nil:
	case m.out == nil: // the short way, since this runs at each request
		m.add(measured{name: name, labels: [most]label{{dimension, value}}}, 1)
	default:
		m.Write(map[string]string{dimension: value}, nil, Value{Name: name, N: 1})
	}
}
