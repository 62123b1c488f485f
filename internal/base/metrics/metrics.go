// Package metrics counts events for operators. On AWS, each measurement is a line of JSON in a
// function's log, in CloudWatch's embedded metric format. A single process adds its
// measurements up, and writes them in OpenMetrics. Both forms use the same names. No
// measurement ever holds a user's text.
package metrics

import (
	"cmp"
	"encoding/json"
	"io"
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

// Labels are dimensions with their values, in the order of their names; a metric that has fewer ends with empty ones.
type Labels [2]Label

// A Label is a dimension with its value.
type Label struct{ Name, Value string }

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
func (m *Metrics) Write(labels Labels, fields map[string]string, values ...Value) {
	switch {
	case m == nil:
		return
	case m.out == nil:
		for _, v := range values {
			m.add(measured{v.Name, v.Unit, labels}, v.N)
		}
		return
	}
	names, line := []string{DimensionStack}, map[string]any{DimensionStack: m.stack}
	for name, text := range fields {
		line[name] = text
	}
	for _, l := range labels {
		if l.Name != "" {
			names = append(names, l.Name)
			line[l.Name] = l.Value
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
	m.Write(Labels{{dimension, value}}, nil, Value{Name: name, N: 1})
}
