package pgserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/provider/postgres/scram"
)

// A Login is the broker's on a server, with a database of its own to work in.
type Login struct {
	User, Database string
}

// Grant makes the login what the broker needs, whatever there is of it: no
// superuser, and nobody else may enter its database. The password is never part of
// a statement. These are the statements that docs/postgres.md gives.
func (l Login) Grant(
	ctx context.Context, connect func(ctx context.Context, database string) (*pgx.Conn, error), password string,
) error {
	verifier, err := scram.Verifier(password)
	if err != nil {
		return err
	}
	user, database := pgx.Identifier{l.User}.Sanitize(), pgx.Identifier{l.Database}.Sanitize()
	conn, err := connect(ctx, "")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, s := range []struct {
		unless, name, then string // no value, or what there is by that name
	}{
		{"SELECT FROM pg_roles WHERE rolname = $1", l.User, "CREATE ROLE " + user},
		{"", "", "ALTER ROLE " + user + " LOGIN CREATEROLE CREATEDB PASSWORD '" + verifier + "'"},
		{"", "", "GRANT pg_signal_backend TO " + user},
		{"", "", "REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC"},
		{"SELECT FROM pg_database WHERE datname = $1", l.Database, "CREATE DATABASE " + database + " TEMPLATE template0 " +
			"ENCODING 'UTF8'"},
		{"", "", "REVOKE ALL ON DATABASE " + database + " FROM PUBLIC"},
		{"", "", "GRANT CONNECT, CREATE, TEMPORARY ON DATABASE " + database + " TO " + user},
	} {
		if s.unless != "" {
			err := conn.QueryRow(ctx, s.unless, s.name).Scan()
			if err == nil {
				continue
			}
			if !errors.Is(err, pgx.ErrNoRows) {
				return fmt.Errorf("looking for %q: %w", s.name, err)
			}
		}
		if _, err := conn.Exec(ctx, s.then); err != nil {
			return fmt.Errorf("preparing the broker's login: %w", err)
		}
	}
	return nil
}
