//go:build race

package crashtest

// oneIn of all positions, and of the budget, is tried under the race detector,
// which makes a history ten times as slow and has little to find: one process
// runs at a time.
const oneIn = 12
