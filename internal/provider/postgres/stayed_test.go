package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// A login that only reads, and that is released or made while its instance is in
// quarantine, opens nothing before the instance is released too.
func TestReadersStayOutOfAnInstanceInQuarantine(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access(), nil)
		d.provision()
		old := d.bind("old", `{"role":"read_only"}`)
		instance := provider.Holding{Tags: provider.TagsOf(d.in), Target: d.in.Target, Epoch: d.in.Epoch}
		login := instance
		login.Tags = provider.BindingTagsOf(d.binding("old", ""))
		put := func(h provider.Holding, act func(context.Context, provider.Holding) error) {
			t.Helper()
			d.must(func(ctx context.Context) (provider.Status, error) { return provider.Status{Done: true}, act(ctx, h) })
		}
		put(login, d.p.Quarantine)
		put(instance, d.p.Quarantine)
		put(login, d.p.Release)
		made := d.bind("new", `{"role":"read_only"}`)
		if _, err := connect(t, old); err == nil {
			t.Error("one that was released opens an instance in quarantine")
		}
		if _, err := connect(t, made); err == nil {
			t.Error("one that was made opens an instance in quarantine")
		}
		put(instance, d.p.Release)
		for _, g := range []*provider.Grant{old, made} {
			if _, err := connect(t, g); err != nil {
				t.Errorf("all is released: %v", err)
			}
		}
	})
}

// A session of a binding that was left delays no deletion of its instance.
func TestSessionsThatWereLeftDelayNoDeletion(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access(), nil)
		d.provision()
		c := d.as("left")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for {
			st, err := d.p.Deprovision(ctx, d.in)
			if err == nil && st.Done {
				break
			}
			t.Logf("%+v %v", st, err)
			if waiting.For(ctx, 100*time.Millisecond) != nil {
				t.Fatal("the deletion does not end")
			}
		}
		if _, err := c.Exec(t.Context(), "SELECT 1"); err == nil {
			t.Error("the session goes on")
		}
		d.unbind("left")
	})
}

// A tenant's code that runs in a restore blocks no deletion, even if it locks the role of the copy by an
// uncommitted change of the password.
func TestATenantHoldsUpNoEndOfACopy(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "17")
	d, _ := copying(t, s)
	c := d.as("b1")
	d.exec(c, `CREATE FUNCTION held(int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
IF session_user::text LIKE 'lscw%' THEN
  SET ROLE NONE;
  EXECUTE format('ALTER ROLE %I PASSWORD %L', session_user, 'known');
  PERFORM pg_sleep(600);
END IF;
RETURN true; END $$`, `CREATE TABLE t (a int CHECK (public.held(a)))`, `INSERT INTO t VALUES (1)`)
	o := d.restored("copy")
	sleeps := func(provider.Status) bool {
		return len(texts(t, s, "postgres", `SELECT query FROM pg_stat_activity
WHERE usename LIKE 'lscw%' AND wait_event = 'PgSleep' AND datname = $1`, o.database())) > 0
	}
	if f := o.restore(sleeps); f != nil {
		t.Fatal(f.Message)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		st, err := o.p.Deprovision(ctx, o.in)
		if err == nil && st.Done {
			break
		}
		t.Logf("%+v %v", st, err)
		if waiting.For(ctx, 200*time.Millisecond) != nil {
			t.Fatal("the deletion does not end")
		}
	}
	if left := copyRoles(t, s, o); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
