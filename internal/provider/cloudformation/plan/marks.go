package plan

// The names of labels that say what a thing is of, for whoever finds it without its
// record.
const (
	LabelOffering = "longshore:offering"
	// LabelScope is whose it is, among the brokers that share an account: policies tell
	// by it what no name tells, such as keys.
	LabelScope    = "longshore:scope"
	LabelPlan     = "longshore:plan" // its id
	LabelOnDelete = "longshore:on-delete"
	// LabelRetained is on what outlives its stack: since when.
	LabelRetained = "longshore:retained"
)
