// Package races asks many things at once, of the same and of different instances and
// bindings, and requires that each history is linearizable: the answers are those of a
// broker that does one thing at a time. It needs the whole broker but the wire and the
// cloud, on both stores.
//
// SEED=n asks the same again; how the requests interleave is up to the machine.
// HISTORIES=n asks for n histories. A failure prints the seed of its own history:
// SEED=n HISTORIES=1 asks that one alone.
package races
