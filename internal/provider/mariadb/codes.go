package mariadb

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore/longshore/internal/base/provider"
)

// A meaning is what an error of the server asks for.
type meaning int

const (
	meansUnknown meaning = iota
	// meansBusy: others work on the same; look again.
	meansBusy
	// meansLocked: somebody else holds a lock.
	meansLocked
	// meansGone: the server cannot be reached, or ended the connection.
	meansGone
	meansRefused
	meansNoRight
	meansNoDatabase
	meansReadOnly
	meansFull
	meansUnopened // it cannot open a file
	meansUndone   // more transactions are open than it can have
	meansCrowded
	meansBlocked
	meansUntrusted // its certificate is not one to be trusted
)

// meanings are the server's numbers.
var meanings = map[uint16]meaning{
	1007: meansBusy, // the database exists
	1008: meansBusy, // it does not
	1062: meansBusy, // there is such a row
	1094: meansBusy, // no such connection
	1141: meansBusy, // no such grant
	1396: meansBusy, // the account is there, or is not
	1539: meansBusy, // no such event
	4162: meansBusy, // the operation was aborted

	1205:        meansLocked,
	1213:        meansLocked, // a deadlock
	tookTooLong: meansLocked,

	1053: meansGone, // the server shuts down
	1077: meansGone,
	1152: meansGone,
	1158: meansGone, // to 1161: the network
	1159: meansGone,
	1160: meansGone,
	1161: meansGone,
	1317: meansGone, // interrupted
	1927: meansGone, // killed
	2002: meansGone,
	2006: meansGone,
	2013: meansGone,

	1045: meansRefused,
	1698: meansRefused,
	1820: meansRefused, // the password has expired
	1862: meansRefused,
	4151: meansRefused, // the account is locked
	3159: meansRefused, // TLS is asked for

	1044: meansNoRight,
	1095: meansNoRight,
	1142: meansNoRight,
	1143: meansNoRight,
	1227: meansNoRight,
	1370: meansNoRight,
	1410: meansNoRight,

	1049: meansNoDatabase,

	1036: meansReadOnly,
	1290: meansReadOnly,
	1792: meansReadOnly,
	1836: meansReadOnly,

	3:    meansFull, // a file cannot be written
	5:    meansFull, // memory
	20:   meansFull,
	1021: meansFull,
	1026: meansFull,
	1030: meansFull, // the storage engine
	1037: meansFull, // memory
	1038: meansFull, // memory, to sort in
	1041: meansFull, // memory
	1114: meansFull,
	1206: meansFull, // the memory that locks may have

	23:      meansUnopened,
	1016:    meansUnopened,
	1018:    meansUnopened, // a folder
	noTable: meansUnopened,

	1637: meansUndone,

	1040: meansCrowded,
	1135: meansCrowded,
	1203: meansCrowded,
	1226: meansCrowded,

	1129: meansBlocked,
	1130: meansBlocked,
}

// meaningOf finds what an error asks for.
func meaningOf(err error) meaning {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return meanings[e.Number]
	}
	switch {
	case errors.Is(err, errBusy), errors.Is(err, errChanged):
		return meansBusy
	case errors.Is(err, errUnopened):
		return meansUnopened
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF):
		return meansGone
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return meansUntrusted
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return meansGone
	}
	return meansUnknown
}

// troubles are what a person has to end, and what to do.
var troubles = map[meaning]struct{ kind, remedy string }{
	meansGone: {provider.TroubleUnreachable, "the server does not answer, or has ended the connection: see that it runs and can be " +
		"reached"},
	meansRefused:    {provider.TroubleLogin, "the server refuses the broker's login: see that the settings have its password of today"},
	meansNoRight:    {provider.TroubleRights, "the broker's login lacks a right: give it those that the guide lists (docs/mariadb.md)"},
	meansNoDatabase: {provider.TroubleRights, "the broker's own database is missing: make it as the guide says (docs/mariadb.md)"},
	meansReadOnly:   {provider.TroubleReadOnly, "the server takes no changes: name the one that does, or make it writable"},
	meansFull:       {provider.TroubleFull, "the server has no room left: give it disk or memory"},
	meansUnopened: {provider.TroubleFull, "the server cannot open a table. Either it has no file left: SHOW FULL PROCESSLIST tells whose " +
		"sessions lock tables, KILL ends one, FLUSH TABLES closes what nobody uses, and open_files_limit is to be raised. Or somebody " +
		"has removed the broker's own tables"},
	meansUndone: {provider.TroubleFull, "more transactions are open on the server than it can have: XA RECOVER lists those that are " +
		"prepared and have no session, and XA ROLLBACK ends one"},
	meansCrowded: {provider.TroubleConnections, "the server takes no more connections: SHOW FULL PROCESSLIST tells whose they are, and " +
		"KILL ends one. Raise max_connections, or the limit of the broker's login; extra_port keeps a way in for you"},
	meansBlocked:   {provider.TroubleConnections, "the server takes no connections from the broker's host: allow it, or run FLUSH HOSTS"},
	meansUntrusted: {provider.TroubleCertificate, "its certificate is not to be trusted: give the CA that signed it in the settings"},
}

// tookTooLong: a statement was ended for its time.
const tookTooLong = 1969

// syntaxError repeats a part of the statement, which may hold a password's hash.
const syntaxError = 1064

// lacksColumn: the broker's own tables are not of this version.
const lacksColumn = 1054

// explain says of an error what an operator does about it. It repeats no statement.
func explain(target string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &provider.Trouble{Kind: provider.TroubleSilent, Target: target, Err: err,
			Message: "the server does not answer in time: it hangs, has more to do than it can, or has no file left for another " +
				"connection (open_files_limit)"}
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == syntaxError {
		return fmt.Errorf("target %q: the server does not understand a statement (error %d): see that it is a MariaDB of a version "+
			"that the guide lists", target, e.Number)
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == lacksColumn {
		return fmt.Errorf("target %q: the broker's own database is of a version before the first release, which this program does not "+
			"read: give the broker a new one", target)
	}
	if t, ok := troubles[meaningOf(err)]; ok {
		return &provider.Trouble{Kind: t.kind, Target: target, Message: t.remedy, Err: err}
	}
	return err
}
