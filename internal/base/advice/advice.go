// Package advice is the error for operators that says what is wrong, such as a setting, a data folder or an
// offering's file, and how to mend it.
package advice

import "fmt"

// An Error is a mistake that an operator mends. It has no value that may be secret.
type Error struct {
	// Name names the thing, such as a setting. What goes on with the sentence.
	Name string
	// File is where the mistake is, in place of a name or beside it: What is then a sentence of its own. Line
	// counts from 1; 0 for the whole file.
	File string
	Line int
	// The mistake and its remedy, in lower case, without a full stop.
	What, Remedy string
	// Cause is the error behind it, if that says more; else nil.
	Cause error
}

// For is an Error about a setting, a folder, or another thing with a name.
func For(name, what, remedy string) *Error { return &Error{Name: name, What: what, Remedy: remedy} }

// Error writes a place in a file as editors and terminals recognise it.
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
