package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/provider"
)

// A sense is what an error of the server is to the provider. All are passing: what
// must not be done is decided by what stands, never by an error.
type sense int

// The senses.
const (
	meansOther     sense = iota
	meansBusy            // another caller is at the same thing: look again at once
	meansLocked          // somebody's lock is in the way
	meansFull            // no connection is left, of the server or of a database
	meansAway            // no server answers
	meansUntrusted       // its certificate is not one to be trusted
	meansStarting        // it is starting or stopping
	meansReadOnly        // it takes no writes: it is a standby
	meansNoRoom          // its disk, or its memory, is full
	meansLogin           // it refuses the broker's login
	meansDenied          // the broker's login lacks a right
	meansHeld            // something still hangs on what was to be dropped
	meansOld             // it is of a version that the broker cannot work with
	meansCancelled       // the step's time is over
	meansShut            // a database takes no connections
	meansNoLocks         // the table of locks, which all sessions share, is full
)

// senses are PostgreSQL's codes by what they mean here; those of two letters are
// whole classes.
var senses = map[string]sense{
	"23505": meansBusy,     // unique_violation, of a catalog
	"42710": meansBusy,     // duplicate_object: it was just made
	"42P04": meansBusy,     // duplicate_database
	"42P06": meansBusy,     // duplicate_schema
	"42P07": meansBusy,     // duplicate_table
	"42704": meansBusy,     // undefined_object: it was just dropped
	"3D000": meansBusy,     // invalid_catalog_name: a database that was just dropped
	"40001": meansBusy,     // serialization_failure
	"40P01": meansBusy,     // deadlock_detected
	"55000": meansShut,     // object_not_in_prerequisite_state: it is retained, or its deletion was cut off
	"55006": meansLocked,   // object_in_use
	"55P03": meansLocked,   // lock_not_available
	"57014": meansLocked,   // query_canceled, by statement_timeout
	"53300": meansFull,     // too_many_connections
	"53":    meansNoRoom,   // insufficient resources: disk_full among them
	"25006": meansReadOnly, // read_only_sql_transaction
	"57P":   meansStarting, // shutdown, crash, cannot connect now
	"08":    meansAway,     // connection exceptions
	"28":    meansLogin,    // invalid authorization
	"42501": meansDenied,   // insufficient_privilege
	"2BP01": meansHeld,     // dependent_objects_still_exist
}

// locksSetting is what the server's hint names, in whatever language it speaks.
const locksSetting = "max_locks_per_transaction"

// meaningOf reads an error.
func meaningOf(err error) sense {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if strings.Contains(e.Hint, locksSetting) { // of the code that a lack of memory has too
			return meansNoLocks
		}
		for _, length := range []int{5, 3, 2} {
			if s, known := senses[e.Code[:min(length, len(e.Code))]]; known {
				return s
			}
		}
		// elog without a code of its own: "tuple concurrently updated", "role … was
		// concurrently dropped".
		if e.Code == "XX000" && strings.Contains(e.Message, "concurrently") {
			return meansBusy
		}
		return meansOther
	}
	switch {
	case errors.Is(err, errChanged):
		return meansBusy
	case errors.Is(err, errOld):
		return meansOld
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return meansCancelled
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return meansUntrusted
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return meansCancelled
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return meansAway
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return meansAway
	}
	return meansOther
}

// troubles are what a person has to end, and what to do.
var troubles = map[sense]struct{ kind, remedy string }{
	meansFull:     {provider.TroubleConnections, "it has no connection left for the broker: raise max_connections, or end sessions"},
	meansAway:     {provider.TroubleUnreachable, "nobody answers at its address: start it, or mend the way to it"},
	meansStarting: {provider.TroubleStarting, "it starts or stops: look at its log if that lasts"},
	meansReadOnly: {provider.TroubleReadOnly, "it takes no changes: it is a standby, or was made read-only. Have the settings lead " +
		"to the primary"},
	meansNoRoom: {provider.TroubleFull, "its disk or its memory is full: give it more, and look at what fills it"},
	meansLogin:  {provider.TroubleLogin, "it refuses the broker's login: give its name and password anew in the settings"},
	meansDenied: {provider.TroubleRights, "the broker's login, or a keeper of its roles (lsk…), lacks a right: give it what " +
		"docs/postgres.md says. Where the service lets only some roles set passwords, as by rds.restrict_password_commands, " +
		"grant rds_password to the keepers"},
	meansOld:       {provider.TroubleRights, "it is older than PostgreSQL 16, from which on the broker can work: upgrade it"},
	meansUntrusted: {provider.TroubleCertificate, "its certificate is not to be trusted: give the CA that signed it in the settings"},
	meansHeld: {provider.TroubleHeld, "something in another database hangs on what is to be removed: take CONNECT on all databases from " +
		"PUBLIC, and drop it there"},
	meansShut: {provider.TroubleHeld, "a database that has to be entered takes no connections: let it " +
		"(ALTER DATABASE … ALLOW_CONNECTIONS true), or drop it"},
	meansNoLocks: {provider.TroubleFull, "its table of locks is full: one session holds most of them, which all share. End " +
		"that session (SELECT pid, count(*) FROM pg_locks GROUP BY 1 ORDER BY 2 DESC; where nobody can connect any more, by kill on its " +
		"machine), and raise max_locks_per_transaction"},
	meansCancelled: {provider.TroubleSilent, "it does not answer in time: it hangs, or has more to do than it can"},
}

// explain tells of an error what an operator can do.
func explain(target string, err error) error {
	if t, ok := troubles[meaningOf(err)]; ok && err != nil {
		return &provider.Trouble{Kind: t.kind, Target: target, Message: t.remedy, Err: err}
	}
	return err
}
