package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// A desk asks for instances and bindings as a worker does.
type desk struct {
	t      *testing.T
	p      *postgres.Provider
	access hosted.Access
	clock  *providertest.Clock
	in     provider.Instance
}

func newClock() *providertest.Clock {
	return providertest.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
}

// optionsOf are those of a broker with one server.
func optionsOf(broker string, access hosted.Access, now func() time.Time) postgres.Options {
	return postgres.Options{Options: hosted.Options{Broker: broker, Accesses: hosted.Accesses{hosted.DefaultTarget: access}, Now: now}}
}

// newDesk is for a new broker.
func newDesk(t *testing.T, access hosted.Access, change ...func(*postgres.Options)) *desk {
	t.Helper()
	d := &desk{t: t, access: access, clock: newClock()}
	d.in = provider.Instance{Broker: "broker-" + access.User, Platform: "p", ID: "i", Incarnation: "op-1", PlanID: "plan",
		Operation: provider.Operation{ID: "op-1", Kind: operation.Provision, Started: d.clock.Now()}}
	d.reopen(change...)
	return d
}

// ready is a new desk that has its instance.
func ready(t *testing.T, access hosted.Access, change ...func(*postgres.Options)) *desk {
	t.Helper()
	d := newDesk(t, access, change...)
	d.provision()
	return d
}

// reopen gives the desk another provider of the same broker, as a new process has it.
func (d *desk) reopen(change ...func(*postgres.Options)) {
	o := optionsOf(d.in.Broker, d.access, d.clock.Now)
	for _, c := range change {
		c(&o)
	}
	d.p = postgres.New(o)
	d.t.Cleanup(d.p.Close)
}

func pool(n int) func(*postgres.Options) { return func(o *postgres.Options) { o.Pool = n } }

func copies(programs *pgcopy.Programs) func(*postgres.Options) {
	return func(o *postgres.Options) { o.Programs = programs }
}

// life is the desk of another instance, or of another life, on the same server.
func (d *desk) life(id, begun string) *desk {
	o := *d
	o.in.ID, o.in.Incarnation, o.in.State, o.in.Origin = id, begun, provider.State{}, provider.Origin{}
	o.in.Operation = provider.Operation{ID: begun, Kind: operation.Provision, Started: d.clock.Now()}
	return &o
}

func (d *desk) database() string { return hosted.Name("lsd", provider.TagsOf(d.in)) }
func (d *desk) owner() string    { return hosted.Name("lso", provider.TagsOf(d.in)) }
func (d *desk) readers() string  { return hosted.Name("lsr", provider.TagsOf(d.in)) }

// drive drives a step to its end.
func (d *desk) drive(step providertest.Step) (provider.Status, *provider.Failure) {
	d.t.Helper()
	return providertest.Drive(d.t, d.clock, func(ctx context.Context) (provider.Status, error) {
		st, err := step(ctx)
		if st.Target != nil {
			d.in.Target = *st.Target
		}
		if err != nil {
			d.t.Logf("passing: %v", err)
		}
		return st, err
	})
}

func (d *desk) must(step providertest.Step) provider.Status {
	d.t.Helper()
	st, f := d.drive(step)
	if f != nil {
		d.t.Fatalf("failed: %s", f.Message)
	}
	return st
}

// calling is a step for an instance or a binding, as it stands when the step is made.
func calling[T any](verb func(context.Context, T) (provider.Status, error), of *T) providertest.Step {
	return func(ctx context.Context) (provider.Status, error) { return verb(ctx, *of) }
}

func (d *desk) provision() {
	d.t.Helper()
	d.must(calling(d.p.Provision, &d.in))
}

func (d *desk) deprovision() {
	d.t.Helper()
	d.must(calling(d.p.Deprovision, &d.in))
}

// updating is a step that changes the plan and the parameters of the instance.
func (d *desk) updating(id, snapshot, parameters string) providertest.Step {
	in := d.in
	in.Operation = provider.Operation{ID: id, Kind: operation.Update, Started: d.clock.Now()}
	in.Former, in.Snapshot, in.Parameters = d.in.Snapshot, []byte(snapshot), []byte(parameters)
	return func(ctx context.Context) (provider.Status, error) {
		in.Epoch = d.in.Epoch
		return d.p.Update(ctx, in)
	}
}

// readOnly asks for a binding that only reads.
const readOnly = `{"role":"read_only"}`

// binding is one of the instance.
func (d *desk) binding(id, parameters string) provider.Binding {
	b := provider.Binding{
		Instance: d.in, ID: id, Incarnation: "op-" + id, Parameters: []byte(parameters), Secret: []byte(fmt.Sprintf("%032s", id)),
	}
	b.Instance.Operation = provider.Operation{ID: b.Incarnation, Kind: operation.Bind, Started: d.clock.Now()}
	return b
}

func (d *desk) bind(id, parameters string) *provider.Grant {
	d.t.Helper()
	b := d.binding(id, parameters)
	return d.must(calling(d.p.Bind, &b)).Grant
}

// as connects with a new binding, and reads with one that only reads.
func (d *desk) as(id string) *pgx.Conn {
	d.t.Helper()
	return login(d.t, d.bind(id, ""))
}

func (d *desk) reads(id string) *pgx.Conn {
	d.t.Helper()
	return login(d.t, d.bind(id, readOnly))
}

// unbinding is a step of an unbind, for the deletion of the instance where that is asked.
func (d *desk) unbinding(id string, kind operation.Kind) providertest.Step {
	b := d.binding(id, "")
	b.Secret, b.Parameters = nil, nil
	b.Instance.Operation = provider.Operation{ID: "op-un" + id, Kind: kind}
	return func(ctx context.Context) (provider.Status, error) {
		b.Instance.Epoch = d.in.Epoch
		return d.p.Unbind(ctx, b)
	}
}

