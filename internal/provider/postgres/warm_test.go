package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// full has a new binding fill the table of locks: a session of it that holds so many that nobody else gets in.
func (d *desk) full(id string) *pgx.Conn {
	d.t.Helper()
	c := d.as(id)
	exec(d.t, c, "BEGIN")
	for n := 0; ; n++ {
		exec(d.t, c, "SAVEPOINT s")
		if _, err := c.Exec(d.t.Context(), "SELECT pg_advisory_xact_lock($1 * 100 + i) FROM generate_series(1, 100) i", n); err != nil {
			if !strings.Contains(err.Error(), "53200") || n == 0 {
				d.t.Fatal(err)
			}
			exec(d.t, c, "ROLLBACK TO s")
			break
		}
	}
	for n := 0; ; n++ { // those that are left, one by one
		exec(d.t, c, "SAVEPOINT s")
		if _, err := c.Exec(d.t.Context(), "SELECT pg_advisory_xact_lock(-$1::bigint - 1)", n); err != nil {
			break
		}
	}
	exec(d.t, c, "ROLLBACK TO s")
	return c
}

// A binding that has taken all locks of the server is unbound: a connection that was there
// before ends its session, and then there are locks again.
func TestABindingThatHoldsAllLocksIsUnbound(t *testing.T) {
	pgtest.Each(t, crowded, func(t *testing.T, s *pgtest.Server) {
		d := ready(t, s.Access(), pool(2))
		c := d.full("mine")
		_, err := d.p.Bind(t.Context(), d.binding("another", ""))
		trouble, is := errors.AsType[*target.Trouble](err)
		if !is {
			t.Fatalf("a bind meanwhile: %v", err)
		}
		expect.Says(t, "a bind meanwhile", trouble.Message, "max_locks_per_transaction", fmt.Sprintf("process %d has", c.PgConn().PID()))
		d.unbound("mine", operation.Unbind)
		ended(t, "the unbind", c)
		d.bind("another", "")
	})
}

// Where no connection is kept, as in a function, the trouble names the cause.
func TestTheTroubleWithLocksNamesItsCause(t *testing.T) {
	t.Parallel()
	d := ready(t, crowded(t, "17").Access())
	d.full("mine")
	for verb, step := range map[string]providertest.Step{
		"Unbind": d.unbinding("mine", operation.Unbind), "Deprovision": calling(d.p.Deprovision, &d.in),
	} {
		_, err := step(t.Context())
		trouble, is := errors.AsType[*target.Trouble](err)
		if !is {
			t.Fatalf("%s: %v", verb, err)
		}
		expect.Says(t, verb, trouble.Message, "max_locks_per_transaction", "pg_locks")
	}
}
