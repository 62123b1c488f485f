// Package web wires what platforms and browsers ask of a broker: the API with its decisions, and
// the pages beside it. It determines where browsers find the pages, and holds samples of how
// programs connect to each engine.
package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/front/rates"
	"github.com/longshore/longshore/internal/front/signon"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/datakey"
)

// Options are what differs between the programs that serve the API and the pages.
type Options struct {
	Identity  string // the broker's own
	Origin    string // where browsers reach the broker; empty if API Gateway names it
	Records   *ledger.Ledger
	Catalog   *catalog.Catalog
	Vault     vault.Vault
	Engine    Engine
	Platforms *platforms.Kept
	// Registry reads the platforms for the console.
	Registry     func(context.Context) (platforms.Registry, error)
	RetryAfter   app.RetryAfter
	PlatformRate int
	Now          func() time.Time
	Log          *slog.Logger
	Metrics      *metrics.Metrics
}

// An Engine starts operations, and has facts asked for.
type Engine interface {
	workflow.Engine
	Inquire(ctx context.Context, q workflow.Inquiry) error
}

// New returns the handler for platforms and browsers.
func New(o Options) http.Handler {
	losable := datakey.New(o.Records, o.Vault)
	// A login says by the world's clock until when its answers are valid; o.Now may be ahead of that for good.
	logins := SignOn(o.Platforms, o.Origin, app.Now)
	return With(osb.Options{
		Broker: broker.New(broker.Options{
			Identity: o.Identity, Records: o.Records, Catalog: o.Catalog, Vault: o.Vault, Table: losable, Engine: o.Engine,
			Now: o.Now, NewID: app.NewID, NewSecret: app.NewSecret, Log: o.Log, Metrics: o.Metrics,
			Dashboard: func(ctx context.Context, k lifecycle.Key) string {
				return below(ctx, o.Origin, pages.InstancePath(k))
			},
			SynchronousWait: wired.DefaultWait, Waits: app.Waits,
			OperationTimeout: app.OperationTimeout, MinRetryAfter: o.RetryAfter.Min, MaxRetryAfter: o.RetryAfter.Max,
		}),
		Platforms: o.Platforms, Throttle: rates.New(o.PlatformRate, o.Now), Offerings: o.Catalog.Offerings,
		Now: o.Now, NewID: app.NewID, Log: o.Log, Metrics: o.Metrics,
	}, pages.Options{
		Records: o.Records, Plans: o.Catalog, Table: losable,
		Inquire: o.Engine.Inquire, SignOn: logins, Now: o.Now, Log: o.Log,
		Console: pages.Console{
			Offerings: o.Catalog.Offerings, Registry: o.Registry,
			Acts: acts.Acts{Records: o.Records, Start: o.Engine.Start, Now: o.Now, NewID: app.NewID,
				OperationTimeout: app.OperationTimeout},
		},
	})
}

// With returns a handler that serves the pages beside the API, and tells each the addresses of the other
// that a sign-on needs. The API keeps the paths of a platform that is called dashboard or console.
func With(a osb.Options, o pages.Options) http.Handler {
	o.Samples, o.Broker, o.Throttle = samples, a.Broker, a.Throttle
	shown := pages.New(o)
	a.Located = shown.Locate
	a.Callback = o.SignOn.Callback
	api := osb.New(a)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPage(r.URL.Path) {
			shown.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

func isPage(path string) bool {
	if path == pages.PrefixConsole {
		return true
	}
	for _, prefix := range []string{pages.Prefix, pages.PrefixConsole} {
		if rest, ours := strings.CutPrefix(path, prefix+"/"); ours {
			next, _, more := strings.Cut(rest, "/")
			return next != "v2" && (next != "operations" || !more)
		}
	}
	return false
}

// SignOn lets the logins of a registry open sessions.
func SignOn(known *platforms.Kept, origin string, now func() time.Time) *pages.SignOn {
	return &pages.SignOn{Registry: known.Registry, Callback: func(ctx context.Context) string {
		return below(ctx, origin, pages.PathCallback)
	}, Finder: &signon.Finder{Now: now}}
}

// below returns an address below the origin where browsers reach the broker: the configured one, or
// the one that API Gateway names, but never one that a client claims. It is empty without an origin.
func below(ctx context.Context, configured, path string) string {
	origin := cmp.Or(configured, osb.ArrivalIn(ctx).Origin)
	if origin == "" {
		return ""
	}
	return strings.TrimSuffix(origin, "/") + path
}

// jdbc is the sample of each engine that Java reaches by JDBC.
var jdbc = pages.Sample{
	Name: "Java", Code: "var connection = DriverManager.getConnection(System.getenv(\"JDBC_URL\"),\n    " +
		"System.getenv(\"DB_USERNAME\"), System.getenv(\"DB_PASSWORD\"));",
}

// samples show how programs connect to an engine.
var samples = map[string][]pages.Sample{
	app.ProviderPostgres: {
		{Name: "psql", Code: `psql "$DATABASE_URL"`},
		{Name: "Go", Code: "pool, err := pgxpool.New(ctx, os.Getenv(\"DATABASE_URL\"))"},
		{Name: "Python", Code: "import os, psycopg\nconnection = psycopg.connect(os.environ[\"DATABASE_URL\"])"},
		{Name: "Node.js",
			Code: "import pg from \"pg\";\nconst pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });"},
		jdbc,
	},
	app.ProviderMariaDB: {
		{Name: "mariadb", Code: `mariadb --host="$DB_HOSTNAME" --port="$DB_PORT" --user="$DB_USERNAME" --password "$DB_NAME"`},
		{Name: "Go", Code: "db, err := sql.Open(\"mysql\", os.Getenv(\"DATABASE_DSN\"))"},
		{Name: "Python", Code: "import os, pymysql\n" +
			"connection = pymysql.connect(host=os.environ[\"DB_HOSTNAME\"], user=os.environ[\"DB_USERNAME\"],\n" +
			"    password=os.environ[\"DB_PASSWORD\"], database=os.environ[\"DB_NAME\"])"},
		{Name: "Node.js",
			Code: "import mysql from \"mysql2/promise\";\nconst pool = mysql.createPool(process.env.DATABASE_URL);"},
		jdbc,
	},
	app.ProviderValkey: {
		{Name: "valkey-cli", Code: `valkey-cli -u "$VALKEY_URL"`},
		{Name: "Go", Code: "options, err := redis.ParseURL(os.Getenv(\"VALKEY_URL\"))\nclient := redis.NewClient(options)"},
		{Name: "Python", Code: "import os, redis\nclient = redis.from_url(os.environ[\"VALKEY_URL\"])"},
		{Name: "Node.js",
			Code: "import { createClient } from \"redis\";\nconst client = createClient({ url: process.env.VALKEY_URL });"},
		{Name: "Java", Code: "var client = RedisClient.create(System.getenv(\"VALKEY_URL\"));"},
	},
}
