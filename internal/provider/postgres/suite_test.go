package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
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
	providertest.RunOnce(t, onAServer, "Faults", "LateCalls", "InstanceStates", "BindingStates")
}

// The race detector watches two callers.
func TestTwoCallers(t *testing.T) { providertest.RunTwoCallers(t, onAServer) }

func onAServer(t *testing.T) *providertest.Harness {
	version := os.Getenv("LONGSHORE_TEST_POSTGRES")
	if version == "" {
		version = "17"
	}
	return harness(t, pgtest.Start(t, version), pgtest.Start(t, "18"))
}

// A world is a real server as the suite sees it.
type world struct {
	server *pgtest.Server
	access hosted.Access
	clock  *providertest.Clock
	calls  *providertest.Calls
	broker string
}

func (w *world) open(t testing.TB, broker string, access hosted.Access, calls *providertest.Calls) *postgres.Provider {
	p := postgres.New(postgres.Options{Options: hosted.Options{
		Broker: broker, Accesses: hosted.Accesses{hosted.DefaultTarget: access}, Now: w.clock.Now, Pool: 2,
	}})
	p.SetPage(suitePage)
	p.Wrap(calls.Call)
	t.Cleanup(p.Close)
	return p
}

func harness(t *testing.T, s, other *pgtest.Server) *providertest.Harness {
	t.Helper()
	w := &world{server: s, access: s.Access(), clock: providertest.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)),
		calls: &providertest.Calls{}, broker: "broker-" + fmt.Sprint(time.Now().UnixNano())}
	p := w.open(t, w.broker, w.access, w.calls)
	t.Cleanup(func() { w.sweep(t) })
	return &providertest.Harness{
		Provider: failing{p}, Inventory: p, Broker: w.broker, Target: provider.Target{Name: hosted.DefaultTarget},
		Elsewhere: func(t testing.TB) (provider.Provider, provider.Inventory) {
			p := w.open(t, w.broker, other.Access(), &providertest.Calls{})
			return p, p
		},
		Clock: w.clock, ServiceID: "service-1", PlanID: "plan-1", Settings: map[string]any{"connection_limit": 5},
		Parameters: providertest.Note, Fail: providertest.FailBySetting,
		Plant: w.plant, Look: w.look, Opens: w.opens, Secrets: w.secrets, Falter: w.calls.Arm, PageSize: suitePage,
		Open: func(t testing.TB, broker string) (provider.Provider, provider.Inventory) {
			p := w.open(t, broker, w.access, &providertest.Calls{})
			return failing{p}, p
		},
	}
}

// failing is a provider whose operations fail as their settings ask for: they are
// given parameters that no database can have, or an instance that never was.
type failing struct{ *postgres.Provider }

var impossible = json.RawMessage(`{"extensions":["no-such-extension"],"role":"superuser"}`)

func (f failing) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if providertest.Fails(in) {
		in.Parameters = impossible
	}
	return f.Provider.Provision(ctx, in)
}

func (f failing) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if providertest.Fails(in) {
		in.Parameters = impossible
	}
	return f.Provider.Update(ctx, in)
}

func (f failing) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	if providertest.Fails(b.Instance) {
		b.Parameters = impossible
	}
	return f.Provider.Bind(ctx, b)
}

// A deletion fails only over what is not ours, which NotOurs tests: these two stand for it.
func (f failing) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if providertest.Fails(in) {
		return provider.Status{}, provider.Failf("asked to fail")
	}
	return f.Provider.Deprovision(ctx, in)
}

func (f failing) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	if providertest.Fails(b.Instance) {
		return provider.Status{}, provider.Failf("asked to fail")
	}
	return f.Provider.Unbind(ctx, b)
}

// names are those that the provider uses.
func namesAt(at provider.Tags) (database, owner, login string) {
	if at.Binding != "" {
		login = hosted.Name("lsb", at)
		at.Binding = ""
	}
	return hosted.Name("lsd", at), hosted.Name("lso", at), login
}

func (w *world) super(t testing.TB) *pgx.Conn {
	t.Helper()
	return expect.Get(pgx.Connect(t.Context(), w.server.Superuser("postgres")))(t)
}

// plant makes a role as somebody else would, with a comment of that owner.
func (w *world) plant(t testing.TB, at, owner provider.Tags) {
	t.Helper()
	_, name, login := namesAt(at)
	if login != "" {
		name = login
	}
	c := w.super(t)
	defer func() { _ = c.Close(context.Background()) }()
	text := "CREATE ROLE " + name
	if owner != (provider.Tags{}) {
		text += "; COMMENT ON ROLE " + name + " IS '" + hosted.Label{Tags: owner, Created: w.clock.Now()}.Text() + "'"
	}
	expect.Get(c.PgConn().Exec(t.Context(), text).ReadAll())(t)
}

// look tells the labels of what stands, and the limits of the database.
func (w *world) look(t testing.TB, at provider.Tags) string {
	t.Helper()
	c := w.super(t)
	defer func() { _ = c.Close(context.Background()) }()
	database, owner, login := namesAt(at)
	if login != "" {
		database, owner = "", login
	}
	var found string
	err := c.QueryRow(t.Context(), `SELECT coalesce(string_agg(one, E'\n'), '') FROM (
SELECT 'role ' || coalesce(shobj_description(oid, 'pg_authid'), '-') AS one FROM pg_roles WHERE rolname = $1
UNION ALL SELECT 'database ' || datconnlimit || coalesce(shobj_description(oid, 'pg_database'), '-')
  FROM pg_database WHERE datname = $2) all_of`,
		owner, database).Scan(&found)
	expect.OK(t, err)
	return found
}

// opens reports whether the credentials let somebody in to work.
func (w *world) opens(t testing.TB, g *provider.Grant) bool {
	t.Helper()
	c, err := pgx.Connect(t.Context(), g.Credentials["uri"].(string))
	if err != nil {
		return false
	}
	defer func() { _ = c.Close(context.Background()) }()
	if _, err := c.Exec(t.Context(), "CREATE TABLE opens (a int); DROP TABLE opens"); err != nil {
		t.Errorf("the credentials let in, and not work: %v", err)
	}
	return true
}

// secrets counts those that are accepted: a role has one password.
func (w *world) secrets(t testing.TB, at provider.Tags) (n int) {
	t.Helper()
	c := w.super(t)
	defer func() { _ = c.Close(context.Background()) }()
	_, _, login := namesAt(at)
	if err := c.QueryRow(t.Context(), "SELECT count(*) FROM pg_authid WHERE rolname = $1 AND rolpassword IS NOT NULL AND rolcanlogin",
		login).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// sweep drops what the suite has planted, so that the server stays small.
func (w *world) sweep(t testing.TB) {
	c, err := pgx.Connect(context.Background(), w.server.Superuser("postgres"))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close(context.Background()) }()
	rows, err := c.Query(context.Background(), `SELECT rolname::text FROM pg_roles r WHERE rolname ~ '^ls[ob]'
AND NOT EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = r.oid OR m.member = r.oid)`)
	if err != nil {
		t.Error(err)
		return
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		_, dropped := c.Exec(context.Background(), "DROP ROLE IF EXISTS "+name)
		if dropped != nil && strings.Contains(dropped.Error(), "concurrently") {
			dropped = nil
		}
		err = errors.Join(err, dropped)
	}
	if err != nil {
		t.Error(err)
	}
}
