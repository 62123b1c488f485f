package pgserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/scram"
)

// Grant makes the broker's login of an access, and the database that the login works in, even if part of them
// exists already. The login is no superuser, and nobody else may enter its database. The password is never
// part of a statement. These are the statements that docs/postgres.md gives.
func (c Cluster) Grant(ctx context.Context, a hosted.Access) error {
	verifier, err := scram.Verifier(a.Password)
	if err != nil {
		return err
	}
	conn, err := c.Connect(ctx, "")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var login, database bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1),
  EXISTS (SELECT FROM pg_database WHERE datname = $2)`, a.User, a.Database).Scan(&login, &database); err != nil {
		return fmt.Errorf("looking for the broker's login: %w", err)
	}
	var statements []string
	if !login {
		statements = append(statements, "CREATE ROLE {login}")
	}
	statements = append(statements, "ALTER ROLE {login} LOGIN CREATEROLE CREATEDB PASSWORD '{verifier}'",
		"GRANT pg_signal_backend TO {login}", "REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC")
	if !database {
		statements = append(statements, "CREATE DATABASE {database} TEMPLATE template0 ENCODING 'UTF8'")
	}
	filled := strings.NewReplacer("{login}", pgx.Identifier{a.User}.Sanitize(),
		"{database}", pgx.Identifier{a.Database}.Sanitize(), "{verifier}", verifier)
	for _, s := range append(statements, "REVOKE ALL ON DATABASE {database} FROM PUBLIC",
		"GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {database} TO {login}") {
		if _, err := conn.Exec(ctx, filled.Replace(s)); err != nil {
			return fmt.Errorf("preparing the broker's login: %w", err)
		}
	}
	return nil
}
