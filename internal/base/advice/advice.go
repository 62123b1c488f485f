// Package advice is the one error for operators that says what to do: a setting,
// a data folder or an offering's file is wrong, and how it is made right.
package advice

import "fmt"

// An Error is something that an operator mends. It carries no value that may be
// secret.
type Error struct {
	// Name is what is wrong, such as a setting: What goes on with the sentence.
	Name string
	// File is where it is wrong, in place of a name or beside it: What is then a
	// sentence of its own. Line counts from 1; 0 for the whole file.
	File string
	Line int
	// What is wrong, and the Remedy: lower case, no full stop.
	What, Remedy string
	// Cause is what was met, where that says more; nil for nothing.
	Cause error
}

// For is an error about a setting, a folder, or whatever has a name.
func For(name, what, remedy string) *Error { return &Error{Name: name, What: what, Remedy: remedy} }

// Error renders a place in a file as editors and terminals recognise it.
func (e *Error) Error() string {
	var s string
	switch {
	case e.Line > 0:
		s = fmt.Sprintf("%s:%d: %s; %s", e.File, e.Line, e.What, e.Remedy)
	case e.File != "":
		s = fmt.Sprintf("%s: %s; %s", e.File, e.What, e.Remedy)
	default:
		s = fmt.Sprintf("%s %s: %s", e.Name, e.What, e.Remedy)
	}
	if e.Cause != nil {
		s += fmt.Sprintf(" (%v)", e.Cause)
	}
	return s
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }
