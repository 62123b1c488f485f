package postgres_test

import (
	"context"
	"errors"
	commands "os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// retainDesk is a desk whose plan retains what is deleted for a week, and an instance of it with a table in which is one.
func retainDesk(t *testing.T, s *pgtest.Server) *desk {
	t.Helper()
	d := newDesk(t, s.Access())
	d.in.Snapshot = expect.Get(postgres.Check(check.Plan{Settings: map[string]any{"retain_days": 7}}))(t)
	d.provision()
	exec(t, d.as("b1"), "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
	return d
}

// holding is the instance as an inventory has it.
func (d *desk) holding() provider.Holding {
	return provider.Holding{Tags: provider.TagsOf(d.in), Target: d.in.Target, Epoch: d.in.Epoch}
}

// retain deletes the instance as the worker does, and gives what is retained of it.
func (d *desk) retain() provider.Holding {
	d.t.Helper()
	h := d.holding()
	h.RetainedUntil = d.clock.Now().Add(week)
	for range 2 {
		d.put(d.p.Quarantine, h)
	}
	for _, listed := range d.held() {
		if listed.Tags == h.Tags && listed.RetainedUntil.Equal(h.RetainedUntil) {
			return h
		}
	}
	d.t.Fatalf("retained, it lists %+v", d.held())
	panic("unreachable")
}

const week = 7 * 24 * time.Hour

// put drives what an inventory does with a thing.
func (d *desk) put(act func(context.Context, provider.Holding) error, h provider.Holding) {
	d.t.Helper()
	d.must(func(ctx context.Context) (provider.Status, error) { return provider.Status{Done: true}, act(ctx, h) })
}

// heir is the desk of an instance that is to have what is retained, which it takes over so many times.
func (d *desk) heir(h provider.Holding, id, operation string, times int) *desk {
	d.t.Helper()
	o := d.life(id, operation)
	o.in.Origin = d.in.Origin
	if d.in.Origin == (provider.Origin{}) {
		o.in.Origin = provider.Origin{Instance: d.in.ID, Incarnation: d.in.Incarnation}
	}
	h.Tags = provider.TagsOf(o.in)
	for range times {
		o.put(func(ctx context.Context, h provider.Holding) error { return o.p.Adopt(ctx, h, provider.TagsOf(d.in)) }, h)
	}
	for range times {
		o.put(o.p.Release, h)
	}
	return o
}

// undelete is the desk of an instance that has what is retained.
func (d *desk) undelete(h provider.Holding, id, operation string) *desk {
	d.t.Helper()
	o := d.heir(h, id, operation, 2)
	o.provision()
	return o
}

// holds requires that the grant opens, and finds so many rows.
func holds(t *testing.T, g *provider.Grant, want int) {
	t.Helper()
	c := login(t, g)
	gives(t, c, "rows", want, "SELECT count(*) FROM t")
	exec(t, c, "INSERT INTO t VALUES (2)", "ALTER TABLE t ALTER a SET NOT NULL") // as its owner
}

// If the operator drops a retained database, an instance that is to have it back fails, makes nothing in its place,
// and can be deleted.
func TestRetainedDatabaseIsDropped(t *testing.T) {
	t.Parallel()
	d := newDesk(t, fakeAccess)
	f := postgres.NewFake("one", d.clock.Now)
	d.p.Fake(f)
	d.provision()
	h := d.retain()
	f.Drop(d.database())
	back := d.heir(h, "back", "op-2", 1)
	if _, f := back.drive(calling(back.p.Provision, &back.in)); f == nil {
		t.Error("what is gone is given back")
	}
	back.deprovision()
	d.holdsNothing()
}

// A retained instance is closed, and its id is free. Its removal leaves a later instance of the id alone.
func TestDeletedDatabasesAreRetained(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := retainDesk(t, s)
		left := d.bind("left", "")
		session := login(t, left)
		d.unbind("b1")
		d.retain()
		ended(t, "the deletion", session)
		shut(t, "what is retained opens to a binding", left)
		if superuser, err := pgx.Connect(t.Context(), s.Superuser(d.database())); err == nil {
			end(superuser)
			t.Error("what is retained opens to a superuser")
		}
		again := d.life("i", "op-2")
		again.provision()
		late := d.binding("late", "")
		for verb, step := range map[string]providertest.Step{
			"Provision": calling(d.p.Provision, &d.in), "Update": calling(d.p.Update, &d.in), "Bind": calling(d.p.Bind, &late),
		} {
			if _, err := step(t.Context()); !errors.As(err, new(*provider.Failure)) {
				t.Errorf("%s of what is retained: %v, want a failure", verb, err)
			}
		}
		d.unbind("left")
		d.deprovision()
		held := d.held()
		if len(held) != 1 || held[0].Tags.Incarnation != "op-2" {
			t.Fatalf("it lists %+v, want the instance that has the id now", held)
		}
		exec(t, again.as("b2"), "CREATE TABLE t (a int)") // it has none
		again.unbind("b2")
		again.deprovision()
		d.holdsNothing()
	})
}

