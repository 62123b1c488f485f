package postgres

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// names are the names of the things that are made for an instance, and for a login of a binding or a copy of it.
type names struct {
	database, owner, login string
	// reader is the role whose members are the bindings that only read.
	reader string
	broker string
	keeper string // the role that makes the other roles
}

// The prefixes of names. The names of the things of one instance share a hash.
const (
	prefixDatabase = "lsd"
	prefixOwner    = "lso"
	prefixReader   = "lsr"
	prefixLogin    = "lsb"
	prefixLeft     = "lsx" // a role that could not be dropped
)

// namesOf derives the names from tags. Tags without a binding give no login.
func namesOf(t provider.Tags) names {
	of := t.OfInstance()
	n := names{
		database: hosted.Name(prefixDatabase, of), owner: hosted.Name(prefixOwner, of), reader: hosted.Name(prefixReader,
			of), broker: t.Broker,
	}
	n.keeper = keeperFor(t.Broker, n.owner)
	if t.Binding != "" {
		n.login = hosted.Name(prefixLogin, t)
	}
	return n
}

// Names returns the names that the thing with these tags has on its server: those of a database, its owner
// role and its readers' role, or that of a login.
func Names(t provider.Tags) []string {
	n := namesOf(t)
	if n.login != "" {
		return []string{n.login}
	}
	return []string{n.database, n.owner, n.reader}
}

// A server is a hosted.Host with two more questions. Tests use one in memory that keeps the same promises.
type server interface {
	hosted.Host[seen]
	Close()

	// offers finds the locale with the given name, and which of the extensions the server has and users may
	// create.
	offers(ctx context.Context, locale string, extensions []string) (offer, error)

	// usage returns the size and the sessions of the database, both zero if it is absent, and the server's
	// version.
	usage(ctx context.Context, database string) (usage, error)
}

// seen is what stands at the names of an instance and a binding.
type seen struct {
	owner    role
	database database
	login    role // zero if no login was named
}

// same reports whether nothing was made, removed or relabelled between two looks: then an act that was
// decided on one look may be made on the other.
func (s seen) same(o seen) bool {
	return s.owner.thing == o.owner.thing && s.database.thing == o.database.thing && s.login.thing == o.login.thing
}

// A thing has an id that the server gives to no other thing; 0 if the thing is absent.
type thing struct {
	id      uint32
	comment string
}

func (t thing) exists() bool { return t.id != 0 }

// label parses the label in the comment.
func (t thing) label() (hosted.Label, bool) { return hosted.ParseLabel(t.comment) }

// details returns the details in the label; zero without a label.
func (t thing) details() details {
	label, _ := t.label()
	return detailsOf(label)
}

// A role is an instance's owner role, or a binding's login.
type role struct {
	thing
	canLogin bool
	// sessions counts the sessions of a locked login in any database, and the sessions of any login that are
	// just beginning in the login's own database.
	sessions int
	// prepared counts transactions that wait for their second phase, in any database: the login's own, and
	// others that block its removal.
	prepared int
	// holds names the databases in which the role owns something or has a right, sorted. For an owner role,
	// it includes the readers' role, and is filled only once the instance's database is gone.
	holds []string
}

// A database is the database of an instance.
type database struct {
	thing
	// ours says that the broker's login owns the database.
	ours  bool
	open  bool // it takes connections
	limit int  // of connections; -1 for none, halfDropped for one that can only be dropped
	// sessions counts the sessions of bindings, if the instance is in quarantine.
	sessions int
}

// halfDropped is the connection limit of a database whose DROP was cut off.
const halfDropped = -2

// An offer is which of a user's choices the server has.
type offer struct {
	locale     string   // what CREATE DATABASE says for it; empty if the server has no locale of that name
	extensions []string // the extensions that the server has and that need no superuser
}

// A usage is how much of a database is in use, and the server's version.
type usage struct {
	version        string
	size, sessions int64 // size in bytes; sessions of bindings
}

// An act is one change. The comment of each type says what the act does, and what it needs.
type act interface{ do(w work) error }

// createOwner makes the owner role with its label, and the readers' role, in one transaction, so that a role
// without a label is never ours. Neither role nor database may exist yet.
type createOwner struct{ label string }

// createDatabase makes the database without a label, and closed to everybody.
type createDatabase struct {
	locale string // of an offer; empty for the server's own
	limit  int
}

// openDatabase revokes the database from PUBLIC, grants it to the owner role, labels it and lets connections
// in, in one transaction.
type openDatabase struct{ label string }

// configure grants the owner and the readers their rights on the schema public, and makes the extensions as
// the owner role. Then, in one transaction, it sets the limits, and writes the owner role's label, which
// records that.
type configure struct {
	label      string
	limit      int    // of connections; -1 for none
	timeout    string // of statements, such as 60s; empty for none
	extensions []string
}

// dropDatabase ends sessions and prepared transactions in the database, and drops it.
type dropDatabase struct{}

// dropOwner drops what the owner role and the readers' role have in other databases, and then both roles.
type dropOwner struct{}

// setLimit sets how many connections the database accepts, after a step died that had lifted the limit.
type setLimit struct{ limit int }

// createLogin makes the role of a binding with its label, or of a copy with its mark, in one transaction. The
// role works as the owner role unless it only reads. Without a verifier, it cannot log in yet.
type createLogin struct {
	label    string
	readOnly bool
	verifier string
	until    string // as in openLogin
}

// openLogin gives the login the password of a verifier, lets it in, and labels it accordingly, in one
// transaction. For a login that only reads, it first grants the readers' role whatever rights that role
// lacks.
type openLogin struct {
	label    string
	verifier string
	readOnly bool
	until    string // when the password expires; empty for never
}

// lockLogin locks the login, in one transaction with the label that says so, and ends its sessions. It also
// revokes the login's rights on the database: a session that is just beginning is then refused, or is seen as
// beginning. Without keep, it removes the password.
type lockLogin struct {
	label string
	keep  bool
}

// endSessions ends the sessions of a login, which takes a moment.
type endSessions struct{}

// unlockLogin undoes a lockLogin that kept the password. A login without a password stays locked.
type unlockLogin struct {
	label    string
	login    bool
	readOnly bool
}

// emptyLogin hands over to the owner role what a locked login owns, revokes what was granted to the login,
// and rolls its prepared transactions back. It waits a second for a lock that others hold, then fails with
// hosted.Locked.
type emptyLogin struct{}

// dropLogin drops a login that has nothing any more. First it takes back the roles that dead steps have left
// lent to the broker's login (keeper.go).
type dropLogin struct{}

// relabel writes both labels of an instance, and shuts or opens the database, in one transaction. If the
// instance is retained, its logins lose their membership, and other tenants lose what the instance has
// granted them. A database without a label was never open, and stays shut.
type relabel struct {
	owner, database string
	shut, retained  bool
}

// endInstance ends the sessions that bindings have in the database.
type endInstance struct{}
