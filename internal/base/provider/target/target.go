// Package target has what a broker knows of a target: how far it has come (its epoch), and what keeps the
// broker from using it (a trouble).
package target

import (
	"fmt"
)

// An Epoch is how far a target says that it has come. Hazard: a server that was restored from a snapshot
// answers with its old identity, has logins again that were removed since, and lacks those that were made
// since. The target keeps its epoch beside its data, so that a restore brings back an earlier one; the
// broker records the latest, and tells it in each step.
type Epoch struct {
	// Line is the history that the target is on, such as its timeline. A target on another line was restored
	// to a point in time, or is another server.
	Line string `json:"line,omitempty"`
	// Count grows with each raise, and never shrinks.
	Count int64 `json:"count,omitempty"`
	// Mark is random, and of this raise alone. Its broker recorded it before the raise.
	Mark string `json:"mark,omitempty"`
}

// A Known is what a broker has on record of a target's epoch.
type Known struct {
	Epoch
	// Reserved is the mark of the next raise, which may have happened already; empty for none.
	Reserved string
}

// Foreign reports whether another broker raised the target to the epoch that it said before k was read.
// Hazard: two brokers that run on copies of one set of records have the same identity on a server, and
// each takes the other one's things for orphans. A mark that is neither recorded nor reserved is from
// such a broker, or from this one in a time that its records have lost. An epoch behind the record is no
// sign: the target was raised since.
func (k Known) Foreign(said Epoch) bool {
	switch said.Count {
	case k.Count:
		return said.Mark != k.Mark
	case k.Count + 1:
		return said.Mark != k.Reserved
	}
	return said.Count > k.Count
}

// Copied is the trouble of a target that another broker has raised.
func Copied(target string) error {
	return &Trouble{Kind: Doubled, Target: target,
		Message: "a broker with this one's identity and other records changes the server, " +
			"or did: a copy of the data runs beside it, or the records are from a backup. Stop the other broker. Then run " +
			"`longshore reconcile --yes` here, or `longshore rebuild --yes` if the records are from a backup: until then " +
			"nothing is changed on the server"}
}

// Follows reports whether e is was, or later. Every epoch follows the zero one. Follows does not tell who
// raised the target.
func (e Epoch) Follows(was Epoch) bool {
	return was == Epoch{} || e.Line == was.Line && e.Count >= was.Count
}

// Check is made before a step changes anything in a target: it fails unless the epoch that the target says
// follows the recorded one.
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

// The kinds of trouble with a target. Logs, alarms and lists name them.
const (
	Restored    = "restored"    // it was restored: see Epoch
	Doubled     = "copied"      // another broker with this one's identity changes it: see Known
	Other       = "other"       // another server answers at its address
	Unknown     = "unknown"     // today's settings do not name it
	Unreachable = "unreachable" // nothing answers at its address
	Silent      = "silent"      // it takes the call and does not answer in time
	Starting    = "starting"    // it starts or stops
	Full        = "full"        // its disk is full
	ReadOnly    = "read-only"   // it takes no changes
	Connections = "connections" // it has no connection left for the broker
	Login       = "login"       // it refuses the broker's login
	Held        = "held"        // something of others depends on a thing to remove
	Rights      = "rights"      // the broker's login lacks a right
	Certificate = "certificate" // its certificate is not trusted
)

// A Trouble is a passing error that a person has to end. Meanwhile operations wait, and users are told no
// more than that.
type Trouble struct {
	Kind   string `json:"kind"`
	Target string `json:"target"` // its name
	// Message tells the operator what is wrong, and what to do. It has no secret, and nothing of a user.
	Message string `json:"message"`
	// Err is the target's error; it is not sent.
	Err error `json:"-"`
}

func (t *Trouble) Error() string {
	text := fmt.Sprintf("target %q: %s", t.Target, t.Message)
	if t.Err != nil {
		text += fmt.Sprintf(" (%v)", t.Err)
	}
	return text
}

// Unwrap gives the target's error.
func (t *Trouble) Unwrap() error { return t.Err }
