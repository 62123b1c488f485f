// Package lifecycle owns the records of the broker (Record, with its Operation)
// and the only legal ways in which they change.
//
// Everything here is a pure function of its arguments: the clock, randomness
// and all input and output belong to the callers. Section 14 of the
// specification checklist is the truth table of this package.
package lifecycle
