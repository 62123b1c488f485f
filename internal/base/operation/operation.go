// Package operation defines the kinds of operations, as records, providers and users name them.
package operation

// A Kind is the kind of an operation on an instance or a binding.
type Kind string

// The kinds. Records store their values, and messages to users contain them.
const (
	Provision   Kind = "provision"
	Update      Kind = "update"
	Deprovision Kind = "deprovision"
	Bind        Kind = "bind"
	Unbind      Kind = "unbind"
	// Quarantine puts an orphan out of use, and Release puts it back into use. No platform asks
	// for them, and providers do not see them as operations.
	Quarantine Kind = "quarantine"
	Release    Kind = "release"
)

// Deletes reports whether operations of the kind remove something.
func (k Kind) Deletes() bool { return k == Deprovision || k == Unbind }

// Creates reports whether operations of the kind make something.
func (k Kind) Creates() bool { return k == Provision || k == Bind }
