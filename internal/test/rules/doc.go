// Package rules compares the list of the API's rules with the tests that name them, and
// writes docs/conformance.md. Update that file after naming a rule in a test:
//
//	go test ./internal/test/rules -update
package rules
