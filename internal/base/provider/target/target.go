// Package target defines what a broker knows of a target: its progress (the epoch), and what
// keeps the broker from using it (a trouble).
package target

import (
	"fmt"
)

// An Epoch is a target's own statement of its progress. Hazard: a server that was restored from
// a snapshot answers with its old identity, has logins again that were removed since, and lacks
// those that were made since. The target keeps its epoch beside its data, so that a restore
// brings back an earlier epoch; the broker records the latest, and passes it to each step.
type Epoch struct {
	// Line is the history that the target is on, such as its timeline. A target on another line was restored
	// to a point in time, or is another server.
	Line string `json:"line,omitempty"`
	// Count grows with each raise, and never shrinks.
	Count int64 `json:"count,omitempty"`
	// Mark is random, and different for each raise. The raising broker recorded it before the raise.
	Mark string `json:"mark,omitempty"`
}

// A Known is the epoch of a target that a broker has on record.
type Known struct {
	Epoch
	// Reserved is the mark of the next raise, which may have happened already; empty for none.
	Reserved string `json:"reserved,omitempty"`
}

// Foreign reports whether another broker raised the target to the epoch that the target stated
// before k was read. Hazard: two brokers that run on copies of one set of records have the same
// identity on a server, and each takes the other's things for orphans. A mark that is neither
// recorded nor reserved is from such a broker, or from this broker in a time that its records
// have lost. An epoch behind the record proves nothing: the target was raised since.
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

// Follows reports whether e is the same epoch as was, or a later one. Every epoch follows the
// zero epoch. Follows does not tell who raised the target.
func (e Epoch) Follows(was Epoch) bool {
	return was == Epoch{} || e.Line == was.Line && e.Count >= was.Count
}

// Check is called before a step changes anything in a target. It fails unless e, the epoch that
// the target states, follows the recorded one.
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

// The kinds of trouble with a target. Logs, alarms and lists contain these names.
const (
	Restored    = "restored"    // it was restored: see Epoch
	Doubled     = "copied"      // another broker with this one's identity changes it: see Known
	Other       = "other"       // another server answers at its address
	Unknown     = "unknown"     // today's settings do not name it
	Unreachable = "unreachable" // nothing answers at its address
	Silent      = "silent"      // it accepts the call but does not answer in time
	Starting    = "starting"    // it starts or stops
	Full        = "full"        // its disk is full
	ReadOnly    = "read-only"   // it takes no changes
	Connections = "connections" // it has no connection left for the broker
	Login       = "login"       // it refuses the broker's login
	Held        = "held"        // a thing to remove has dependents that belong to others
	Rights      = "rights"      // the broker's login lacks a right
	Certificate = "certificate" // its certificate is not trusted
	Unreadable  = "unreadable"  // the secret that says how it is reached cannot be read
)

// A Trouble is a passing error that a person has to end. Meanwhile operations wait, and users are told only that.
type Trouble struct {
	Kind   string `json:"kind"`
	Target string `json:"target"` // the target's name
	// Message tells the operator what is wrong, and what to do. It holds no secret, and nothing that belongs to a user.
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

// Unwrap returns the target's error.
func (t *Trouble) Unwrap() error { return t.Err }
