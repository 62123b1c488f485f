// Package internal holds the floors of the broker. It has no code of its own: its tests
// check that packages import only their own floor and those below it, that functions and
// lines are short, that docs/architecture.md is true, and that links between pages lead
// somewhere.
package internal