func (d *desk) unbind(ids ...string) {
	d.t.Helper()
	for _, id := range ids {
		d.must(d.unbinding(id, operation.Unbind))
	}
}

func (d *desk) held() []provider.Holding {
	d.t.Helper()
	held, next, err := d.p.List(d.t.Context(), "")
	expect.OK(d.t, err)
	expect.Same(d.t, "the next page", "", next)
	return held
}

// holdsNothing requires that the inventory is empty in the end.
func (d *desk) holdsNothing() {
	d.t.Helper()
	if held := d.held(); len(held) != 0 {
		d.t.Errorf("in the end it lists %+v", held)
	}
}

// user is the login of a grant.
func user(g *provider.Grant) string { return g.Credentials["username"].(string) }

// connect logs in with a grant, as change has it.
func connect(t *testing.T, g *provider.Grant, change ...func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	t.Helper()
	cfg := expect.Get(pgx.ParseConfig(g.Credentials["uri"].(string)))(t)
	for _, c := range change {
		c(cfg)
	}
	c, err := pgx.ConnectConfig(t.Context(), cfg)
	if err == nil {
		t.Cleanup(func() { end(c) })
	}
	return c, err
}

// to connects to another database than that of the grant.
func to(database string) func(*pgx.ConnConfig) {
	return func(c *pgx.ConnConfig) { c.Database = database }
}

// login connects with a grant, and must.
func login(t *testing.T, g *provider.Grant, change ...func(*pgx.ConnConfig)) *pgx.Conn {
	t.Helper()
	return expect.Get(connect(t, g, change...))(t)
}

func end(c *pgx.Conn) { _ = c.Close(context.Background()) }

// shut requires that grants let nobody in.
func shut(t *testing.T, what string, grants ...*provider.Grant) {
	t.Helper()
	for _, g := range grants {
		if _, err := connect(t, g); err == nil {
			t.Error(what)
		}
	}
}

// ended requires that sessions have ended.
func ended(t *testing.T, after string, sessions ...*pgx.Conn) {
	t.Helper()
	for i, c := range sessions {
		if _, err := c.Exec(t.Context(), "SELECT 1"); err == nil {
			t.Errorf("session %d goes on after %s", i, after)
		}
	}
}

func exec(t *testing.T, c *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		expect.Get(c.Exec(t.Context(), statement))(t, statement)
	}
}

// codeOf is what a server refuses with; empty for no error.
func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

const denied = "42501" // insufficient_privilege

func refused(t *testing.T, c *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		expect.Same(t, statement, denied, codeOf(expect.Err(c.Exec(t.Context(), statement))))
	}
}

// value reads the one value of a query.
func value[T any](t *testing.T, c *pgx.Conn, query string, args ...any) (v T) {
	t.Helper()
	expect.OK(t, c.QueryRow(t.Context(), query, args...).Scan(&v), query)
	return v
}

// gives requires that a query has that one value.
func gives[T any](t *testing.T, c *pgx.Conn, what string, want T, query string, args ...any) {
	t.Helper()
	expect.Same(t, what, want, value[T](t, c, query, args...))
}

// limitOf is the limit of connections of a database.
const limitOf = `SELECT datconnlimit FROM pg_database WHERE datname = $1`

// texts are a column of the superuser's query.
func texts(t *testing.T, s *pgtest.Server, database, query string, args ...any) []string {
	t.Helper()
	c := s.Connect(database)
	defer end(c) // no broker may end it
	rows := expect.Get(c.Query(t.Context(), query, args...))(t)
	return expect.Get(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
}

func everyVersion(t *testing.T, test func(t *testing.T, s *pgtest.Server)) {
	pgtest.Each(t, pgtest.Start, test)
}

// Facts tell what is in use of a tenant's own database, whatever a tenant makes up.
func TestFactsAreOfOneInstance(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access())
		d.in.Snapshot = json.RawMessage(`{"connection_limit":7,"size_warning":64}`)
		d.provision()
		other := d.life("theirs", "op-theirs")
		other.provision()
		facts := func(d *desk) provider.Facts {
			t.Helper()
			f, err := d.p.Describe(t.Context(), d.in)
			if err != nil || f.Size == nil || f.Connections == nil || f.SizeLimit != 64<<20 || f.ConnectionLimit != 7 ||
				!strings.HasPrefix(f.Engine, "PostgreSQL 1") || strings.Contains(f.Engine, "(") || f.Address == "" {
				t.Fatalf("facts %+v, error %v", f, err)
			}
			return f
		}
		theirs := facts(other)
		a, b := d.as("a"), d.as("b")
		exec(t, a, "CREATE TABLE big AS SELECT repeat('x', 1000) FROM generate_series(1, 4000)",
			"CREATE TABLE pg_database (datname text)", "CREATE VIEW pg_stat_activity AS SELECT 1 AS datid",
			"CREATE FUNCTION pg_database_size(oid) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
		if f := facts(d); *f.Size < 4_000_000 || *f.Connections != 2 {
			t.Errorf("it holds 4 MB and has two sessions: size %d, connections %d", *f.Size, *f.Connections)
		}
		// Autovacuum may add pages to either database.
		if f := facts(other); *f.Size > *theirs.Size+1_000_000 || *f.Connections != 0 {
			t.Errorf("another one's facts: size %d, was %d, connections %d", *f.Size, *theirs.Size, *f.Connections)
		}
		end(b)
	})
}
