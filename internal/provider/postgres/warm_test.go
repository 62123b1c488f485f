package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// full has a binding fill the table of locks: a session of it that holds so many that nobody else gets in.
func (r *raid) full(h held) (pid uint32, goesOn func() bool) {
	r.t.Helper()
	c := r.session(h)
	exec(r.t, c, "BEGIN")
	for n := 0; ; n++ {
		exec(r.t, c, "SAVEPOINT s")
		if _, err := c.Exec(r.t.Context(), "SELECT pg_advisory_xact_lock($1 * 100 + i) FROM generate_series(1, 100) i", n); err != nil {
			if !strings.Contains(err.Error(), "53200") || n == 0 {
				r.t.Fatal(err)
			}
			exec(r.t, c, "ROLLBACK TO s")
			break
		}
	}
	for n := 0; ; n++ { // those that are left, one by one
		exec(r.t, c, "SAVEPOINT s")
		if _, err := c.Exec(r.t.Context(), "SELECT pg_advisory_xact_lock(-$1::bigint - 1)", n); err != nil {
			break
		}
	}
	exec(r.t, c, "ROLLBACK TO s")
	return c.PgConn().PID(), func() bool { _, err := c.Exec(r.t.Context(), "SELECT 1"); return err == nil }
}

// A binding that has taken all locks of the server is unbound: a connection that was there
// before ends its session, and then there are locks again.
func TestABindingThatHoldsAllLocksIsUnbound(t *testing.T) {
	t.Parallel()
	for _, version := range pgtest.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := crowded(t, version)
			access := s.Access()
			r := &raid{server: s, access: access, broker: access.User}
			r.desk = newDesk(t, access, func(o *postgres.Options) { o.Pool = 2 })
			r.provision()
			mine := r.take(r.desk, "mine", "")
			pid, goesOn := r.full(mine)
			_, err := r.p.Bind(t.Context(), r.binding("another", ""))
			trouble, is := errors.AsType[*target.Trouble](err)
			if !is || !strings.Contains(trouble.Message, "max_locks_per_transaction") ||
				!strings.Contains(trouble.Message, fmt.Sprintf("process %d has", pid)) {
				t.Fatalf("a bind meanwhile: %v", err)
			}
			r.within(20*time.Second, r.unbinding("mine", operation.Unbind))
			if goesOn() {
				t.Error("its session goes on")
			}
			r.bind("another", "")
		})
	}
}

// Where no connection is kept, as in a function, the trouble names the cause.
func TestTheTroubleWithLocksNamesItsCause(t *testing.T) {
	t.Parallel()
	r := newRaid(t, crowded(t, "17"))
	r.full(r.take(r.desk, "mine", ""))
	for verb, step := range map[string]func(context.Context) (provider.Status, error){
		"Unbind":      r.unbinding("mine", operation.Unbind),
		"Deprovision": func(ctx context.Context) (provider.Status, error) { return r.p.Deprovision(ctx, r.in) },
	} {
		_, err := step(t.Context())
		trouble, is := errors.AsType[*target.Trouble](err)
		if !is || !strings.Contains(trouble.Message, "max_locks_per_transaction") || !strings.Contains(trouble.Message, "pg_locks") {
			t.Errorf("%s: %v", verb, err)
		}
	}
}
