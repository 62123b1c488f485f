// Package advice defines the error for operators, which says what is wrong, such as a setting,
// a data folder or an offering's file, and how to fix it.
package advice

import "fmt"

// An Error is a mistake that an operator can fix. It holds no value that may be secret.
type Error struct {
	// Name names the thing, such as a setting. What continues the sentence.
	Name string
	// File is the place of the mistake, instead of a name or beside it: What is then a sentence
	// of its own. Line counts from 1; 0 for the whole file.
	File string
	Line int
	// The mistake, and its remedy: both in lower case, without a full stop.
	What, Remedy string
	// Cause is the underlying error, if it says more; else nil.
	Cause error
}

// For returns an Error about a setting, a folder, or another thing with a name.
func For(name, what, remedy string) *Error { return &Error{Name: name, What: what, Remedy: remedy} }

// Error writes a place in a file in the form that editors and terminals recognise.
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

// Unwrap returns the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }
