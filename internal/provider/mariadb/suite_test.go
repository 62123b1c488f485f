package mariadb_test

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/mariadb"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/mariadbtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// The suite runs over the real server, without the cases in which every call goes wrong in every way: they take a minute.
func TestSound(t *testing.T) {
	providertest.RunOnce(t, factory, "Faults", "LateCalls")
}

// The race detector watches two callers.
func TestTwoCallers(t *testing.T) { providertest.RunTwoCallers(t, factory) }

// Every call to the server goes wrong once, as when the process is killed: it is the real one that it leaves half done.
func TestKilled(t *testing.T) {
	providertest.RunFaults(t, factory, providertest.Killed)
}

const smallPage = 3

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// A world is a server with a broker's login on it, and the provider's harness.
type world struct {
	t      testing.TB
	server *mariadbtest.Server
	access hosted.Access
	clock  *providertest.Clock
	calls  *providertest.Calls
	broker string
}

// Brokers tell worlds apart: all of a process share two logins, one for Elsewhere.
var logins [2]struct {
	sync.Once
	hosted.Access
}

func loginOf(t testing.TB, n int) hosted.Access {
	t.Helper()
	logins[n].Do(func() { logins[n].Access = mariadbtest.Start(t).Access(t) })
	return logins[n].Access
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, server: mariadbtest.Start(t), access: loginOf(t, 0), clock: providertest.NewClock(start),
		calls: &providertest.Calls{}, broker: "broker-" + rand.Text(),
	}
	expect.Get(w.open(w.broker, w.access).Provision(t.Context(), provider.Instance{}))(t) // the server learns of the broker
	return w
}

// open makes a provider of a broker.
func (w *world) open(broker string, access hosted.Access) *mariadb.Provider {
	p := mariadb.New(mariadb.Options{
		Broker: broker, Accesses: hosted.Accesses{hosted.DefaultTarget: access}, Now: w.clock.Now, Pool: 2, Page: smallPage,
	})
	mariadb.Through(p, w.calls)
	w.t.Cleanup(p.Close)
	return p
}

// frozen is a provider of the broker as in a function, which keeps no connection and has this log.
func (w *world) frozen(log *slog.Logger) *mariadb.Provider {
	p := mariadb.New(mariadb.Options{
		Broker: w.broker, Accesses: hosted.Accesses{hosted.DefaultTarget: w.access}, Now: w.clock.Now, Log: log,
	})
	w.t.Cleanup(p.Close)
	return p
}

// text reads one text as the administrator.
func (w *world) text(query string, args ...any) string {
	w.t.Helper()
	var text sql.NullString
	expect.OK(w.t, w.server.Administrator().QueryRow(query, args...).Scan(&text), query)
	return text.String
}

// nameOf is the name of the thing with these tags.
func nameOf(at provider.Tags) string { return mariadb.Names(at)[0] }

// look tells what stands at the names of tags: records, database and account.
func (w *world) look(at provider.Tags) string {
	name := nameOf(at)
	return w.text(`SELECT CONCAT_WS(' ',
		(SELECT CONCAT(label, JSON_VALUE(details, '$.changed')) FROM `+w.access.Database+`.things WHERE name = ?),
		(SELECT schema_name FROM information_schema.schemata WHERE schema_name = ?),
		(SELECT user FROM mysql.global_priv WHERE user = ?))`, name, name, name)
}

// plant makes a database or an account, and a record if it has an owner.
func (w *world) plant(at, owner provider.Tags) {
	w.t.Helper()
	thing := nameOf(at)
	kind, name := "DATABASE ", thing
	if at.Binding != "" {
		kind, name = "USER ", thing+"@'%'"
	}
	w.server.Root(w.t, "CREATE "+kind+name)
	w.t.Cleanup(func() { w.server.Root(w.t, "DROP "+kind+"IF EXISTS "+name) })
	if owner == (provider.Tags{}) {
		return
	}
	instance := nameOf(at.OfInstance())
	label := hosted.Label{Tags: owner, Created: w.clock.Now()}
	w.server.Root(w.t, "INSERT INTO "+w.access.Database+".things (name, instance, broker, version, label, details) "+
		"VALUES (?, ?, ?, 1, ?, ?)", thing, instance, owner.Broker, label.Text(), `{"phase":"ready"}`)
}

// dial opens the database that credentials are for, by their URI.
func dial(t testing.TB, credentials map[string]any, change func(*mysql.Config)) *sql.DB {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Passwd = credentials["username"].(string), credentials["password"].(string)
	config.Net, config.Addr = "tcp", fmt.Sprintf("%v:%v", credentials["host"], credentials["port"])
	config.DBName, config.Logger = credentials["name"].(string), &mysql.NopLogger{}
	if change != nil {
		change(config)
	}
	db := sql.OpenDB(expect.Get(mysql.NewConnector(config))(t))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func opens(t testing.TB, g *provider.Grant) bool {
	t.Helper()
	db := dial(t, g.Credentials, nil)
	defer func() { _ = db.Close() }()
	return db.PingContext(t.Context()) == nil
}

// factory makes harnesses over the real server.
func factory(t *testing.T) *providertest.Harness {
	w := newWorld(t)
	open := func(broker string, access hosted.Access) (provider.Provider, provider.Inventory) {
		p := w.open(broker, access)
		return providertest.Failing(p, false), p
	}
	h := &providertest.Harness{
		Broker: w.broker, Clock: w.clock, Target: provider.Target{Name: hosted.DefaultTarget}, PageSize: smallPage,
		Open: func(_ testing.TB, broker string) (provider.Provider, provider.Inventory) {
			return open(broker, w.access)
		},
		Elsewhere: func(t testing.TB) (provider.Provider, provider.Inventory) { return open(w.broker, loginOf(t, 1)) },
		ServiceID: "service-1", PlanID: "plan-1", Settings: map[string]any{"connection_limit": 5},
		Parameters: providertest.Note, Fail: providertest.FailBySetting,
		Plant: func(_ testing.TB, at, owner provider.Tags) { w.plant(at, owner) },
		Look:  func(_ testing.TB, at provider.Tags) string { return strings.TrimSpace(w.look(at)) },
		Opens: opens,
		Fill: func(t testing.TB, g *provider.Grant) { // something runs as the binding's account, which stays so
			exec(t, dial(t, g.Credentials, nil), "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (7)",
				"CREATE VIEW v AS SELECT a FROM t")
		},
		Holds: func(t testing.TB, g *provider.Grant) bool {
			return count(t, dial(t, g.Credentials, nil), "SELECT a FROM v") == 7
		},
		Secrets: func(_ testing.TB, at provider.Tags) int {
			n, _ := strconv.Atoi(w.text(`SELECT COUNT(*) FROM mysql.global_priv WHERE user = ?
				AND NOT JSON_VALUE(priv, '$.account_locked')`, nameOf(at)))
			return n
		},
		Falter: w.calls.Arm,
	}
	h.Provider, h.Inventory = open(w.broker, w.access)
	return h
}
