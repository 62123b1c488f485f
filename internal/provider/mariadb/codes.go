package mariadb

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// Classes for MariaDB alone, where operators need other words.
var (
	noRight = hosted.Class{Kind: target.Rights, Remedy: "it lacks a right: give the broker's login those that the " +
		"guide lists (docs/mariadb.md)"}
	noSchema = hosted.Class{Kind: target.Rights, Remedy: "the broker's own database is missing: make it as the guide " +
		"says (docs/mariadb.md)"}
	// unopened is for a server that cannot open a file.
	unopened = hosted.Class{Kind: target.Full, Remedy: "the server cannot open a table. Either it has no file left: SHOW FULL " +
		"PROCESSLIST tells whose sessions lock tables, KILL ends one, FLUSH TABLES closes unused tables; then raise " +
		"open_files_limit. Or somebody has removed the broker's own tables"}
	// undone is for a server that has as many open transactions as it can have.
	undone = hosted.Class{Kind: target.Full, Remedy: "the server has as many open transactions as it can: XA RECOVER " +
		"lists those that are prepared and have no session, and XA ROLLBACK ends one"}
	crowded = hosted.Class{Kind: target.Connections, Remedy: "the server takes no more connections: SHOW FULL PROCESSLIST " +
		"shows whose they are, and KILL ends one. Raise max_connections, or the limit of the broker's login; extra_port " +
		"keeps a way in for you"}
	blocked = hosted.Class{Kind: target.Connections, Remedy: "the server takes no connections from the broker's " +
		"host: allow it, or run FLUSH HOSTS"}
)

// classes have the server's error numbers, each in one class.
var classes = map[hosted.Class][]uint16{
	// A database or an account exists already, or does not exist; there is no such row, connection, grant or
	// event; the operation was aborted.
	hosted.Busy: {1007, 1008, 1062, 1094, 1141, 1396, 1539, 4162},
	// 1213 is a deadlock.
	hosted.Locked: {1205, 1213, tooLong},
	// The server shuts down, the network failed (up to 1161), or somebody has ended the session.
	hosted.Away: {1053, 1077, 1152, 1158, 1159, 1160, 1161, 1317, 1927, 2002, 2006, 2013},
	// A password that is wrong or has expired; a locked account; a server that demands TLS.
	hosted.Login:    {1045, 1698, 1820, 1862, 4151, 3159},
	noRight:         {1044, 1095, 1142, 1143, 1227, 1370, 1410},
	noSchema:        {1049},
	hosted.ReadOnly: {1036, 1290, 1792, 1836},
	// No room on disk, in a table or in the storage engine (3, 20, 1021, 1026, 1030, 1114), or in memory, for
	// rows, sorting and locks.
	hosted.Full: {3, 5, 20, 1021, 1026, 1030, 1037, 1038, 1041, 1114, 1206},
	// A file, a folder or a table cannot be opened.
	unopened: {23, 1016, 1018, noTable},
	undone:   {1637},
	crowded:  {1040, 1135, 1203, 1226},
	blocked:  {1129, 1130},
}

// classOf returns the class of an error from MariaDB.
func classOf(err error) hosted.Class {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		for class, numbers := range classes {
			if slices.Contains(numbers, e.Number) {
				return class
			}
		}
		return hosted.Other
	}
	switch {
	case errors.Is(err, errUnopened):
		return unopened
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn):
		return hosted.Away
	}
	return hosted.Other
}

const (
	noTable = 1146
	tooLong = 1969
	// syntaxError is an error whose text repeats a part of the statement, which may hold a password's hash.
	syntaxError = 1064
	// lacksColumn means that the broker's own tables are not of this version.
	lacksColumn = 1054
)

var (
	// errNoTable is the server's answer that a table does not exist.
	errNoTable = &mysql.MySQLError{Number: noTable}
	// errTooLong is the server's answer to a statement that it has ended because it ran too long.
	errTooLong = &mysql.MySQLError{Number: tooLong}
)

// told returns the error without the statement in it.
func told(err error) error {
	switch e, _ := errors.AsType[*mysql.MySQLError](err); {
	case e == nil:
		return err
	case e.Number == syntaxError:
		return fmt.Errorf("the server does not understand a statement (error %d): see that it is a MariaDB of a version that "+
			"the guide lists",
			e.Number)
	case e.Number == lacksColumn:
		return errors.New("the broker's own database was written by a version before the first release, which this program " +
			"does not read: give the broker a new one")
	}
	return err
}
