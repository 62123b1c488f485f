package postgres_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// suitePage is small, so that a sweep has several pages.
const suitePage = 3

// The suite over a real server, once: no step reads whether somebody waits. Its many faults are made over the fake.
func TestSoundOnAServer(t *testing.T) {
	t.Parallel()
	providertest.RunSideBySide(t, onAServer, "Faults", "LateCalls", "InstanceStates", "BindingStates")
}

// The race detector watches two callers.
func TestTwoCallers(t *testing.T) { providertest.RunTwoCallers(t, onAServer) }

func onAServer(t *testing.T) *providertest.Harness {
	version := cmp.Or(os.Getenv("LONGSHORE_TEST_POSTGRES"), "17")
	return harness(t, pgtest.Start(t, version), pgtest.Start(t, "18"))
}

// A world is a real server as the suite sees it.
type world struct {
	server *pgtest.Server
	access hosted.Access
	clock  *providertest.Clock
}

func (w *world) open(t testing.TB, broker string, access hosted.Access, calls *providertest.Calls) *postgres.Provider {
	o := optionsOf(broker, access, w.clock.Now)
	o.Pool = 2
	p := postgres.New(o)
	p.Page = suitePage
	p.Wrap(calls.Call)
	t.Cleanup(p.Close)
	return p
}

func harness(t *testing.T, s, other *pgtest.Server) *providertest.Harness {
	t.Helper()
	w := &world{server: s, access: s.Access(), clock: newClock()}
	calls, broker := &providertest.Calls{}, "broker-"+rand.Text()
	h := harnessOf(w.open(t, broker, w.access, calls), broker, w.clock, calls,
		func(broker string) *postgres.Provider { return w.open(t, broker, w.access, &providertest.Calls{}) },
		func(broker string) *postgres.Provider {
			return w.open(t, broker, other.Access(), &providertest.Calls{})
		})
	h.Plant, h.Look, h.Opens, h.Secrets = w.plant, w.look, w.opens, w.secrets
	return h
}

// harnessOf is for a provider with these calls: open makes others of the same world, and elsewhere of another one.
func harnessOf(p *postgres.Provider, broker string, clock *providertest.Clock, calls *providertest.Calls,
	open, elsewhere func(broker string) *postgres.Provider) *providertest.Harness {
	return &providertest.Harness{
		Provider: failing{p}, Inventory: p, Broker: broker, Target: provider.Target{Name: hosted.DefaultTarget},
		Clock: clock, ServiceID: "service-1", PlanID: "plan-1", Settings: map[string]any{"connection_limit": 5},
		Parameters: providertest.Note, Fail: providertest.FailBySetting, Falter: calls.Arm, PageSize: suitePage,
		Elsewhere: func(testing.TB) (provider.Provider, provider.Inventory) {
			p := elsewhere(broker)
			return p, p
		},
		Open: func(_ testing.TB, broker string) (provider.Provider, provider.Inventory) {
			p := open(broker)
			return failing{p}, p
		},
	}
}

// failing is a provider whose operations fail as their settings ask for: they are given parameters that no database
// can have. A deletion fails only over what is not ours, which NotOurs tests: another provider stands for it.
type failing struct{ *postgres.Provider }

// asked gives an operation that is to fail parameters that are impossible.
func asked(in provider.Instance, parameters json.RawMessage) json.RawMessage {
	if providertest.Fails(in) {
		return json.RawMessage(`{"extensions":["no-such-extension"],"role":"superuser"}`)
	}
	return parameters
}

func (f failing) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	in.Parameters = asked(in, in.Parameters)
	return f.Provider.Provision(ctx, in)
}

func (f failing) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	in.Parameters = asked(in, in.Parameters)
	return f.Provider.Update(ctx, in)
}

func (f failing) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	b.Parameters = asked(b.Instance, b.Parameters)
	return f.Provider.Bind(ctx, b)
}

func (f failing) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return providertest.Failing(f.Provider, false).Deprovision(ctx, in)
}

func (f failing) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return providertest.Failing(f.Provider, false).Unbind(ctx, b)
}

// roleAt is the name of the role that the provider makes, and databaseAt that of its database, if any.
func roleAt(at provider.Tags) string {
	if at.Binding != "" {
		return hosted.Name("lsb", at)
	}
	return hosted.Name("lso", at)
}

func databaseAt(at provider.Tags) string {
	if at.Binding != "" {
		return ""
	}
	return hosted.Name("lsd", at)
}

// labelBy is the comment of a thing of that owner; none for nobody's.
func labelBy(owner provider.Tags, now time.Time) string {
	if owner == (provider.Tags{}) {
		return ""
	}
	return hosted.Label{Tags: owner, Created: now}.Text()
}

// super connects as the superuser for a moment: the suite has many.
func (w *world) super(t testing.TB, do func(*pgx.Conn) error) {
	t.Helper()
	c := expect.Get(pgx.Connect(context.Background(), w.server.Superuser("postgres")))(t)
	defer end(c)
	expect.OK(t, do(c))
}

// plant makes a role as somebody else would, with a comment of that owner. It is gone in the end, so that the server stays small.
func (w *world) plant(t testing.TB, at, owner provider.Tags) {
	t.Helper()
	role := roleAt(at)
	w.server.Exec("postgres", "CREATE ROLE "+role, "COMMENT ON ROLE "+role+" IS '"+labelBy(owner, w.clock.Now())+"'")
	t.Cleanup(func() {
		w.super(t, func(c *pgx.Conn) error { return expect.Err(c.Exec(context.Background(), "DROP ROLE IF EXISTS "+role)) })
	})
}

// look tells the labels of what stands, and the limits of the database.
func (w *world) look(t testing.TB, at provider.Tags) (found string) {
	t.Helper()
	w.super(t, func(c *pgx.Conn) error {
		return c.QueryRow(t.Context(), `SELECT coalesce(string_agg(one, E'\n'), '') FROM (
SELECT 'role ' || coalesce(shobj_description(oid, 'pg_authid'), '-') AS one FROM pg_roles WHERE rolname = $1
UNION ALL SELECT 'database ' || datconnlimit || coalesce(shobj_description(oid, 'pg_database'), '-')
  FROM pg_database WHERE datname = $2) all_of`, roleAt(at), databaseAt(at)).Scan(&found)
	})
	return found
}

// opens reports whether the credentials let somebody in to work.
func (w *world) opens(t testing.TB, g *provider.Grant) bool {
	t.Helper()
	c, err := pgx.Connect(t.Context(), g.Credentials["uri"].(string))
	if err != nil {
		return false
	}
	defer end(c)
	if _, err := c.Exec(t.Context(), "CREATE TABLE opens (a int); DROP TABLE opens"); err != nil {
		t.Errorf("the credentials let in, and not work: %v", err)
	}
	return true
}

// secrets counts those that are accepted: a role has one password.
func (w *world) secrets(t testing.TB, at provider.Tags) (n int) {
	t.Helper()
	w.super(t, func(c *pgx.Conn) error {
		return c.QueryRow(t.Context(), "SELECT count(*) FROM pg_authid WHERE rolname = $1 AND rolpassword IS NOT NULL AND rolcanlogin",
			roleAt(at)).Scan(&n)
	})
	return n
}
