// Package lifecycle owns the records of the broker (Record, with its Operation)
// and the only legal ways in which they change.
//
// Every function is pure: the clock, randomness and all input and output belong to the
// callers. The table of decisions in answer.go gives each state's answer to each request
// (IDEM-01).
package lifecycle
