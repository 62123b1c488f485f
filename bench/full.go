package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/provider/postgres/pgserver"
)

const (
	// sampled is the number of databases that a round makes on each server.
	sampled = 8
	// fillers is the number of clients that fill the server: few, so that other work gets processor time.
	fillers  = 2
	fullPool = 8 // that of the embedded broker
)

// full compares a PostgreSQL server that has many databases and bindings with an empty one, step by
// step of the provider, without the broker's own work. Each sample is taken from one server and
// then at once from the other.
func (b *bench) full() (_ *section, err error) {
	out := &section{
		heading: fmt.Sprintf("A PostgreSQL server with %d databases and %d bindings, and an empty one", b.manyDatabases,
			b.manyBindings),
		mine: "full", theirs: "empty",
	}
	if err := os.Chmod(b.dir, 0o711); err != nil { // if root runs this, the server runs as another user
		return nil, err
	}
	many, err := b.openEngine("full")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, many.close()) }()
	few, err := b.openEngine("empty")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, few.close()) }()
	for _, e := range []*engine{many, few} {
		if err := e.begin(); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	if err := many.fill(b.manyDatabases, b.manyBindings); err != nil {
		return nil, fmt.Errorf("filling the server: %w", err)
	}
	if n, _, err := many.list(); err != nil || n < b.manyDatabases+b.manyBindings/b.manyDatabases*b.manyDatabases {
		return nil, fmt.Errorf("the inventory of the full server has %d things: %w", n, err)
	}
	fmt.Fprintf(os.Stderr, "filled within %v\n", time.Since(began).Round(time.Second))
	for round := range b.rounds {
		both := []*engine{many, few}
		if round%2 == 1 {
			both[0], both[1] = few, many
		}
		took := map[*engine]map[string][]float64{many: {}, few: {}}
		for i := range sampled {
			for _, e := range both {
				if err := e.sample(fmt.Sprintf("sample-%d-%d", round, i), took[e]); err != nil {
					return nil, err
				}
			}
		}
		for _, what := range sampledSteps {
			out.add(what, "milliseconds", median(took[many][what]), median(took[few][what]))
		}
		for _, e := range both {
			if err := e.sweep(took[e]); err != nil {
				return nil, err
			}
		}
		out.add(sweepWhole, "milliseconds", median(took[many][sweepWhole]), median(took[few][sweepWhole]))
		out.add(sweepPage, "milliseconds", median(took[many][sweepPage]), median(took[few][sweepPage]))
	}
	return out, nil
}

// sampledSteps are in the order in which a sample runs them.
var sampledSteps = []string{"provision", "update", "bind", "bind, read only", "unbind", "unbind, read only", "deprovision"}

// The steps of an inventory.
const (
	sweepWhole = "inventory, all of it"
	sweepPage  = "inventory, by the page"
)

// An engine is a server with a provider that makes databases on it.
type engine struct {
	server *pgserver.Server
	*postgres.Provider
	mu     sync.Mutex
	target provider.Target
}

const (
	benchBroker = "bench"
	login       = "longshore" // the broker's login on its own server
)

