// Package metrics counts what operators watch, in CloudWatch's embedded metric
// format: one line of JSON for each measurement, which CloudWatch turns into
// metrics where a function's log is kept, and which is a plain log line
// anywhere else. What is counted when is left to those who count. No text of a
// user is ever in it.
package metrics

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// Namespace is where CloudWatch lists the metrics.
const Namespace = "Longshore"

// DimensionStack tells the brokers of an account apart.
const DimensionStack = "Stack"

// The metrics, and the dimensions that each has beside the stack.
const (
	Accepted = "Accepted" // operations that were begun; kind
	Settled  = "Settled"  // operations that ended; kind, result
	Duration = "Duration" // how long they took, in milliseconds; kind, result
	Answered = "Answered" // requests, by the class of their status; class
	PastDue  = "PastDue"  // operations that the reaper found stuck; not written for none
	Reaped   = "Reaped"   // what the reaper did; what
	Trouble  = "Trouble"  // 1, every ten minutes, for a target that operations wait for, or that an inventory did not reach
	Halted   = "Halted"   // 1 while the reaper leaves orphans alone until it is told to go on

	DimensionKind   = "Kind"
	DimensionResult = "Result"
	DimensionClass  = "Class"
	DimensionWhat   = "What"
)

// A Metrics writes measurements. The nil Metrics writes nothing.
type Metrics struct {
	stack string
	now   func() time.Time

	mu  sync.Mutex
	out io.Writer
}

// New makes one that writes to out.
func New(stack string, out io.Writer, now func() time.Time) *Metrics {
	return &Metrics{stack: stack, out: out, now: now}
}

// A Value is one number of a measurement.
type Value struct {
	Name string
	N    float64
	Unit string // Count unless it is set
}

// A definition is a metric as CloudWatch is told of it.
type definition struct {
	Name string
	Unit string
}

type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []definition
}

type about struct {
	Timestamp         int64
	CloudWatchMetrics []directive
}

// Write writes one measurement. Fields are kept beside it in the log, and are
// no dimensions: what there are many of, such as plans, would be a metric, and
// cost, each.
func (m *Metrics) Write(dimensions, fields map[string]string, values ...Value) {
	if m == nil {
		return
	}
	names := append([]string{DimensionStack}, slices.Sorted(maps.Keys(dimensions))...)
	line := map[string]any{DimensionStack: m.stack}
	for name, value := range fields {
		line[name] = value
	}
	for name, value := range dimensions {
		line[name] = value
	}
	d := directive{Namespace: Namespace, Dimensions: [][]string{names}}
	for _, v := range values {
		if v.Unit == "" {
			v.Unit = "Count"
		}
		d.Metrics = append(d.Metrics, definition{v.Name, v.Unit})
		line[v.Name] = v.N
	}
	line["_aws"] = about{Timestamp: m.now().UnixMilli(), CloudWatchMetrics: []directive{d}}
	raw, err := json.Marshal(line)
	if err != nil {
		return // never: it is text and numbers
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.out.Write(append(raw, '\n'))
}

// Count writes that something happened once, with its one dimension beside the stack.
func (m *Metrics) Count(name, dimension, value string) {
	if m != nil {
		m.Write(map[string]string{dimension: value}, nil, Value{Name: name, N: 1})
	}
}
