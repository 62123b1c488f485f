// Package internal holds the broker's rooms. It has no code of its own: its tests
// check that rooms import only rooms below them, that functions and lines are short,
// and that docs/architecture.md is true.
package internal
