package postgres_test

import (
	"context"
	"errors"
	commands "os/exec"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/test/pgtest"
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
	trouble, ok := errors.AsType[*target.Trouble](err)
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
	for what, step := range map[string]func() error{
		"Provision":   func() error { _, err := d.p.Provision(t.Context(), d.in); return err },
		"Update":      func() error { _, err := d.p.Update(t.Context(), d.in); return err },
		"Deprovision": func() error { _, err := d.p.Deprovision(t.Context(), d.in); return err },
		"Bind":        func() error { _, err := d.p.Bind(t.Context(), d.binding("next", "")); return err },
		"Unbind":      func() error { _, err := d.p.Unbind(t.Context(), d.binding("kept", "")); return err },
	} {
		troubled(t, what, target.Restored, step())
	}
	server, now, err := d.p.Survey(t.Context(), "default")
	if err != nil || server != d.in.Target || now.Follows(known) {
		t.Fatalf("it says that it is %v, at %v: %v", server, now, err)
	}
	next := target.Epoch{Line: now.Line, Count: known.Count + 1, Mark: "next"}
	if at, err := d.p.Advance(t.Context(), server, known, next); err != nil || at != now {
		t.Errorf("it goes on from where it is not, as %v: %v", at, err)
	}
	if at, err := d.p.Advance(t.Context(), server, now, next); err != nil || at != next {
		t.Errorf("it goes on as %v: %v", at, err)
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
			troubled(t, "a quarantine that nobody meant", target.Restored, d.p.Quarantine(t.Context(), h))
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

// raise has the server be at a later epoch, as the worker does after a step.
func (d *desk) raise() {
	d.t.Helper()
	server, now, err := d.p.Survey(d.t.Context(), "default")
	if err != nil {
		d.t.Fatal(err)
	}
	next := target.Epoch{Line: now.Line, Count: now.Count + 1, Mark: now.Mark + "+"}
	if d.in.Epoch, err = d.p.Advance(d.t.Context(), server, now, next); err != nil || d.in.Epoch != next || len(next.Line) != 8 {
		d.t.Fatalf("it is raised to %v, want %v: %v", d.in.Epoch, next, err)
	}
}
