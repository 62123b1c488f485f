package mariadb

import (
	"cmp"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// names are those of what is made for an instance and a binding of it. None has a letter
// that a grant takes for a pattern.
type names struct{ database, login string }

// The prefixes of names. The broker's login has rights on databases whose name
// begins with the first, and on no others.
const (
	prefixDatabase = "lsd"
	prefixLogin    = "lsb"
)

// namesOf derives them. Tags without a binding have no login.
func namesOf(t provider.Tags) names {
	n := names{database: hosted.Name(prefixDatabase, t.OfInstance())}
	if t.Binding != "" {
		n.login = hosted.Name(prefixLogin, t)
	}
	return n
}

// Names is the name that the thing with these tags has on its server: a database, or
// an account.
func Names(t provider.Tags) []string {
	n := namesOf(t)
	return []string{cmp.Or(n.login, n.database)}
}

// A record says whose a database or an account is, in the broker's own database:
// MariaDB keeps no tags. It is written before the thing is made, and removed after
// the thing is gone.
type record struct {
	name     string // the thing's, which nothing else gets
	instance string // the name of the database that it is, or is for
	label    hosted.Label
	details  details
	serial   uint64 // of this record alone, and of none after it; 0 for no record
	version  uint64 // counts its changes
}

func (r record) exists() bool { return r.serial != 0 }

func (r record) same(o record) bool { return r.serial == o.serial && r.version == o.version }

// details are what else is kept of a thing. No secrets.
type details struct {
	Phase string `json:"phase"`
	// Changed is the operation that has changed the instance last.
	Changed   string `json:"changed,omitempty"`
	Collation string `json:"collation,omitempty"` // of an instance's database
	// Role is a binding's: roleReadOnly or roleAll.
	Role string `json:"role,omitempty"`
}

// The phases of a thing.
const (
	// making: all or a part of it may stand.
	making = "making"
	ready  = "ready"
	// ended: an account that nobody can log in to any more, and that is to go.
	ended = "ended"
	// left: an account that stays, locked and without a password, until the instance
	// is removed: views, routines or triggers run as it. It is no binding any more.
	left = "left"
)

// seen is what there is at the names of an instance and a binding.
type seen struct {
	instance record
	database bool
	// logins are the named one, or all of the instance if none was named.
	logins []login
	// strangers have rights on the database, and no record.
	strangers []grantee
}

// A login is a binding's account.
type login struct {
	record   record // perhaps none
	name     string // the account's
	exists   bool
	locked   bool
	verifier string
	limits   limits
	tls      bool
	granted  string // what it may do in its database: "", roleReadOnly or roleAll
	// schedules says that it has the right to events: the server runs those of an account
	// that is locked, too.
	schedules bool
	sessions  int
	// events are those that it has, and that may run. It defines what runs as it.
	// Both are told once it is to go.
	events  []string
	defines bool
}

// goes reports whether it is one that is to go, or that stays for what runs as it.
func (l login) goes() bool { return l.record.details.Phase == ended || l.record.details.Phase == left }

// A grantee is an account, or a role, whose host is empty.
type grantee struct{ user, host string }

// An act is one change; each type says what it makes and what it needs.
type (
	// put writes a record: a new one, or in place of what was seen.
	put struct{ record record }
	// forget removes the record that was seen.
	forget struct{ record record }

	createDatabase struct{ collation string }
	// dropDatabase ends who is connected to it first.
	dropDatabase struct{}
	// revoke takes the rights on the database from strangers: they would have them on
	// the next database of the name.
	revoke struct{ from []grantee }

	// createLogin makes the account, locked, and gives it the rights of its role and no
	// others.
	createLogin struct{ name, role string }
	// openLogin lets it in with a password of which the server is told the hash alone.
	openLogin struct {
		name, verifier string
		tls            bool
		limits         limits
	}
	// limitLogin sets its limits, and leaves all else.
	limitLogin struct {
		name   string
		limits limits
	}
	// lockLogin keeps it out, and its events from running, and ends its sessions. Without
	// keep its password is gone, and the record says so.
	lockLogin struct {
		record record
		keep   bool
	}
	// unlockLogin undoes a lockLogin that has kept the password.
	unlockLogin struct{ name, role string }
	// endSessions ends an account's sessions: hosted.ErrGoesOn if they take longer.
	endSessions struct{ name string }
	// disableEvents stops the events of an account.
	disableEvents struct{ events []string }
	dropLogin     struct{ name string }
)
