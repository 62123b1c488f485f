package postgres

import (
	"context"
	"errors"

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
	n := namesAs(t.OfInstance())
	if t.Binding != "" {
		n.login = hosted.Name(prefixLogin, t)
	}
	return n
}

// namesAs are those of what is made for an instance, or kept of it under such tags.
func namesAs(t provider.Tags) names {
	n := names{
		database: hosted.Name(prefixDatabase, t), owner: hosted.Name(prefixOwner, t), reader: hosted.Name(prefixReader, t), broker: t.Broker,
	}
	n.keeper = keeperFor(t.Broker, n.owner)
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

// A server is how the provider sees and changes a PostgreSQL server. Each method
// is a call that may be repeated at any time, also while an earlier one whose
// caller has died is still under way. Errors have a meaning (codes.go) and are all
// passing; a caller looks again. A fake of it keeps the same promises in memory.
type server interface {
	hosted.Server

	// look tells what stands at the names, whoever owns it. It changes nothing.
	look(ctx context.Context, n names) (standing, error)

	// do makes one change: all of it, or the part that the same act, repeated, makes
	// whole. It does so only if what stands is what was seen, and answers errChanged
	// if it is not. Two at once at the same names: one of them meets meansBusy.
	do(ctx context.Context, n names, seen standing, a act) error

	// offers tells what of the server users may choose: the name of its locale, if
	// it has that, and those of the extensions that it has.
	offers(ctx context.Context, locale string, extensions []string) (offer, error)

	// list reads roles with a label, and databases with one whose owner role is gone,
	// in the order of their names: at most limit of them, after that name.
	list(ctx context.Context, after string, limit int) ([]listed, error)

	// size is how large the database is, in bytes; 0 if it is absent.
	size(ctx context.Context, database string) (int64, error)
}

// errChanged says that what stands is no more what was seen: look again.
var errChanged = errors.New("it changed while it was worked on")

// A standing is what stands at the names of an instance and a binding.
type standing struct {
	owner    role
	database database
	login    role // zero if no login was named
}

// same reports whether a change that was decided on one may be made on the other:
// nothing was made, removed or labelled anew.
func (s standing) same(o standing) bool {
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

// A listed is a thing of the inventory.
type listed struct {
	name    string
	comment string
}

// An act is one change; each type says what it makes and what it needs.
type act interface{ isAct() }

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

// shutDatabase lets nobody connect to the database, in one transaction with the
// owner's label.
type shutDatabase struct{ label string }

// renameInstance renames a shut database and its two roles, and labels it anew, in
// one transaction. Nothing may stand at the new names.
type renameInstance struct {
	to              names
	owner, database string
}

// takeInstance is a renameInstance the other way round: what has the names of from
// gets those that nothing stands at.
type takeInstance struct {
	from            names
	owner, database string
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
// on is waited for a second: meansLocked.
type emptyLogin struct{}

// dropLogin drops a role that has nothing any more. Before that, it takes back what steps
// that have died have left with the broker's login (keeper.go).
type dropLogin struct{}

// closeInstance lets no login connect to the database, openInstance lets them again;
// each in one transaction with the owner's label.
type closeInstance struct{ label string }
type openInstance struct{ label string }

// endInstance ends the sessions of bindings in the database.
type endInstance struct{}

func (createOwner) isAct()    {}
func (createDatabase) isAct() {}
func (openDatabase) isAct()   {}
func (configure) isAct()      {}
func (shutDatabase) isAct()   {}
func (renameInstance) isAct() {}
func (takeInstance) isAct()   {}
func (dropDatabase) isAct()   {}
func (dropOwner) isAct()      {}
func (createLogin) isAct()    {}
func (openLogin) isAct()      {}
func (lockLogin) isAct()      {}
func (endSessions) isAct()    {}
func (unlockLogin) isAct()    {}
func (emptyLogin) isAct()     {}
func (dropLogin) isAct()      {}
func (closeInstance) isAct()  {}
func (openInstance) isAct()   {}
func (endInstance) isAct()    {}
func (setLimit) isAct()       {}
