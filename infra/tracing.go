package main

// Tracing makes X-Ray record requests and executions: how long each part took, and which part
// failed. X-Ray does not see bodies.
type Tracing bool

// Grants returns the rights to write traces.
func (t Tracing) Grants(more ...string) Grants {
	if !t {
		return nil
	}
	return allowAll("Traces", "X-Ray has no resources that the right to write traces could be given for.",
		append([]string{"xray:PutTelemetryRecords", "xray:PutTraceSegments"}, more...)...)
}
