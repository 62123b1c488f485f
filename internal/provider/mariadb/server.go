package mariadb

import (
	"cmp"
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// names are those of an instance's database and a binding's account. None has a letter that a grant takes
// for a pattern.
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
	name     string // of the thing, and of no other one
	instance string // the name of its database
	label    hosted.Label
	details  details
	serial   string // of this record alone, and of none after it; empty for no record
	version  string // counts its changes
}

func (r record) exists() bool { return r.serial != "" }

func (r record) same(o record) bool { return r.serial == o.serial && r.version == o.version }

// details are the rest of a record. No secrets.
type details struct {
	Phase string `json:"phase"`
	// Changed is the operation that changed the instance last.
	Changed   string `json:"changed,omitempty"`
	Collation string `json:"collation,omitempty"` // of an instance's database
	// Role is a binding's: roleReadOnly or roleAll.
	Role string `json:"role,omitempty"`
}

// The phases of a thing.
const (
	// making: any part of the thing may stand.
	making = "making"
	ready  = "ready"
	// ended: an account that is being removed. Nobody can log in to it any more.
	ended = "ended"
	// left: an account that is no binding any more, and stays, locked and without a password, until the
	// instance is removed: views, routines or triggers run as it.
	left = "left"
)

// seen is what stands at the names of an instance and a binding.
type seen struct {
	instance record
	database bool
	// logins are the named one, or all of the instance if the tags name none.
	logins []login
	// strangers have rights on the database, and no record.
	strangers []grantee
}

// A login is a binding's account.
type login struct {
	record   record // zero where there is none
	name     string // of the account
	exists   bool
	locked   bool
	verifier string
	limits   limits
	tls      bool
	granted  string // what it may do in its database: "", roleReadOnly or roleAll
	// schedules says that the account has the right to events, which the server runs even while the
	// account is locked.
	schedules bool
	sessions  int
	// events are those of the account that may run. Defines says that something else runs as the account.
	// Both are read once the account is being removed.
	events  []string
	defines bool
}

// goes reports whether the binding has ended, also if its account stays.
func (l login) goes() bool { return l.record.details.Phase == ended || l.record.details.Phase == left }

// A grantee is an account, or a role, whose host is empty.
type grantee struct{ user, host string }

// An act is one change. The comment of each type says what it makes and needs.
type act interface {
	do(ctx context.Context, j job) error
}

type (
	// put writes a record: a new one, or in place of what was seen.
	put struct{ record record }
	// forget removes the record that was seen.
	forget struct{ record record }

	createDatabase struct{ collation string }
	// dropDatabase ends who is connected to it first.
	dropDatabase struct{}
	// revoke takes the rights on the database from strangers: otherwise they would have them on a later
	// database of the name, too.
	revoke struct{ from []grantee }

	// createLogin makes the account, locked, with exactly the rights of its role.
	createLogin struct{ name, role string }
	// openLogin lets the account in with a password, of which the server is told the hash alone.
	openLogin struct {
		name, verifier string
		tls            bool
		limits         limits
	}
	// limitLogin sets the account's limits.
	limitLogin struct {
		name   string
		limits limits
	}
	// lockLogin keeps the account out, and its events from running, and ends its sessions. Without keep,
	// it removes the password, and the record says so.
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
