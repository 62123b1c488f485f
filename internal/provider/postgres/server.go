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
	keeper string // who makes the roles, if they are not there yet
}

// The prefixes of names. Those of one instance have the same hash.
const (
	prefixDatabase = "lsd"
	prefixOwner    = "lso"
	prefixReader   = "lsr"
	prefixLogin    = "lsb"
	prefixLeft     = "lsx" // what a role is called that could not be dropped
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

// A server is a hosted.Host with what PostgreSQL has beside it. A fake of it keeps the same
// promises in memory.
type server interface {
	hosted.Host[seen]
	Close()

	// offers tells what of the server users may choose: the name of its locale, if
	// it has that, and those of the extensions that it has.
	offers(ctx context.Context, locale string, extensions []string) (offer, error)

	// size is how large the database is, in bytes; 0 if it is absent.
	size(ctx context.Context, database string) (int64, error)
}

// seen is what there is at the names of an instance and a binding.
type seen struct {
	owner    role
	database database
	login    role // zero if no login was named
}

// same reports whether a change that was decided on one may be made on the other:
// nothing was made, removed or labelled anew.
func (s seen) same(o seen) bool {
	return s.owner.thing == o.owner.thing && s.database.thing == o.database.thing && s.login.thing == o.login.thing
}

// A thing has an id of the server's, which no other one ever gets; 0 if it is
// absent.
type thing struct {
	id      uint32
	comment string
}

func (t thing) exists() bool { return t.id != 0 }

// label is what the comment says.
func (t thing) label() (hosted.Label, bool) { return hosted.ParseLabel(t.comment) }

// A role is the owner of an instance's things, or a binding's login.
type role struct {
	thing
	canLogin bool
	// sessions that a locked login has in any database, and those that are just
	// beginning in its own, whoever's they are.
	sessions int
	// prepared are transactions that wait for their second phase, of its own or in the
	// way of its end; in any database.
	prepared int
	// holds names the databases in which things are its own or open to it, in order;
	// of an owner role, and the readers' beside it, only once its database is gone.
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

// An offer is what of the server a user has chosen from.
type offer struct {
	locale     *locale  // nil if the server has none of the name
	extensions []string // those that the server has and that need no superuser
}

// A locale is one of the server's, in its own words.
type locale struct{ provider, collate, ctype, icu string }

// An act is one change; each type says what it makes and what it needs.

// createOwner makes the owner role with its label, and the readers' role beside it, in
// one transaction: whatever stands there later without a label is not ours. Nothing may
// stand.
type createOwner struct{ label string }

// createDatabase makes the database, closed to everybody and without a label.
type createDatabase struct {
	locale *locale // nil for the server's own
	limit  int
}

// openDatabase takes the database from the public, gives it to the owner role,
// labels it and lets connections in, in one transaction.
type openDatabase struct{ label string }

// configure makes what the owner and readers may use of the database, the extensions,
// under the owner role; then in one transaction it sets the limits, and the label of the
// owner role says so.
type configure struct {
	label      string
	limit      int    // of connections; -1 for none
	timeout    string // of statements, such as 60s; empty for none
	extensions []string
}

// dropDatabase ends all that goes on in the database, and drops it.
type dropDatabase struct{}

// dropOwner drops what the owner role and the readers' have in other databases, and both.
type dropOwner struct{}

// setLimit sets how many connections the database takes: a step that met the limit
// has raised it, and died.
type setLimit struct{ limit int }

// createLogin makes a binding's role with its label, in one transaction; unless it is
// only to read, it works as the owner role. Without a verifier it cannot log in yet.
type createLogin struct {
	label    string
	readOnly bool
	verifier string
	until    string // as openLogin's
}

// openLogin lets it in with a password that has this verifier, and labels it so, in
// one transaction. For one that only reads, the readers' role is first given what it
// lacks.
type openLogin struct {
	label    string
	verifier string
	readOnly bool
	until    string // when the password ends; empty for never
}

// lockLogin keeps it out, in one transaction with the label that says so, and
// ends its sessions. It takes its rights in the database too: a session that was let
// in and is just beginning is refused by that, or is seen as one that begins. Without
// keep its password is gone.
type lockLogin struct {
	label string
	keep  bool
}

// endSessions ends a login's sessions, which takes a moment.
type endSessions struct{}

// unlockLogin undoes a lockLogin that has kept the password; without a password it
// stays locked.
type unlockLogin struct {
	label    string
	login    bool
	readOnly bool
}

// emptyLogin hands what a locked login has over to the owner role, revokes what was
// granted to it, and rolls its prepared transactions back. What others hold a lock
// on is waited for a second: hosted.Locked.
type emptyLogin struct{}

// dropLogin drops a role that has nothing any more. Before that, it takes back what steps
// that have died have left with the broker's login (keeper.go).
type dropLogin struct{}

// relabel writes both labels of an instance, and shuts the database to everybody or opens
// it, in one transaction. What is retained loses its logins, and what it has opened to
// others. A database without a label was never open, and stays so.
type relabel struct {
	owner, database string
	shut, retained  bool
}

// endInstance ends the sessions of bindings in the database.
type endInstance struct{}