func (b *bench) openEngine(name string) (*engine, error) {
	dir := b.path(name)
	if err := os.Mkdir(dir, 0o711); err != nil {
		return nil, err
	}
	s, err := pgserver.Open(context.Background(), pgserver.Options{
		Dir: filepath.Join(dir, "postgres"), Getenv: os.Getenv, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("there is no PostgreSQL: run make postgres: %w", err)
	}
	return &engine{server: s, Provider: postgres.New(postgres.Options{Options: hosted.Options{
		Broker: benchBroker, Accesses: hosted.Accesses{hosted.DefaultTarget: s.Access()}, Now: time.Now, Pool: fullPool,
	}})}, nil
}

func (e *engine) close() error {
	e.Provider.Close()
	return e.server.Close()
}

// The settings of the plan, before and after an update.
var smallPlan, largePlan = json.RawMessage(`{"connection_limit":20,"statement_timeout":300}`),
	json.RawMessage(`{"connection_limit":100}`)

// instance returns the instance that a step is called with.
func (e *engine) instance(id string, kind operation.Kind) provider.Instance {
	e.mu.Lock()
	defer e.mu.Unlock()
	in := provider.Instance{
		Broker: benchBroker, Platform: "p", ID: id, Incarnation: "op-" + id, ServiceID: postgresID, PlanID: smallID,
		Snapshot: smallPlan, Operation: provider.Operation{ID: string(kind) + "-" + id, Kind: kind, Started: time.Now()},
		Target: e.target,
	}
	if kind == operation.Update {
		in.Former, in.Snapshot = smallPlan, largePlan
	}
	return in
}

// binding returns a binding of the instance.
func (e *engine) binding(instance, id string, readOnly bool, kind operation.Kind) provider.Binding {
	b := provider.Binding{Instance: e.instance(instance, kind), ID: id, Incarnation: "op-" + id}
	if kind == operation.Bind {
		b.Secret = make([]byte, 32)
	}
	if readOnly {
		b.Parameters = json.RawMessage(`{"role":"read_only"}`)
	}
	return b
}

// done runs steps until an operation has ended.
func (e *engine) done(step func(context.Context) (provider.Status, error)) error {
	var last error
	for range removeLooks {
		st, err := step(context.Background())
		if _, failed := errors.AsType[*provider.Failure](err); failed {
			return err
		}
		if err != nil { // a passing fault, such as of a slow disk
			last = err
			time.Sleep(removePause)
			continue
		}
		e.mu.Lock()
		if st.Target != nil {
			e.target = *st.Target
		}
		e.mu.Unlock()
		if st.Done {
			return nil
		}
		time.Sleep(st.After)
	}
	return fmt.Errorf("it comes to no end: %w", last)
}

func (e *engine) provision(id string) error {
	return e.done(func(ctx context.Context) (provider.Status, error) {
		return e.Provision(ctx, e.instance(id, operation.Provision))
	})
}

func (e *engine) bind(instance, id string, readOnly bool) error {
	return e.done(func(ctx context.Context) (provider.Status, error) {
		return e.Bind(ctx, e.binding(instance, id, readOnly, operation.Bind))
	})
}

func (e *engine) unbind(instance, id string) error {
	return e.done(func(ctx context.Context) (provider.Status, error) {
		return e.Unbind(ctx, e.binding(instance, id, false, operation.Unbind))
	})
}

// fill makes databases on the server, with as many bindings for each. A superuser makes them, in the state
// in which the provider would leave them: the provider's own requests take longer the fuller the server is.
func (e *engine) fill(databases, bindings int) error {
	return eachOf(databases, fillers, func(i int) error {
		ctx := context.Background()
		tags := provider.Tags{Broker: benchBroker, Platform: "p", Instance: fmt.Sprintf("filled-%d", i), Incarnation: "op"}
		database, owner, reader, keeper := hosted.Name("lsd", tags), hosted.Name("lso", tags),
			hosted.Name("lsr", tags), keeperName(i)
		all := []string{
			fmt.Sprintf("CREATE ROLE %q NOLOGIN", owner), labelled("ROLE", owner, tags), kept(owner, keeper),
			fmt.Sprintf("CREATE ROLE %q NOLOGIN", reader), kept(reader, keeper),
			fmt.Sprintf("CREATE DATABASE %q OWNER %s TEMPLATE template0 ENCODING 'UTF8' CONNECTION LIMIT 20", database, login),
			fmt.Sprintf("REVOKE ALL ON DATABASE %q FROM PUBLIC", database),
			fmt.Sprintf("GRANT CONNECT, CREATE, TEMPORARY ON DATABASE %q TO %q", database, owner),
			fmt.Sprintf("GRANT CONNECT ON DATABASE %q TO %q", database, reader),
			labelled("DATABASE", database, tags), fmt.Sprintf("ALTER DATABASE %q SET statement_timeout = '60s'", database),
		}
		for j := range bindings / databases {
			tags.Binding = fmt.Sprint(j)
			user := hosted.Name("lsb", tags)
			all = append(all, fmt.Sprintf("CREATE ROLE %q LOGIN IN ROLE %q", user, owner), labelled("ROLE", user, tags),
				kept(user, keeper), fmt.Sprintf("ALTER ROLE %q IN DATABASE %q SET role = %q", user, database, owner))
		}
		if err := e.asSuperuser(ctx, "postgres", all...); err != nil {
			return err
		}
		return e.asSuperuser(ctx, database, "REVOKE ALL ON SCHEMA public FROM PUBLIC",
			fmt.Sprintf("GRANT ALL ON SCHEMA public TO %q", owner), fmt.Sprintf("GRANT USAGE ON SCHEMA public TO %q", reader))
	})
}

// labelled returns the statement that labels a database or role as the broker's.
func labelled(kind, name string, tags provider.Tags) string {
	label := hosted.Label{Tags: tags, PlanID: smallID, Created: time.Now(), Details: json.RawMessage(`{"limit":20,"ready":true}`)}
	return fmt.Sprintf("COMMENT ON %s %q IS '%s'", kind, name, label.Text())
}

// kept returns the statement that lets a member administer a role, as the server does for the creator of a role.
func kept(role, member string) string {
	return fmt.Sprintf("GRANT %q TO %q WITH ADMIN TRUE, INHERIT FALSE, SET FALSE", role, member)
}

// keepers is the number of roles that make roles for a broker.
const keepers = 64

func keeperName(i int) string {
	return fmt.Sprintf("%s%02d", hosted.Name("lsk", provider.Tags{Broker: benchBroker}), i%keepers)
}

// begin makes a first database, which reveals the target, and those of the keepers that the
// provider has not made: otherwise it would make each of them when a sample first needs it.
func (e *engine) begin() error {
	if err := e.provision("first"); err != nil {
		return err
	}
	ctx := context.Background()
	c, err := e.server.Cluster().Connect(ctx, login)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	var first, function string
	const made = "SELECT proname::text, pg_get_functiondef(oid) FROM pg_proc WHERE proname ~ '^lsk'"
	if err := c.QueryRow(ctx, made).Scan(&first, &function); err != nil {
		return err
	}
	for i := range keepers {
		name := keeperName(i)
		if name == first {
			continue
		}
		for _, statement := range []string{
			fmt.Sprintf("CREATE ROLE %q NOLOGIN CREATEROLE", name), kept(name, login), strings.ReplaceAll(function, first, name),
			fmt.Sprintf("SELECT format('ALTER FUNCTION %%s OWNER TO %[1]s; REVOKE ALL ON FUNCTION %%1$s FROM PUBLIC; "+
				"GRANT EXECUTE ON FUNCTION %%1$s TO %[2]s', oid::regprocedure) FROM pg_proc WHERE proname = '%[1]s'", name,
				login),
		} {
			var then string
			if !strings.HasPrefix(statement, "SELECT") {
				_, err = c.Exec(ctx, statement)
			} else if err = c.QueryRow(ctx, statement).Scan(&then); err == nil {
				_, err = c.PgConn().Exec(ctx, then).ReadAll()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
	}
	return nil
}

func (e *engine) asSuperuser(ctx context.Context, database string, statements ...string) error {
	c, err := e.server.Cluster().Connect(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	for _, statement := range statements {
		if _, err := c.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// sample runs one life of a database, and adds the duration of each operation.
func (e *engine) sample(id string, took map[string][]float64) error {
	for _, what := range sampledSteps {
		began := time.Now()
		var err error
		switch what {
		case "provision":
			err = e.provision(id)
		case "update":
			err = e.done(func(ctx context.Context) (provider.Status, error) {
				return e.Update(ctx, e.instance(id, operation.Update))
			})
		case "bind":
			err = e.bind(id, "b", false)
		case "bind, read only":
			err = e.bind(id, "r", true)
		case "unbind":
			err = e.unbind(id, "b")
		case "unbind, read only":
			err = e.unbind(id, "r")
		case "deprovision":
			err = e.done(func(ctx context.Context) (provider.Status, error) {
				return e.Deprovision(ctx, e.instance(id, operation.Deprovision))
			})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		took[what] = append(took[what], milliseconds(time.Since(began)))
	}
	return nil
}

// sweep reads the whole inventory a few times.
func (e *engine) sweep(took map[string][]float64) error {
	const times = 5
	for range times {
		began := time.Now()
		_, pages, err := e.list()
		if err != nil {
			return fmt.Errorf("listing: %w", err)
		}
		whole := milliseconds(time.Since(began))
		took[sweepWhole], took[sweepPage] = append(took[sweepWhole], whole), append(took[sweepPage], whole/float64(pages))
	}
	return nil
}

// list returns the number of things and pages of the inventory.
func (e *engine) list() (things, pages int, err error) {
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		var page []provider.Holding
		if page, cursor, err = e.List(context.Background(), cursor); err != nil {
			return things, pages, err
		}
		things += len(page)
	}
	return things, pages, nil
}

func milliseconds(d time.Duration) float64 { return microseconds(d) / 1e3 }
