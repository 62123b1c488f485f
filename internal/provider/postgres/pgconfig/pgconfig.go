// Package pgconfig configures the broker's connections to PostgreSQL servers from its arguments alone, and reads versions.
package pgconfig

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Timeout is how long opening a connection may take.
const Timeout = 5 * time.Second

// all names every setting that pgx would otherwise take from a PG* variable, from a file in ~/.postgresql, or
// from ~/.pgpass. An operator's variables are meant for psql: they may name another server's certificates, or
// files that the broker may not read.
var all = "host=localhost port=5432 user=x password=x dbname=x target_session_attrs=any sslmode=disable " +
	"sslnegotiation=postgres sslsni=1 " +
	"sslcert='' sslkey='' sslpassword='' sslrootcert='' passfile='" + os.DevNull + "' servicefile='" + os.DevNull + "' " +
	fmt.Sprintf("connect_timeout=%d", int(Timeout/time.Second))

// envService is the variable that names a section of a settings file. No setting can tell pgx to ignore it.
const envService = "PGSERVICE"

var parsing sync.Mutex

// New configures connections without TLS and without a password. The caller adds both, and the settings of
// the session.
func New(host string, port uint16, database, user string) (*pgxpool.Config, error) {
	cfg, err := parse()
	if err != nil {
		return nil, fmt.Errorf("preparing a connection to PostgreSQL: %w", err)
	}
	c := cfg.ConnConfig
	c.Host, c.Port, c.Database, c.User, c.Password = host, port, database, user, ""
	c.RuntimeParams, c.Fallbacks, c.TLSConfig, c.KerberosSrvName, c.KerberosSpn = map[string]string{}, nil, nil, "", ""
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	return cfg, nil
}

func parse() (*pgxpool.Config, error) {
	parsing.Lock()
	defer parsing.Unlock()
	if service, set := os.LookupEnv(envService); set {
		_ = os.Unsetenv(envService)
		defer func() { _ = os.Setenv(envService, service) }()
	}
	return pgxpool.ParseConfig(all)
}

var digits = regexp.MustCompile(`\d+`)

// Major returns the major version in what a server or a program says of itself, such as 18beta1, or in a path: the first
// number; 0 if there is none.
func Major(text string) int {
	n, _ := strconv.Atoi(digits.FindString(text))
	return n
}
