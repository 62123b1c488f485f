package mariadb

import (
	"cmp"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// names are the names of an instance's database and a binding's account. They contain no character that is a
// wildcard in a grant.
type names struct{ database, login string }

// The prefixes of names. The broker's login has rights on databases whose name begins with prefixDatabase,
// and on no others.
const (
	prefixDatabase = "lsd"
	prefixLogin    = "lsb"
)

// namesOf derives the names from tags. Tags without a binding give no login.
func namesOf(t provider.Tags) names {
	n := names{database: hosted.Name(prefixDatabase, t.OfInstance())}
	if t.Binding != "" {
		n.login = hosted.Name(prefixLogin, t)
	}
	return n
}

// Names returns the name that the thing with these tags has on its server: that of a database, or of an
// account.
func Names(t provider.Tags) []string {
	n := namesOf(t)
	return []string{cmp.Or(n.login, n.database)}
}

// A record says who owns a database or an account. It is kept in the broker's own database, since MariaDB has
// no tags. It is written before the thing is made, and removed after the thing is gone.
type record struct {
	name     string // the thing's name, which no other thing has
	instance string // the name of its database
	label    hosted.Label
	details  details
	serial   string // unique to this record, even among later ones; empty if there is no record
	version  string // counts its changes
}

func (r record) exists() bool { return r.serial != "" }

func (r record) same(o record) bool { return r.serial == o.serial && r.version == o.version }

// details are the rest of a record. They hold no secrets.
type details struct {
	Phase string `json:"phase"`
	// Changed is the id of the operation that last changed the instance.
	Changed   string `json:"changed,omitempty"`
	Collation string `json:"collation,omitempty"` // for an instance: its database's collation
	// Role is the role of a binding: roleReadOnly or roleAll.
	Role string `json:"role,omitempty"`
}

// The phases of a thing's life.
const (
	// making means that any part of the thing may exist.
	making = "making"
	ready  = "ready"
	// ended means that the account is being removed. Nobody can log in with it any more.
	ended = "ended"
	// left means that the binding is gone and its account stays, locked and without a password, until the
	// instance is removed: views, routines or triggers run as the account.
	left = "left"
)

// seen is what stands at the names of an instance and a binding.
type seen struct {
	instance record
	database bool
	// logins has the account that the tags name, or all accounts of the instance if the tags name none. They
	// are sorted by name.
	logins []login
	// strangers are accounts and roles that have rights on the database but no record.
	strangers []grantee
}

// A login is a binding's account.
type login struct {
	record   record // zero if there is none
	name     string // the account's name
	exists   bool
	locked   bool
	verifier string
	limits   limits
	tls      bool
	granted  string // what the account may do in its database: "", roleReadOnly or roleAll
	// schedules says that the account has the right to events, which the server runs even while the account
	// is locked.
	schedules bool
	sessions  int // that have logged in
	clients   int // sessions, and clients that have given the account's name and not logged in yet
	// events names the account's events that may run. Defines says that something else runs as the account.
	// Both are read only once the account is being removed.
	events  []string
	defines bool
}

// goes reports whether the binding has ended, even if its account stays.
func (l login) goes() bool { return l.record.details.Phase == ended || l.record.details.Phase == left }

// A grantee is an account, or a role, which has an empty host.
type grantee struct{ user, host string }

// An act is one change. The comment of each type says what the act does, and what it needs.
type act interface {
	do(j job) error
}

type (
	// put writes a record: a new record, or over the one that was seen.
	put struct{ record record }
	// forget removes the record that was seen.
	forget struct{ record record }

	// run runs statements, in order. Each may be repeated.
	run []string
	// dropDatabase drops the database, after ending all connections to it.
	dropDatabase struct{}
	// revoke takes the rights on the database from strangers: otherwise they would also have those rights on
	// a later database of that name.
	revoke struct{ from []grantee }

	// createLogin makes the account, locked, with exactly the rights of its role.
	createLogin struct{ name, role string }
	// lockLogin locks the account, stops its events from running, and ends its sessions. Without keep, it
	// removes the password, and moves the record to phase ended.
	lockLogin struct {
		record record
		keep   bool
	}
	// endSessions ends the sessions of an account; it returns hosted.ErrGoesOn if they take longer.
	endSessions struct{ name string }
)
