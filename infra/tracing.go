package main

// Tracing has X-Ray see requests and executions: which part took how long, and which failed. It
// sees no bodies.
type Tracing bool

var everything = new("*")

// Grants are for writing traces.
func (t Tracing) Grants(more ...string) Grants {
	if !t {
		return nil
	}
	return allow("Traces", everything, append([]string{"xray:PutTelemetryRecords", "xray:PutTraceSegments"}, more...)...)
}

// Exceptions give the reason why Grants reach everything.
func (t Tracing) Exceptions() []exception {
	if !t {
		return nil
	}
	return []exception{{
		rule: "AwsSolutions-IAM5", reason: "X-Ray has no resources that the right to write traces could be given for.",
		findings: []string{"Resource::*"},
	}}
}
