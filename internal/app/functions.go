package app

import "time"

// Times of the functions, for whoever deploys them.
const (
	// APITimeout is below the 29 s that API Gateway waits, so that no request
	// outlives its answer. A request's own time ends a second before.
	APITimeout = 28 * time.Second
	// ProvisionerTimeout is when a step is certainly dead.
	ProvisionerTimeout = time.Minute
	// CallsTimeout is when a call inside a VPC is certainly dead: after the longest call
	// that a step makes, and before the lease of that step ends.
	CallsTimeout  = ProvisionerTimeout - 10*time.Second
	ReaperTimeout = time.Minute
)

// RoleCalls is the provisioner's role inside a VPC, where it only makes the calls
// of providers.
const RoleCalls = "calls"

// CatalogFile is the compiled catalog, beside the program of each function that
// needs it.
const CatalogFile = "catalog.dat"
