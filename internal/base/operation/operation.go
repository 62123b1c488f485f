// Package operation defines the words that records and providers share: the kinds of operations,
// as users see them too, and where things are made, and for whom.
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

// A Target is a place where things are made: an account, or a database server. At provision the operator's
// rules choose it, by broker, platform or plan; users never do. The instance records it. Its role, secret
// or endpoint is looked up by its name in today's settings.
type Target struct {
	Name string `json:"name,omitempty"`
	// Identity is the identity that the target itself gives: an account's id, or a random id
	// that this broker wrote into a server.
	Identity string `json:"identity,omitempty"`
}

// An Origin names the instance that a thing was made for. The thing's name derives from it for as long as
// the thing exists, even after another instance of the same platform has adopted it.
type Origin struct {
	Instance    string `json:"instance"`
	Incarnation string `json:"incarnation"`
}
