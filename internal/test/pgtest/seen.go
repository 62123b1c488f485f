package pgtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Login connects by a URI, until the test ends, and gives the code of a refusal.
func Login(t *testing.T, uri string) (conn *pgx.Conn, code string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, uri)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return nil, refused.Code
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn, ""
}

// Made counts the databases that the broker of a login has made, and the roles that its
// keepers have.
func (s *Server) Made(login string) (databases, roles int) {
	s.t.Helper()
	err := s.Connect("").QueryRow(s.t.Context(), `SELECT
		(SELECT count(*) FROM pg_database JOIN pg_roles r ON datdba = r.oid WHERE rolname = $1),
		(SELECT count(*) FROM pg_auth_members m JOIN pg_auth_members k ON k.roleid = m.member
			JOIN pg_roles r ON k.member = r.oid WHERE r.rolname = $1)`, login).Scan(&databases, &roles)
	if err != nil {
		s.t.Fatal(err)
	}
	return databases, roles
}
