package postgres

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// names are those of what is made for an instance, and for a binding of it.
type names struct {
	database, owner, login string
	// reader is the role that all bindings which only read are members of.
	reader string
	broker string
	keeper string // makes the roles
}

// The prefixes of names. Those of one instance have the same hash.
const (
	prefixDatabase = "lsd"
	prefixOwner    = "lso"
	prefixReader   = "lsr"
	prefixLogin    = "lsb"
	prefixLeft     = "lsx" // of a role that could not be dropped
)

// namesOf derives them. Tags without a binding have no login.
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

// Names are those that the thing with these tags has on its server: a database, its owner
// and its readers' role, or a login.
func Names(t provider.Tags) []string {
	n := namesOf(t)
	if n.login != "" {
		return []string{n.login}
	}
	return []string{n.database, n.owner, n.reader}
}

// A server is a hosted.Host with two more questions. Tests have one in memory that keeps the same
// promises.
type server interface {
	hosted.Host[seen]
	Close()

	// offers finds the locale of that name, and those of the extensions that the server has and that
	// users may create.
	offers(ctx context.Context, locale string, extensions []string) (offer, error)

	// usage is what is in use of the database; zero if it is absent.
	usage(ctx context.Context, database string) (usage, error)
}

// seen is what stands at the names of an instance and a binding.
type seen struct {
	owner    role
	database database
	login    role // zero if no login was named
}

// same reports whether nothing was made, removed or labelled between two looks: an act that was
// decided on one may then be made on the other.
func (s seen) same(o seen) bool {
	return s.owner.thing == o.owner.thing && s.database.thing == o.database.thing && s.login.thing == o.login.thing
}

// A thing has an id that the server gives no other one; 0 if it is absent.
type thing struct {
	id      uint32
	comment string
}

func (t thing) exists() bool { return t.id != 0 }

// label is the label in the comment.
func (t thing) label() (hosted.Label, bool) { return hosted.ParseLabel(t.comment) }

// details are the label's; zero without one.
func (t thing) details() details {
	label, _ := t.label()
	return detailsOf(label)
}

// A role is the owner of an instance's things, or a binding's login.
type role struct {
	thing
	canLogin bool
	// sessions that a locked login has in any database, and sessions of anyone that are just beginning
	// in its own database.
	sessions int
	// prepared are transactions that wait for their second phase, in any database: its own, and those
	// that block its end.
	prepared int
	// holds names the databases in which the role owns something or has a right, in order; of an owner
	// role, with the readers' role, only once its database is gone.
	holds []string
}

// A database is an instance's.
type database struct {
	thing
	// ours: the broker's login owns it.
	ours  bool
	open  bool // it takes connections
	limit int  // of connections; -1 for none, halfDropped for one that can only be dropped
	// prepared are transactions in it that wait for their second phase.
	prepared int
	// sessions of bindings, of an instance in quarantine.
	sessions int
}

// halfDropped is the limit of a database whose DROP was cut off.
const halfDropped = -2

// An offer is what the server has of a user's choices.
type offer struct {
	locale     *locale  // nil if the server has none of the name
	extensions []string // those that the server has and that need no superuser
}

// A usage is what is in use of a database, and the server's version.
type usage struct {
	version        string
	size, sessions int64 // in bytes; of bindings
}

// A locale is one of the server's, in its own words.
type locale struct{ provider, collate, ctype, icu string }

// An act is one change. The comment of each type says what it makes and needs.
type act interface{ do(w work) error }

// createOwner makes the owner role with its label, and the readers' role, in one transaction: a role
// without a label is then never ours. Nothing may stand.
type createOwner struct{ label string }

// createDatabase makes the database, closed to everybody and without a label.
type createDatabase struct {
	locale *locale // nil for the server's own
	limit  int
}

// openDatabase takes the database from the public, gives it to the owner role,
// labels it and lets connections in, in one transaction.
type openDatabase struct{ label string }

// configure grants the owner and the readers their rights on the schema public, and makes the
// extensions as the owner role; then, in one transaction, it sets the limits and the label of the
// owner role, which says so.
type configure struct {
	label      string
	limit      int    // of connections; -1 for none
	timeout    string // of statements, such as 60s; empty for none
	extensions []string
}

// dropDatabase ends sessions and prepared transactions in the database, and drops it.
type dropDatabase struct{}

// dropOwner drops what the owner role and the readers' role have in other databases, and both roles.
type dropOwner struct{}

// setLimit sets how many connections the database takes, after a step that had lifted the limit has
// died.
type setLimit struct{ limit int }

// createLogin makes a binding's role with its label, in one transaction. The role works as the owner
// role, unless it only reads. Without a verifier it cannot log in yet.
type createLogin struct {
	label    string
	readOnly bool
	verifier string
	until    string // as openLogin's
}

// openLogin lets the login in with the password of a verifier, and labels it so, in one transaction.
// For one that only reads, it first grants the readers' role what that lacks.
type openLogin struct {
	label    string
	verifier string
	readOnly bool
	until    string // when the password ends; empty for never
}

// lockLogin keeps the login out, in one transaction with the label that says so, and ends its sessions.
// It takes the login's rights in the database, too: a session that is just beginning is refused by
// that, or is seen as a beginning one. Without keep, it removes the password.
type lockLogin struct {
	label string
	keep  bool
}

// endSessions ends a login's sessions. That takes a moment.
type endSessions struct{}

// unlockLogin undoes a lockLogin that has kept the password. A login without one stays locked.
type unlockLogin struct {
	label    string
	login    bool
	readOnly bool
}

// emptyLogin hands over to the owner role what a locked login owns, revokes what was granted to it, and
// rolls its prepared transactions back. It waits a second for a lock of others: hosted.Locked.
type emptyLogin struct{}

// dropLogin drops a role that has nothing any more. First it takes back the roles that dead steps have
// left lent to the broker's login (keeper.go).
type dropLogin struct{}

// relabel writes both labels of an instance, and shuts or opens the database, in one transaction. A
// retained instance loses its logins, and others lose what it has granted them. A database without a
// label was never open, and stays shut.
type relabel struct {
	owner, database string
	shut, retained  bool
}

// endInstance ends the sessions of bindings in the database.
type endInstance struct{}
