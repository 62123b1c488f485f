package stepfunctions

// The states of the state machine, as its definition names them.
const (
	StateStep      = "Step"
	StatePending   = "Pending"
	StateWait      = "Wait"
	StateAbandoned = "Abandoned"
)
