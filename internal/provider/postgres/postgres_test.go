package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// A desk asks for instances and bindings as a worker does.
type desk struct {
	t     *testing.T
	p     *postgres.Provider
	clock *providertest.Clock
	in    provider.Instance
}

// newDesk is for a new broker on a server of that version.
func newDesk(t *testing.T, access hosted.Access, change func(*postgres.Options)) *desk {
	t.Helper()
	d := &desk{t: t, clock: providertest.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))}
	o := postgres.Options{Options: hosted.Options{Broker: "broker-" + access.User, Accesses: hosted.Accesses{hosted.DefaultTarget: access}, Now: d.clock.Now}}
	if change != nil {
		change(&o)
	}
	d.p = postgres.New(o)
	t.Cleanup(d.p.Close)
	d.in = provider.Instance{Broker: o.Broker, Platform: "p", ID: "i", Incarnation: "op-1", PlanID: "plan",
		Operation: provider.Operation{ID: "op-1", Kind: operation.Provision, Started: d.clock.Now()}}
	return d
}

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

func (d *desk) provision() {
	d.t.Helper()
	d.must(func(ctx context.Context) (provider.Status, error) { return d.p.Provision(ctx, d.in) })
}

func (d *desk) deprovision() {
	d.t.Helper()
	d.must(func(ctx context.Context) (provider.Status, error) { return d.p.Deprovision(ctx, d.in) })
}

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
	return d.must(func(ctx context.Context) (provider.Status, error) { return d.p.Bind(ctx, b) }).Grant
}

func (d *desk) unbind(id string) {
	d.t.Helper()
	b := d.binding(id, "")
	b.Secret, b.Parameters = nil, nil
	d.must(func(ctx context.Context) (provider.Status, error) { return d.p.Unbind(ctx, b) })
}

// connect logs in with a grant.
func connect(t *testing.T, g *provider.Grant) (*pgx.Conn, error) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), g.Credentials["uri"].(string))
	if err == nil {
		t.Cleanup(func() { _ = c.Close(context.Background()) })
	}
	return c, err
}

// shut requires that a grant lets nobody in.
func shut(t *testing.T, what string, g *provider.Grant) {
	t.Helper()
	if _, err := connect(t, g); err == nil {
		t.Error(what)
	}
}

func everyVersion(t *testing.T, test func(t *testing.T, s *pgtest.Server)) {
	t.Parallel()
	for _, version := range pgtest.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(t, pgtest.Start(t, version))
		})
	}
}

// A whole life, on every version.
func TestLife(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access(), nil)
		d.provision()
		c := expect.Get(connect(t, d.bind("b1", "")))(t)
		exec(t, c, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
		reader := expect.Get(connect(t, d.bind("b2", `{"role":"read_only"}`)))(t)
		exec(t, reader, "SELECT * FROM t")
		t.Cleanup(func() {
			if t.Failed() {
				l := s.Log()
				t.Log(l[max(0, len(l)-6000):])
			}
		})
		d.unbind("b1")
		if _, err := c.Exec(t.Context(), "SELECT 1"); err == nil {
			t.Error("a session survived its unbind")
		}
		d.unbind("b2")
		d.deprovision()
		if held, next, err := d.p.List(t.Context(), ""); err != nil || next != "" || len(held) > 0 {
			t.Errorf("in the end it lists %v, next %q, error %v", held, next, err)
		}
	})
}

func exec(t *testing.T, c *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		expect.Get(c.Exec(t.Context(), statement))(t, statement)
	}
}

// Facts tell what is in use of a tenant's own database, whatever a tenant makes up.
func TestFactsAreOfOneInstance(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access(), nil)
		d.in.Snapshot = json.RawMessage(`{"connection_limit":7,"size_warning":64}`)
		d.provision()
		other := *d
		other.in.ID, other.in.Incarnation = "theirs", "op-theirs"
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
		theirs := facts(&other)
		a, b := login(t, d.bind("a", "")), login(t, d.bind("b", ""))
		exec(t, a, "CREATE TABLE big AS SELECT repeat('x', 1000) FROM generate_series(1, 4000)",
			"CREATE TABLE pg_database (datname text)", "CREATE VIEW pg_stat_activity AS SELECT 1 AS datid",
			"CREATE FUNCTION pg_database_size(oid) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'")
		if f := facts(d); *f.Size < 4_000_000 || *f.Connections != 2 {
			t.Errorf("it holds 4 MB and has two sessions: size %d, connections %d", *f.Size, *f.Connections)
		}
		// Autovacuum may add pages to either database.
		if f := facts(&other); *f.Size > *theirs.Size+1_000_000 || *f.Connections != 0 {
			t.Errorf("another one's facts: size %d, was %d, connections %d", *f.Size, *theirs.Size, *f.Connections)
		}
		end(b)
	})
}
