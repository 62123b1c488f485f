package pages

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// A sample shows how a program connects. Credentials come from the environment: no page
// holds any.
type sample struct{ name, code string }

// samples are those of an engine, by the name of its provider.
var samples = map[string][]sample{
	"postgres": {
		{"psql", `psql "$DATABASE_URL"`},
		{"Go", "pool, err := pgxpool.New(ctx, os.Getenv(\"DATABASE_URL\"))"},
		{"Python", "import os, psycopg\nconnection = psycopg.connect(os.environ[\"DATABASE_URL\"])"},
		{"Node.js", "import pg from \"pg\";\nconst pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });"},
		{"Java", "var connection = DriverManager.getConnection(System.getenv(\"JDBC_URL\"),\n    " +
			"System.getenv(\"DB_USERNAME\"), System.getenv(\"DB_PASSWORD\"));"},
	},
	"mariadb": {
		{"mariadb", `mariadb --host="$DB_HOSTNAME" --port="$DB_PORT" --user="$DB_USERNAME" --password "$DB_NAME"`},
		{"Go", "db, err := sql.Open(\"mysql\", os.Getenv(\"DATABASE_DSN\"))"},
		{"Python", "import os, pymysql\nconnection = pymysql.connect(host=os.environ[\"DB_HOSTNAME\"], user=os.environ[\"DB_USERNAME\"],\n" +
			"    password=os.environ[\"DB_PASSWORD\"], database=os.environ[\"DB_NAME\"])"},
		{"Node.js", "import mysql from \"mysql2/promise\";\nconst pool = mysql.createPool(process.env.DATABASE_URL);"},
		{"Java", "var connection = DriverManager.getConnection(System.getenv(\"JDBC_URL\"),\n    " +
			"System.getenv(\"DB_USERNAME\"), System.getenv(\"DB_PASSWORD\"));"},
	},
	"valkey": {
		{"valkey-cli", `valkey-cli -u "$VALKEY_URL"`},
		{"Go", "options, err := redis.ParseURL(os.Getenv(\"VALKEY_URL\"))\nclient := redis.NewClient(options)"},
		{"Python", "import os, redis\nclient = redis.from_url(os.environ[\"VALKEY_URL\"])"},
		{"Node.js", "import { createClient } from \"redis\";\nconst client = createClient({ url: process.env.VALKEY_URL });"},
		{"Java", "var client = RedisClient.create(System.getenv(\"VALKEY_URL\"));"},
	},
}

// showsCredentials is the command by which a platform shows the credentials of a binding; empty
// if it is not known.
func (v *view) showsCredentials() string {
	switch name := quoted(v.title()); v.context.Platform {
	case "cloudfoundry":
		return "cf create-service-key " + name + " my-key\ncf service-key " + name + " my-key"
	case "kubernetes":
		return "kubectl get secret NAME_OF_THE_BINDING -o yaml"
	default:
		return ""
	}
}

// connect says how to use an instance.
func (v *view) connect() g.Node {
	if v.record.State != "ready" && v.record.State != "updating" {
		return nil
	}
	where := "Bind your application: its platform gives it the credentials. To see them yourself, read a binding."
	command := v.showsCredentials()
	if command != "" {
		where = "Bind your application: its platform gives it the credentials. To see them yourself:"
	}
	return section("connect", "Connect", h.P(g.Text(where)), g.If(command != "", example("Command that shows credentials", command)),
		g.Map(samples[v.record.Provider], func(s sample) g.Node {
			return h.Details(h.ID("connect-"+s.name), g.If(s.name == samples[v.record.Provider][0].name, g.Attr("open")), h.Summary(g.Text(s.name)), example("Example for "+s.name, s.code))
		}))
}
