package mariadb

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore/longshore/internal/provider/hosted"
)

// dialTimeout is how long a connection may take to open.
const dialTimeout = 5 * time.Second

// collation is the collation of the broker's sessions. Hazard: the driver writes values into statements, so
// the server must read their characters as the driver wrote them.
const collation = "utf8mb4_bin"

// keptFor is how many seconds the server lets a connection be idle. A pool keeps its connections as long as
// it can: while tenants hold all connections or files of a server, nobody gets a new one.
const keptFor = "31536000"

// session holds the settings of all the broker's sessions, in place of the server's defaults: text is taken
// literally, and waits for locks are short. The server may ignore the collation in a client's greeting
// (skip-character-set-client-handshake), so it is set here again.
var session = map[string]string{
	"character_set_client":     "utf8mb4",
	"character_set_results":    "utf8mb4",
	"collation_connection":     collation,
	"sql_mode":                 "'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES'",
	"lock_wait_timeout":        "2",
	"innodb_lock_wait_timeout": "2",
	"max_statement_time":       "15",
	"time_zone":                "'+00:00'",
	"wait_timeout":             keptFor,
}

// A sqlServer is a real server.
type sqlServer struct {
	db *sql.DB
	// identity is the identity that was read last. The names of locks derive from it: no tenant knows it, so
	// nobody else can take the locks.
	identity atomic.Pointer[string]
}

// openSQL prepares connections to a server without connecting yet.
func openSQL(access hosted.Access, pool int) (server, error) {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = access.User, access.Password, access.Database
	config.Net, config.Addr = access.Network(), access.Address()
	config.Timeout, config.ClientFoundRows, config.Collation = dialTimeout, true, collation
	// Hazard: all logins of a server share max_prepared_stmt_count, which one tenant can use up. So the
	// broker prepares no statement.
	config.InterpolateParams = true
	config.Params = session
	config.Logger = &mysql.NopLogger{}
	var err error
	if config.TLS, err = access.TLSConfig(); err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the way to the server: %w", err)
	}
	s := &sqlServer{db: sql.OpenDB(connector)}
	s.db.SetMaxOpenConns(max(pool, 2))
	s.db.SetMaxIdleConns(max(pool, 1))
	return s, nil
}

// Close closes the connections.
func (s *sqlServer) Close() { _ = s.db.Close() }

// schema makes the tables in the broker's own database. Several brokers may share that database.
var schema = []string{
	`CREATE TABLE IF NOT EXISTS brokers (
		broker VARBINARY(255) PRIMARY KEY, identity VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
		epoch BIGINT UNSIGNED NOT NULL, mark VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
	) ENGINE=InnoDB COMMENT 'Longshore: who this server is to each broker, and how far it has come, which a restore puts back'`,
	`CREATE TABLE IF NOT EXISTS things (
		serial BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
		name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
		instance VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
		broker VARBINARY(255) NOT NULL,
		version BIGINT UNSIGNED NOT NULL,
		label MEDIUMTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
		details TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
		KEY (instance), KEY (broker, name)
	) ENGINE=InnoDB COMMENT 'Longshore: whose each database and account is'`,
}
