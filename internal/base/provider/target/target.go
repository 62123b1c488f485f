// Package target is what a target says of itself: how far it has come (its epoch), and what
// keeps the broker from using it (a trouble). It needs nothing else.
package target

import (
	"fmt"
)

// An Epoch is how far a target has come, by its own word. Hazard: a server that was
// restored from a snapshot answers with the identity that it had, has logins again
// that were removed since, and lacks those that were made since. The broker keeps the
// latest epoch that a target said, and tells it in each step; the target keeps its
// own beside what it holds, so that a restore brings back an earlier one.
type Epoch struct {
	// Line is the history that the target is on, such as its timeline. A target on
	// another line was restored to a point in time, or another server took its place.
	Line string `json:"line,omitempty"`
	// Count grows with each raise, and never shrinks.
	Count int64 `json:"count,omitempty"`
	// Mark is random and of this raise alone: its broker had it on record before.
	Mark string `json:"mark,omitempty"`
}

// A Known is what a broker has on record of a target's epoch.
type Known struct {
	Epoch
	// Reserved is the mark of the next raise, which may have been made; empty for none.
	Reserved string
}

// Foreign reports whether somebody else raised the target to what it said before k was
// read. Hazard: two brokers that run on copies of one set of records have the same
// identity on a server, and each takes what only the other one knows for orphans. A
// mark that is neither recorded nor reserved is of such a one, or of this broker in a
// time that its records have lost. What is behind the record was passed since.
func (k Known) Foreign(said Epoch) bool {
	switch said.Count {
	case k.Count:
		return said.Mark != k.Mark
	case k.Count + 1:
		return said.Mark != k.Reserved
	}
	return said.Count > k.Count
}

// Copied is the trouble of a target that somebody else has raised.
func Copied(target string) error {
	return &Trouble{Kind: Doubled, Target: target,
		Message: "a broker with this one's identity and other records changes the server, " +
			"or did: a copy of the data runs beside it, or the records are from a backup. Stop the other broker. Then run " +
			"`longshore reconcile --yes` here, or `longshore rebuild --yes` if the records are from a backup: until then " +
			"nothing is changed on the server"}
}

// Follows reports whether a target that says e is as it was when it said was, or
// later. Of the zero epoch nothing is known. It says nothing of who raised it.
func (e Epoch) Follows(was Epoch) bool {
	return was == Epoch{} || e.Line == was.Line && e.Count >= was.Count
}

// Check is what a step does before it changes anything in a target: it compares
// what the target says of itself now with what it is known to have said.
func (e Epoch) Check(target string, was Epoch) error {
	if e.Follows(was) {
		return nil
	}
	what := fmt.Sprintf("is at change %d, and has been at %d", e.Count, was.Count)
	if e.Line != was.Line {
		what = fmt.Sprintf("is on the history %q, and has been on %q", e.Line, was.Line)
	}
	return &Trouble{Kind: Restored, Target: target,
		Message: fmt.Sprintf("the server %s: it was restored, or another one took its "+
			"place. Logins that were removed may be valid again. Run `longshore reconcile --yes`: until then nothing is "+
			"changed on it", what)}
}

// The kinds of trouble that a step can have with a target. An operator's log, alarms
// and lists name them.
const (
	Restored    = "restored"    // it is as it was earlier: see Epoch
	Doubled     = "copied"      // another broker with this one's identity changes it: see Known
	Other       = "other"       // another server answers at its address
	Unknown     = "unknown"     // today's settings do not name it
	Unreachable = "unreachable" // nobody answers at its address
	Silent      = "silent"      // it takes the call and does not answer in time
	Starting    = "starting"    // it starts or stops
	Full        = "full"        // its disk is full
	ReadOnly    = "read-only"   // it takes no changes
	Connections = "connections" // it has no connection left for the broker
	Login       = "login"       // it refuses the broker's login
	Held        = "held"        // something of others hangs on what is to be removed
	Rights      = "rights"      // the broker's login may not do what it has to
	Certificate = "certificate" // its certificate is not the one to be trusted
)

// A Trouble is a passing error that a person has to end: operations wait meanwhile,
// and users are told no more than that.
type Trouble struct {
	Kind   string `json:"kind"`
	Target string `json:"target"` // its name
	// Message is for the operator: what is the matter, and what to do. It has no
	// secret, and nothing of a user.
	Message string `json:"message"`
	// Err is what the target said; not sent.
	Err error `json:"-"`
}

func (t *Trouble) Error() string {
	text := fmt.Sprintf("target %q: %s", t.Target, t.Message)
	if t.Err != nil {
		text += fmt.Sprintf(" (%v)", t.Err)
	}
	return text
}

// Unwrap gives what the target said.
func (t *Trouble) Unwrap() error { return t.Err }
