package postgres

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// Classes for PostgreSQL alone, where operators need other words.
var (
	crowded = hosted.Class{Kind: target.Connections, Remedy: "it has no connection left for the broker: raise " +
		"max_connections, or end sessions"}
	denied = hosted.Class{Kind: target.Rights, Remedy: "the broker's login, or a keeper of its roles (lsk…), lacks a right: " +
		"give it what docs/postgres.md says. Where the service lets only some roles set passwords, as by " +
		"rds.restrict_password_commands, grant rds_password to the keepers"}
	old = hosted.Class{Kind: target.Rights, Remedy: "it is older than PostgreSQL 16, the oldest version that the broker " +
		"supports: upgrade it"}
	// held is for a thing that cannot be dropped because something still depends on it.
	held = hosted.Class{Kind: target.Held, Remedy: "something in another database depends on what the broker has to remove: " +
		"revoke CONNECT on all databases from PUBLIC, and drop it there"}
	// shut is for a database that accepts no connections.
	shut = hosted.Class{Kind: target.Held, Remedy: "a database that the broker has to enter takes no connections: allow " +
		"them (ALTER DATABASE … ALLOW_CONNECTIONS true), or drop it"}
	noLocks = hosted.Class{Kind: target.Full, Remedy: "its lock table, which all sessions share, is full: one session holds " +
		"most of the locks. End that session (SELECT pid, count(*) FROM pg_locks GROUP BY 1 ORDER BY 2 DESC; where nobody " +
		"can connect any more, by kill on its machine), and raise max_locks_per_transaction"}
)

// classes maps PostgreSQL's error codes to their classes. A key of two or three letters stands for all codes
// that begin with it.
var classes = map[string]hosted.Class{
	"23505": hosted.Busy,     // unique_violation, of a catalog
	"42710": hosted.Busy,     // duplicate_object: it was just made
	"42P04": hosted.Busy,     // duplicate_database
	"42P06": hosted.Busy,     // duplicate_schema
	"42P07": hosted.Busy,     // duplicate_table
	"42704": hosted.Busy,     // undefined_object: it was just dropped
	"3D000": hosted.Busy,     // invalid_catalog_name: a database that was just dropped
	"40001": hosted.Busy,     // serialization_failure
	"40P01": hosted.Busy,     // deadlock_detected
	"55000": shut,            // object_not_in_prerequisite_state: it is retained, or its deletion was cut off
	"55006": hosted.Locked,   // object_in_use
	"55P03": hosted.Locked,   // lock_not_available
	"57014": hosted.Locked,   // query_canceled, by statement_timeout
	"53300": crowded,         // too_many_connections
	"53":    hosted.Full,     // insufficient resources: disk_full among them
	"25006": hosted.ReadOnly, // read_only_sql_transaction
	"57P":   hosted.Starting, // shutdown, crash, cannot connect now
	"08":    hosted.Away,     // connection exceptions
	"28":    hosted.Login,    // invalid authorization
	"42501": denied,          // insufficient_privilege
	"2BP01": held,            // dependent_objects_still_exist
}

// locksSetting appears in the server's hint in every language.
const locksSetting = "max_locks_per_transaction"

// classOf returns the class of an error from PostgreSQL.
func classOf(err error) hosted.Class {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return ofNoServer(err)
	}
	if strings.Contains(e.Hint, locksSetting) { // running out of memory has the same code
		return noLocks
	}
	for _, length := range []int{5, 3, 2} {
		if class, known := classes[e.Code[:min(length, len(e.Code))]]; known {
			return class
		}
	}
	// These errors have no code of their own: "tuple concurrently updated", "role … was concurrently
	// dropped".
	if e.Code == "XX000" && strings.Contains(e.Message, "concurrently") {
		return hosted.Busy
	}
	return hosted.Other
}

// coded reports whether a server answered with one of these codes.
func coded(err error, codes ...string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, e.Code)
}

// ofNoServer returns the class of an error that is not a server's answer.
func ofNoServer(err error) hosted.Class {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	switch {
	case errors.Is(err, errOld):
		return old
	case connecting && hosted.OnTheWay(err) == hosted.Other:
		return hosted.Away
	}
	return hosted.Other
}