// A retained database becomes another instance, with all of its content, also twice. Its former users do not get in;
// new readers read what was there, and what is made later.
func TestRetainedDatabasesAreGivenBack(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := retainDesk(t, s)
		d.unbind("b1")
		left, reads := d.bind("left", ""), d.bind("reads", readOnly)
		read := func(d *desk, later string) {
			t.Helper()
			own, reader := d.as("own"), d.reads("reader")
			gives(t, own, "its limit of connections", -1, limitOf, d.database())
			exec(t, own, "CREATE TABLE "+later+" ()")
			exec(t, reader, "SELECT * FROM t", "SELECT * FROM "+later)
			d.unbind("reader", "own")
		}
		again := d.undelete(d.retain(), "new", "op-3")
		shut(t, "given back, it opens to a binding of the deleted instance", left, reads)
		read(again, "later")
		again = again.undelete(again.retain(), "newer", "op-4")
		shut(t, "given back once more, it opens to a binding of the deleted instance", left, reads)
		holds(t, again.bind("b2", ""), 1)
		read(again, "latest")
		again.unbind("b2")
		holds(t, again.bind("b4", ""), 2)
		d.unbind("left", "reads")
		if _, f := d.drive(calling(d.p.Deprovision, &d.in)); f == nil {
			t.Error("a deletion that came late has removed what is another's")
		}
		holds(t, again.bind("b5", ""), 3)
		again.unbind("b4", "b5")
		again.in.Snapshot = nil
		again.deprovision()
		d.holdsNothing()
	})
}

// copied gives a server's folder a copy, and what puts that in its place.
func copied(t *testing.T, s *pgtest.Server) (restore func()) {
	t.Helper()
	do := func(script string) {
		t.Helper()
		s.Stop()
		if said, err := commands.Command("sh", "-ec", script, s.Data(), s.Data()+".kept").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", script, err, said)
		}
		s.Restart()
	}
	do(`cp -a "$0" "$1"`)
	return func() { do(`rm -rf "$0"; cp -a "$1" "$0"`) }
}

// A real server whose folder is put back as it was has the login of a binding that was removed since. Nothing is changed on it
// until each such login is locked.
func TestRestored(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t, "17")
	d := newDesk(t, s.Access())
	b := providertest.NewBench(t, d.p, d.clock, d.in.Broker, "")
	b.Restored(func(g *provider.Grant) bool {
		_, err := connect(t, g)
		return err == nil
	}, func() func() { return copied(t, s) })
	b.Provisioned("another")
	expect.Same(t, "the length of a line", 8, len(b.At().Line))
	expect.Same(t, "what is listed, and where", []target.Epoch{b.At()}, []target.Epoch{b.Held()[0].Epoch})
}
