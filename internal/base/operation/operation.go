// Package operation names what an operation does, to the records, to providers and to
// users.
package operation

// A Kind is what an operation does to an instance or a binding.
type Kind string

// The kinds. Their values are stored, and are what users name in messages.
const (
	Provision   Kind = "provision"
	Update      Kind = "update"
	Deprovision Kind = "deprovision"
	Bind        Kind = "bind"
	Unbind      Kind = "unbind"
	// Quarantine puts an orphan out of use, and Release puts it into use again. No platform
	// asks for them, and no provider is told of them as operations.
	Quarantine Kind = "quarantine"
	Release    Kind = "release"
)

// Deletes reports whether the kind removes something.
func (k Kind) Deletes() bool { return k == Deprovision || k == Unbind }

// Creates reports whether the kind makes something.
func (k Kind) Creates() bool { return k == Provision || k == Bind }
