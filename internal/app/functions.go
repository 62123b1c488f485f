package app

import "time"

// The times of the functions, for the programs that deploy them.
const (
	// APITimeout is below the 29 s that API Gateway waits, so that no request outlives its
	// answer. A request's own time ends a second earlier.
	APITimeout = 28 * time.Second
	// ProvisionerTimeout is the time after which a step is certainly dead.
	ProvisionerTimeout = time.Minute
	// CallsTimeout is the time after which a call inside a VPC is certainly dead: later than
	// the longest call of a step, and before the step's lease ends.
	CallsTimeout  = ProvisionerTimeout - 10*time.Second
	ReaperTimeout = time.Minute
)

// RoleCalls is the provisioner's role inside a VPC, where the function only makes the calls of providers.
const RoleCalls = "calls"

// CatalogFile is the name of the compiled catalog, beside the program of each function that needs it.
const CatalogFile = "catalog.dat"
