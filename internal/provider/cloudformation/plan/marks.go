package plan

// The names of labels that say more of a thing than its tags, for people and programs without
// its record.
const (
	LabelOffering = "longshore:offering"
	// LabelScope tells the brokers apart that share an account: policies use it for things
	// whose names do not tell, such as keys.
	LabelScope    = "longshore:scope"
	LabelPlan     = "longshore:plan" // its id
	LabelOnDelete = "longshore:on-delete"
	// LabelRetained is on resources that outlive their stack: since when.
	LabelRetained = "longshore:retained"
)
