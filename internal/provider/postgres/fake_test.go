package postgres

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A Fake is a PostgreSQL server in memory, as the provider sees one: it keeps roles, databases and what hangs on them, and
// refuses what PostgreSQL refuses, by its codes. TestFakeIsAsReal holds it to a real one. It shows neither the sessions nor
// the prepared transactions of tenants, which delay a real one's changes.
type Fake struct {
	// Effect is called around each change and each look, by its name.
	Effect func(ctx context.Context, name string, do func() error) error
	// Leaves has each login that only reads leave something in its database.
	Leaves bool
	now    func() time.Time

	mu        sync.Mutex
	identity  string
	rows      map[string]*hosted.Said
	lastID    uint32
	roles     map[string]*fakeRole
	databases map[string]*fakeDatabase
	working   map[string]*session // by the names that they work at
}

// A session is one that works at a name, and when it did something last: as the real
// one, the server ends it when it has stood still for long.
type session struct{ last time.Time }

const sessionEnds = 90 * time.Second

type fakeRole struct {
	role
	verifier, until string
	memberOf        map[string]bool
}

type fakeDatabase struct {
	database
	owner   string // whom it was opened to
	closed  bool   // in quarantine
	timeout string
	has     []string // extensions
}

// NewFake is a server that answers who it is as identity.
func NewFake(identity string, now func() time.Time) *Fake {
	return &Fake{
		Effect: func(_ context.Context, _ string, do func() error) error { return do() }, now: now, identity: identity,
		rows: map[string]*hosted.Said{}, roles: map[string]*fakeRole{}, databases: map[string]*fakeDatabase{}, working: map[string]*session{},
	}
}

// Fake has the provider speak to a fake in the place of a server.
func (p *Provider) Fake(f *Fake) { p.Open = func(hosted.Access, int) (server, error) { return f, nil } }

// atomic makes one change, or one look, of which nobody sees a part.
func (f *Fake) atomic(do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return do()
}

