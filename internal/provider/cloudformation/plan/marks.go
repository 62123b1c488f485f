package plan

// These labels say more about a resource than its tags, for people and programs that do not have
// its record.
const (
	LabelOffering = "longshore:offering"
	// LabelScope tells the brokers that share an account apart: policies use it for resources whose
	// names do not, such as keys.
	LabelScope    = "longshore:scope"
	LabelPlan     = "longshore:plan" // the plan's id
	LabelOnDelete = "longshore:on-delete"
	// LabelRetained is on resources that outlive their stack: its value is the date since when.
	LabelRetained = "longshore:retained"
)
