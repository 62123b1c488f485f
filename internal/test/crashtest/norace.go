//go:build !race

package crashtest

// oneIn of all positions, and of the budget, is tried: each.
const oneIn = 1