// still makes what cannot be refused.
func (f *Fake) still(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// call makes what cannot be refused as a call of that name.
func (f *Fake) call(ctx context.Context, name string, do func()) error {
	return f.Effect(ctx, name, func() error {
		f.still(do)
		return nil
	})
}

func refusal(code, format string, args ...any) error {
	return &pgconn.PgError{Severity: "ERROR", Code: code, Message: fmt.Sprintf(format, args...)}
}

func (f *Fake) Close() {}

func (f *Fake) Identify(ctx context.Context, broker string, write bool) (now hosted.Said, err error) {
	err = f.call(ctx, "identify", func() {
		now = hosted.Said{}
		if f.rows[broker] == nil && write {
			f.rows[broker] = &hosted.Said{Identity: f.identity + " of " + broker, Epoch: target.Epoch{Line: "00000001", Count: 1}}
		}
		if row := f.rows[broker]; row != nil {
			now = *row
		}
	})
	return now, err
}

func (f *Fake) Advance(ctx context.Context, broker string, seen, to target.Epoch) (did bool, err error) {
	err = f.call(ctx, "advance", func() {
		row := f.rows[broker]
		if did = row != nil && row.Epoch.Count == seen.Count && row.Epoch.Mark == seen.Mark; did {
			row.Epoch.Count, row.Epoch.Mark = to.Count, to.Mark
		}
	})
	return did, err
}

func (f *Fake) Look(ctx context.Context, t provider.Tags) (now seen, err error) {
	err = f.call(ctx, "look", func() { now = f.seen(namesOf(t)) })
	return now, err
}

// seen is what stands, in the words of the real server's look: of a login that is open, nothing that hangs on it is told.
func (f *Fake) seen(n names) (now seen) {
	if r := f.roles[n.owner]; r != nil {
		now.owner.thing = r.thing
		if f.databases[n.database] == nil {
			now.owner.holds = slices.Clone(r.holds)
		}
	}
	now.database.limit = -1
	if d := f.databases[n.database]; d != nil {
		now.database = d.database
	}
	if r := f.roles[n.login]; r != nil {
		now.login = r.role
		now.login.holds = slices.Clone(r.holds)
		if r.canLogin {
			now.login.sessions, now.login.prepared, now.login.holds = 0, 0, nil
		}
	}
	return now
}

// Do makes an act in its parts: whoever makes it may die between two. Meanwhile nobody else works at the same name.
func (f *Fake) Do(ctx context.Context, t provider.Tags, was seen, a any) error {
	n := namesOf(t)
	return f.Effect(ctx, fmt.Sprintf("%T of %+v", a, n), func() error {
		key, mine := n.owner+n.login, &session{f.now()}
		var parts []func() error
		if err := f.atomic(func() error {
			other := f.working[key]
			if other != nil && mine.last.Sub(other.last) < sessionEnds || !f.seen(n).same(was) {
				return hosted.ErrChanged
			}
			f.working[key] = mine
			parts = f.parts(n, a)
			return nil
		}); err != nil {
			return err
		}
		defer f.still(func() {
			if f.working[key] == mine {
				delete(f.working, key)
			}
		})
		for i, part := range parts {
			if err := f.atomic(func() error {
				if f.working[key] != mine {
					return refusal("57P05", "terminating connection due to idle-session timeout")
				}
				mine.last = f.now()
				return part()
			}); err != nil {
				return err
			}
			if i+1 < len(parts) {
				if err := f.Effect(ctx, "going on", func() error { return nil }); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (f *Fake) id() uint32 { f.lastID++; return f.lastID + 16384 }

// existing is a role that a statement needs.
func (f *Fake) existing(name string) (*fakeRole, error) {
	if r := f.roles[name]; r != nil {
		return r, nil
	}
	return nil, refusal("42704", "role %q does not exist", name)
}

// with makes a change of a role that there is.
func (f *Fake) with(name string, do func(*fakeRole)) func() error {
	return func() error {
		r, err := f.existing(name)
		if err == nil {
			do(r)
		}
		return err
	}
}

// within makes a change of the database and its owner role.
func (f *Fake) within(n names, do func(*fakeDatabase, *fakeRole)) func() error {
	return func() error {
		d := f.databases[n.database]
		if d == nil {
			return refusal("3D000", "database %q does not exist", n.database)
		}
		return f.with(n.owner, func(r *fakeRole) { do(d, r) })()
	}
}

// parts are the transactions of an act.
func (f *Fake) parts(n names, a any) []func() error {
	end := f.with(n.login, func(r *fakeRole) { r.sessions = 0 })
	switch a := a.(type) {
	case createOwner:
		return []func() error{func() error { return f.create(n.owner, a.label) }}
	case createDatabase:
		return []func() error{func() error {
			if f.databases[n.database] != nil {
				return refusal("42P04", "database %q already exists", n.database)
			}
			f.databases[n.database] = &fakeDatabase{database: database{thing: thing{id: f.id()}, ours: true, limit: a.limit}}
			return nil
		}}
	case openDatabase:
		return []func() error{f.within(n, func(d *fakeDatabase, _ *fakeRole) { d.comment, d.open, d.owner = a.label, true, n.owner })}
	case configure:
		return []func() error{
			f.within(n, func(d *fakeDatabase, _ *fakeRole) {
				d.has = slices.Compact(slices.Sorted(slices.Values(append(d.has, a.extensions...))))
			}),
			f.within(n, func(d *fakeDatabase, r *fakeRole) { d.limit, d.timeout, r.comment = a.limit, a.timeout, a.label }),
		}
	case setLimit:
		return []func() error{f.within(n, func(d *fakeDatabase, _ *fakeRole) { d.limit = a.limit })}
	case endInstance:
		return []func() error{f.within(n, func(d *fakeDatabase, _ *fakeRole) { d.sessions = 0 })}
	case dropDatabase:
		return []func() error{func() error { return f.dropDatabase(n.database) }}
	case dropOwner:
		return []func() error{f.with(n.owner, func(r *fakeRole) { r.holds = nil }), func() error { return f.drop(n.owner) }}
	case relabel:
		return []func() error{f.with(n.owner, func(r *fakeRole) {
			r.comment = a.owner
			if d := f.databases[n.database]; d != nil && d.comment != "" {
				d.comment, d.open, d.closed = a.database, !a.shut, a.shut
			}
			for name, one := range f.roles {
				if a.retained && strings.HasPrefix(name, prefixLogin) {
					delete(one.memberOf, n.owner)
				}
			}
		})}
	case createLogin:
		return []func() error{func() error {
			if _, err := f.existing(n.owner); err != nil {
				return err
			}
			if err := f.create(n.login, a.label); err != nil {
				return err
			}
			login := f.roles[n.login]
			login.memberOf[n.owner] = true // or of the readers' role, which goes with it
			login.canLogin, login.verifier, login.until = a.verifier != "", a.verifier, a.until
			return nil
		}}
	case openLogin:
		open := f.with(n.login, func(r *fakeRole) { r.canLogin, r.verifier, r.until, r.comment = true, a.verifier, a.until, a.label })
		if a.readOnly && f.Leaves {
			return []func() error{f.with(n.login, func(r *fakeRole) { r.hold(n.database) }), open}
		}
		return []func() error{open}
	case lockLogin:
		return []func() error{f.with(n.login, func(r *fakeRole) {
			r.canLogin, r.comment = false, a.label
			if !a.keep {
				r.verifier = ""
			}
		}), end}
	case endSessions:
		return []func() error{end}
	case unlockLogin:
		return []func() error{f.with(n.login, func(r *fakeRole) { r.canLogin, r.comment = a.login, a.label })}
	case emptyLogin:
		return []func() error{func() error {
			if r := f.roles[n.login]; r != nil {
				r.holds, r.prepared = nil, 0
			}
			return nil
		}}
	case dropLogin:
		return []func() error{func() error { return f.drop(n.login) }}
	}
	panic(fmt.Sprintf("the fake knows no %T", a))
}

func (r *fakeRole) hold(database string) {
	if !slices.Contains(r.holds, database) {
		r.holds = slices.Sorted(slices.Values(append(r.holds, database)))
	}
}

func (f *Fake) create(name, label string) error {
	if f.roles[name] != nil {
		return refusal("42710", "role %q already exists", name)
	}
	f.roles[name] = &fakeRole{role: role{thing: thing{id: f.id(), comment: label}}, memberOf: map[string]bool{}}
	return nil
}

// drop refuses a role on which something hangs. Who was a member of it is none any more.
func (f *Fake) drop(name string) error {
	r, err := f.existing(name)
	if err != nil {
		return err
	}
	opened := slices.ContainsFunc(slices.Collect(maps.Values(f.databases)), func(d *fakeDatabase) bool { return d.owner == name })
	if len(r.holds) > 0 || opened {
		return refusal("2BP01", "role %q cannot be dropped because some objects depend on it", name)
	}
	delete(f.roles, name)
	for _, other := range f.roles {
		delete(other.memberOf, name)
	}
	return nil
}

func (f *Fake) dropDatabase(name string) error {
	if f.databases[name] == nil {
		return refusal("3D000", "database %q does not exist", name)
	}
	delete(f.databases, name)
	for _, r := range f.roles {
		r.holds = slices.DeleteFunc(r.holds, func(held string) bool { return held == name })
	}
	return nil
}

func (f *Fake) offers(ctx context.Context, name string, extensions []string) (has offer, err error) {
	err = f.call(ctx, "offers", func() {
		if name == "C" {
			has.locale = "LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'"
		}
		if slices.Contains(extensions, "pgcrypto") {
			has.extensions = []string{"pgcrypto"}
		}
	})
	return has, err
}

// List leaves out what other brokers have, unless none is named.
func (f *Fake) List(ctx context.Context, broker, after string, limit int) (page []hosted.Listed, last string, err error) {
	err = f.call(ctx, "list", func() {
		page, last = nil, ""
		comments := map[string]string{}
		for name, r := range f.roles {
			comments[name] = r.comment
		}
		for name, d := range f.databases {
			if f.roles[prefixOwner+strings.TrimPrefix(name, prefixDatabase)] == nil {
				comments[name] = d.comment
			}
		}
		read := 0
		for _, name := range slices.Sorted(maps.Keys(comments)) {
			l, ok := hosted.ParseLabel(comments[name])
			if name <= after || !ok || read == limit {
				continue
			}
			if read++; read == limit {
				last = name
			}
			if broker == "" || l.Broker == broker {
				page = append(page, hosted.Listed{Name: name, Label: l})
			}
		}
	})
	return page, last, err
}

func (f *Fake) usage(ctx context.Context, _ string) (usage, error) {
	return usage{version: "18.1", size: 8 << 20}, f.call(ctx, "usage", func() {})
}

// Drop drops a database, as its operator may.
func (f *Fake) Drop(name string) { _ = f.atomic(func() error { return f.dropDatabase(name) }) }

// Plant makes a role as somebody else would.
func (f *Fake) Plant(name, comment string) {
	_ = f.atomic(func() error { return f.create(name, comment) })
}

// Tell tells the labels of what stands at the names, and the limits of the database.
func (f *Fake) Tell(role, database string) (text string) {
	f.still(func() {
		if r := f.roles[role]; r != nil {
			text = fmt.Sprintf("role %q; ", r.comment)
		}
		if d := f.databases[database]; d != nil {
			text += fmt.Sprintf("database %q of %d, %s, %v", d.comment, d.limit, d.timeout, d.has)
		}
	})
	return text
}

// Secrets counts those that the server accepts of a login.
func (f *Fake) Secrets(login string) (n int) {
	f.still(func() {
		if r := f.roles[login]; r != nil && r.canLogin && r.verifier != "" {
			n = 1
		}
	})
	return n
}

// Opens reports whether a login gets into a database, as the server decides it.
func (f *Fake) Opens(login, password, database string) (opens bool) {
	f.still(func() {
		r, d := f.roles[login], f.databases[database]
		opens = r != nil && d != nil && r.canLogin && d.open && !d.closed && r.memberOf[d.owner] && accepts(r.verifier, password)
	})
	return opens
}

// kept is the form of a verifier, with its salt and its stored key.
var kept = regexp.MustCompile(`^SCRAM-SHA-256\$4096:([^$]*)\$([^:]*):`)

// accepts reports whether a verifier, as PostgreSQL keeps it, is of the password.
func accepts(verifier, password string) bool {
	parts := kept.FindStringSubmatch(verifier)
	if parts == nil {
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(parts[1])
	salted, also := pbkdf2.Key(sha256.New, password, salt, 4096, sha256.Size)
	mac := hmac.New(sha256.New, salted)
	mac.Write([]byte("Client Key"))
	sum := sha256.Sum256(mac.Sum(nil))
	return errors.Join(err, also) == nil && parts[2] == base64.StdEncoding.EncodeToString(sum[:])
}
