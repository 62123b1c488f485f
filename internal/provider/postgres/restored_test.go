package postgres_test

import (
	"context"
	commands "os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// asSuperuser runs a statement in a database, and reads the one value that it gives, if any.
func asSuperuser(t *testing.T, s *pgtest.Server, database, statement string, into ...any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.Superuser(database))
	expect.OK(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	if len(into) > 0 {
		err = c.QueryRow(t.Context(), statement).Scan(into...)
	} else {
		_, err = c.Exec(t.Context(), statement)
	}
	expect.OK(t, err, statement)
}

// copied gives a server's folder a copy, and what puts that in its place.
func copied(t *testing.T, s *pgtest.Server) (restore func()) {
	t.Helper()
	var data string
	asSuperuser(t, s, "postgres", "SHOW data_directory", &data)
	kept := data + ".kept"
	do := func(program string, args ...string) {
		t.Helper()
		if said, err := commands.Command(program, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", program, err, said)
		}
	}
	s.Stop()
	do("cp", "-a", data, kept)
	s.Restart()
	return func() {
		t.Helper()
		s.Stop()
		do("rm", "-rf", data)
		do("cp", "-a", kept, data)
		s.Restart()
	}
}

// A real server whose folder is put back as it was has the login of a binding that was
// removed since. Nothing is changed on it until each such login is locked.
func TestRestored(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t, "17")
	access := s.Access()
	d := newDesk(t, access, nil)
	d.provision()
	removed := d.bind("removed", "")
	kept := d.bind("kept", "")
	restore := copied(t, s)
	d.unbind("removed")
	d.raise()
	if _, err := connect(t, removed); err == nil {
		t.Fatal("a login survives its unbind")
	}
	known := d.in.Epoch
	restore()
	if _, err := connect(t, removed); err != nil {
		t.Fatalf("the restored server lacks the login, so that nothing is shown: %v", err)
	}
	providertest.RefusesAll(t, d.p, d.in, d.binding("next", ""), d.binding("kept", ""))
	next := providertest.GoesOn(t, d.p, d.in.Target, known)
	page, _, err := d.p.Holdings(t.Context(), "default", "")
	expect.OK(t, err)
	for _, h := range page {
		if h.Epoch != next {
			t.Errorf("%s is listed at %v, and the server is at %v", h.Name, h.Epoch, next)
		}
		if h.Tags.Binding == "removed" {
			h.Epoch.Count++
			providertest.Troubled(t, "a quarantine that nobody meant", target.Restored, d.p.Quarantine(t.Context(), h))
			h.Epoch = next
			if err := d.p.Quarantine(t.Context(), h); err != nil {
				t.Error(err)
			}
		}
	}
	d.in.Epoch = next
	d.bind("next", "")
	shut(t, "a login that was locked opens", removed)
	if _, err := connect(t, kept); err != nil {
		t.Errorf("the login of a live binding: %v", err)
	}
}

// raise has the server be at a later epoch, as the worker does after a step.
func (d *desk) raise() {
	d.t.Helper()
	d.in.Epoch = providertest.Raise(d.t, d.p, d.in.Target)
	if len(d.in.Epoch.Line) != 8 {
		d.t.Fatalf("it is raised to %v", d.in.Epoch)
	}
}

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
		shut(t, "one that was released opens an instance in quarantine", old)
		shut(t, "one that was made opens an instance in quarantine", made)
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
	o.mustRestore(sleeps)
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
