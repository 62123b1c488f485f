package postgres_test

import (
	"context"
	"errors"
	commands "os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/pgserver/pgtest"
	"github.com/longshore/longshore/internal/provider"
)

// asSuperuser runs a statement in a database, and reads the one value that it gives, if any.
func asSuperuser(t *testing.T, s *pgtest.Server, database, statement string, into ...any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.Superuser(database))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if len(into) > 0 {
		err = c.QueryRow(t.Context(), statement).Scan(into...)
	} else {
		_, err = c.Exec(t.Context(), statement)
	}
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
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

// troubled requires that a step meets a trouble of the kind.
func troubled(t *testing.T, what, kind string, err error) {
	t.Helper()
	trouble, ok := errors.AsType[*provider.Trouble](err)
	if !ok || trouble.Kind != kind || trouble.Message == "" {
		t.Errorf("%s: %v, want the trouble %q", what, err, kind)
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
	raisable(t, s, access.Database)
	d.unbind("removed")
	if _, err := connect(t, removed); err == nil {
		t.Fatal("a login survives its unbind")
	}
	known := d.in.Epoch
	restore()
	if _, err := connect(t, removed); err != nil {
		t.Fatalf("the restored server lacks the login, so that nothing is shown: %v", err)
	}
	for what, step := range map[string]func() error{
		"Provision":   func() error { _, err := d.p.Provision(t.Context(), d.in); return err },
		"Update":      func() error { _, err := d.p.Update(t.Context(), d.in); return err },
		"Deprovision": func() error { _, err := d.p.Deprovision(t.Context(), d.in); return err },
		"Bind":        func() error { _, err := d.p.Bind(t.Context(), d.binding("next", "")); return err },
		"Unbind":      func() error { _, err := d.p.Unbind(t.Context(), d.binding("kept", "")); return err },
	} {
		troubled(t, what, provider.TroubleRestored, step())
	}
	target, now, err := d.p.Survey(t.Context(), "default")
	if err != nil || target != d.in.Target || now.Follows(known) {
		t.Fatalf("it says that it is %v, at %v: %v", target, now, err)
	}
	if _, err := d.p.Advance(t.Context(), target, known, known); err == nil {
		t.Error("an epoch goes on from where it is not")
	}
	next, err := d.p.Advance(t.Context(), target, now, known)
	if err != nil || !next.Follows(known) || next.Count <= known.Count {
		t.Errorf("it goes on as %v: %v", next, err)
	}
	page, _, err := d.p.Holdings(t.Context(), "default", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range page {
		if h.Epoch != next {
			t.Errorf("%s is listed at %v, and the server is at %v", h.Name, h.Epoch, next)
		}
		if h.Tags.Binding == "removed" {
			h.Epoch.Count++
			troubled(t, "a quarantine that nobody meant", provider.TroubleRestored, d.p.Quarantine(t.Context(), h))
			h.Epoch = next
			if err := d.p.Quarantine(t.Context(), h); err != nil {
				t.Error(err)
			}
		}
	}
	d.in.Epoch = next
	d.bind("next", "")
	if _, err := connect(t, removed); err == nil {
		t.Error("a login that was locked opens")
	}
	if _, err := connect(t, kept); err != nil {
		t.Errorf("the login of a live binding: %v", err)
	}
}

// raisable has the server's epoch have been raised long ago: the next change raises it
// again.
func raisable(t *testing.T, s *pgtest.Server, database string) {
	t.Helper()
	var schema string
	asSuperuser(t, s, database, "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'lsi%'", &schema)
	asSuperuser(t, s, database, "UPDATE "+schema+".identity SET raised = raised - interval '1 hour'")
}

// The epoch is raised by a change, and not by each.
func TestEpochsAreRaisedNowAndThen(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t, "16")
	access := s.Access()
	d := newDesk(t, access, nil)
	d.provision()
	first := d.in.Epoch
	if len(first.Line) != 8 || first.Count < 1 {
		t.Fatalf("it is at %v", first)
	}
	began := time.Now()
	d.bind("a", "")
	if quick := time.Since(began) < 5*time.Second; quick && d.in.Epoch != first {
		t.Errorf("a second change at once has it be at %v after %v", d.in.Epoch, first)
	}
	raisable(t, s, access.Database)
	at := d.in.Epoch
	d.bind("b", "")
	if want := (provider.Epoch{Line: at.Line, Count: at.Count + 1}); d.in.Epoch != want {
		t.Errorf("it is at %v, want %v", d.in.Epoch, want)
	}
	raisable(t, s, access.Database)
	d.bind("b", "") // which changes nothing
	if d.in.Epoch.Count != at.Count+1 {
		t.Errorf("a step that changes nothing has it be at %v", d.in.Epoch)
	}
}
