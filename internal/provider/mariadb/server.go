package mariadb

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// names are those by which an instance and a binding of it are found, and which their
// database and account get when they are made. MariaDB renames no database: one that is
// retained, or has become another instance, keeps its name and is found by another one.
// None has a letter that a grant takes for a pattern.
type names struct {
	instance, login string
	// leaving has a look tell, too, what stands in the way of a removal.
	leaving bool
}

// The prefixes of names. The broker's login has rights on databases whose name
// begins with the first, and on no others.
const (
	prefixDatabase = "lsd"
	prefixLogin    = "lsb"
)

// namesOf derives them. Tags without a binding have no login.
func namesOf(t provider.Tags) names {
	n := names{instance: hosted.Name(prefixDatabase, t.OfInstance())}
	if t.Binding != "" {
		n.login = hosted.Name(prefixLogin, t)
	}
	return n
}

// Names is the name that the thing with these tags has on its server: a database, or
// an account.
func Names(t provider.Tags) []string {
	n := namesOf(t)
	return []string{cmp.Or(n.login, n.instance)}
}

// A server is how the provider sees and changes a MariaDB server. Each method is a
// call that may be repeated at any time, also while an earlier one whose caller has
// died is still under way. Errors have a meaning (codes.go) and are all passing.
type server interface {
	hosted.Server

	// look tells what stands at the names, whoever owns it. It changes nothing.
	look(ctx context.Context, n names) (standing, error)

	// do makes one change, or the part that the same act, repeated, makes whole. It
	// does so only if the records are what was seen, and answers errChanged if they
	// are not. One at a time works on an instance: any other one meets meansBusy.
	do(ctx context.Context, n names, seen standing, a act) error

	// collation tells whether the server has it, for character sets that hold all text.
	collation(ctx context.Context, name string) (bool, error)

	// expel ends the sessions of an account, if the server has said that it is of this
	// identity, and is errOther if not. It needs neither a table nor a file.
	expel(ctx context.Context, identity, account string) error

	// links tells whether the server follows symbolic links.
	links(ctx context.Context) (bool, error)

	// list reads the broker's records in the order of their names, after one: at most
	// limit of them.
	list(ctx context.Context, broker, after string, limit int) ([]record, error)
}

// What do answers, beside the server's own errors.
var (
	errChanged  = errors.New("it changed while it was worked on")
	errBusy     = errors.New("somebody else is working on the instance")
	errSessions = errors.New("connections have not ended yet")
	errOther    = errors.New("it is not known who the server is")
)

// A record says whose a database or an account is, in the broker's own database:
// MariaDB keeps no tags. It is written before the thing is made, and removed after
// the thing is gone.
type record struct {
	name string // the thing's, which nothing else gets
	// instance is what the records of an instance and its bindings are found by. One
	// that is retained, or has become another instance, has another one.
	instance string
	label    hosted.Label
	facts    facts
	serial   uint64 // of this record alone, and of none after it; 0 for no record
	version  uint64 // counts its changes
}

func (r record) exists() bool { return r.serial != 0 }

func (r record) same(o record) bool { return r.serial == o.serial && r.version == o.version }

// facts are what else is kept of a thing. No secrets.
type facts struct {
	Phase string `json:"phase"`
	// Changed is the operation that has changed the instance last.
	Changed   string `json:"changed,omitempty"`
	Collation string `json:"collation,omitempty"` // of an instance's database
	// Role is a binding's: roleReadOnly or roleAll.
	Role string `json:"role,omitempty"`
	// Until is how long a database is retained. Of one that becomes another instance,
	// From is how it was found while it was retained, and Was whose it was.
	Until time.Time      `json:"until,omitzero"`
	From  string         `json:"from,omitempty"`
	Was   *provider.Tags `json:"was,omitempty"`
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
	// retained: a database of a deleted instance, which opens to nobody.
	retained = "retained"
	// taken: a retained database that is not the new instance yet.
	taken = "taken"
)

// A standing is what stands at the names of an instance and a binding.
type standing struct {
	instance record
	// name is the database's, and database says that it is there.
	name     string
	database bool
	// kept says that the database is of another record: it is retained, or became
	// another instance.
	kept bool
	// binding is the record of the named login.
	binding record
	// logins are the named one, or all of the instance if none was named.
	logins []login
	// strangers have rights on the database, and no record. Told if leaving.
	strangers []grantee
}

// A login is a binding's account.
type login struct {
	record record // perhaps none
	name   string // the account's
	exists bool
	// kept says that the account is of another record: it stays with what is retained.
	kept     bool
	locked   bool
	verifier string
	limits   limits
	tls      bool
	granted  string // what it may do in its database: "", roleReadOnly or roleAll; told if it is named, or leaving
	// schedules says that it has the right to events: the server runs those of an account
	// that is locked, too. Told as granted is.
	schedules bool
	sessions  int
	// events are those that it has, and that may run. It defines what runs as it.
	// Both are told if leaving.
	events  []string
	defines bool
}

// A grantee is an account, or a role, whose host is empty.
type grantee struct{ user, host string }

// An act is one change; each type says what it makes and what it needs.
type act interface{ isAct() }

// put writes a record: a new one, or in place of what was seen.
type put struct{ record record }

// forget removes the record that was seen.
type forget struct{ record record }

// move puts the record of a database, and those of its accounts, where another instance
// is found, or what is retained.
type move struct{ record record }

// createDatabase makes it.
type createDatabase struct{ collation string }

// dropDatabase ends who is connected to it, and drops it.
type dropDatabase struct{}

// revoke takes the rights on the database from strangers: they would have them on
// the next database of the name.
type revoke struct{ from []grantee }

// createLogin makes the account, locked, and gives it the rights of its role and no
// others.
type createLogin struct{ name, role string }

// openLogin lets it in with a password of which the server is told the hash alone.
type openLogin struct {
	name, verifier string
	tls            bool
	limits         limits
}

// limitLogin sets its limits, and leaves all else.
type limitLogin struct {
	name   string
	limits limits
}

// lockLogin keeps it out, and its events from running, and ends its sessions. Without
// keep its password is gone, and the record says so.
type lockLogin struct {
	record record
	keep   bool
}

// unlockLogin undoes a lockLogin that has kept the password.
type unlockLogin struct{ name, role string }

// endSessions ends an account's sessions: errSessions if they take longer.
type endSessions struct{ name string }

// disableEvents stops the events of an account.
type disableEvents struct{ events []string }

// dropLogin drops the account.
type dropLogin struct{ name string }

func (put) isAct()            {}
func (forget) isAct()         {}
func (move) isAct()           {}
func (createDatabase) isAct() {}
func (dropDatabase) isAct()   {}
func (revoke) isAct()         {}
func (createLogin) isAct()    {}
func (openLogin) isAct()      {}
func (limitLogin) isAct()     {}
func (lockLogin) isAct()      {}
func (unlockLogin) isAct()    {}
func (endSessions) isAct()    {}
func (disableEvents) isAct()  {}
func (dropLogin) isAct()      {}
