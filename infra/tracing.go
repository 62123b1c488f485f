package main

// Tracing makes X-Ray record requests and executions: how long each part took, and which part
// failed. X-Ray does not see bodies.
type Tracing bool

var everything = new("*")

// Grants returns the rights to write traces.
func (t Tracing) Grants(more ...string) Grants {
	if !t {
		return nil
	}
	return allow("Traces", everything, append([]string{"xray:PutTelemetryRecords", "xray:PutTraceSegments"}, more...)...)
}

// Exceptions returns the reason why Grants allow all resources.
func (t Tracing) Exceptions() []exception {
	if !t {
		return nil
	}
	return []exception{{
		rule: "AwsSolutions-IAM5", reason: "X-Ray has no resources that the right to write traces could be given for.",
		findings: []string{"Resource::*"},
	}}
}
