// Package lifecycle owns the records of the broker (Record, with its Operation)
// and the only legal ways in which they change.
//
// Everything here is a pure function of its arguments: the clock, randomness
// and all input and output belong to the callers. The table of
// decisions in answer.go says what each state answers to each request (IDEM-01).
package lifecycle
