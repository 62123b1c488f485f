// Package rules keeps the rules of the API, rules.tsv, and compares them with what names
// them: tests, comments, pages and the conformance kit. It writes docs/conformance.md.
// Update that page after a rule was named in a test, or reworded:
//
//	go test ./internal/test/rules -update
package rules
