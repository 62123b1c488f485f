package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// retainDesk is a desk whose plan retains what is deleted for a week, and an instance of it with a table in which is one.
func retainDesk(t *testing.T, s *pgtest.Server) *desk {
	t.Helper()
	d := newDesk(t, s.Access(), func(o *postgres.Options) { o.Broker = t.Name() })
	snapshot := expect.Get(postgres.Check(check.Plan{Settings: map[string]any{"retain_days": 7}}))(t)
	d.in.Snapshot = snapshot
	d.provision()
	c := expect.Get(connect(t, d.bind("b1", "")))(t)
	exec(t, c, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
	return d
}

// retain deletes the instance as the worker does, and gives what is retained of it.
func (d *desk) retain() provider.Holding {
	d.t.Helper()
	h := provider.Holding{Tags: provider.TagsOf(d.in), Target: d.in.Target, Epoch: d.in.Epoch,
		RetainedUntil: d.clock.Now().Add(week)}
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

// undelete is the desk of an instance that has what is retained.
func (d *desk) undelete(h provider.Holding, id, operation string) *desk {
	d.t.Helper()
	o := d.life(id, operation)
	o.in.Origin = d.in.Origin
	if d.in.Origin == (provider.Origin{}) {
		o.in.Origin = provider.Origin{Instance: d.in.ID, Incarnation: d.in.Incarnation}
	}
	h.Tags = provider.TagsOf(o.in)
	for range 2 {
		o.put(func(ctx context.Context, h provider.Holding) error { return o.p.Adopt(ctx, h, provider.TagsOf(d.in)) }, h)
	}
	for range 2 {
		o.put(o.p.Release, h)
	}
	o.provision()
	return o
}

func (d *desk) held() []provider.Holding {
	d.t.Helper()
	held, _, err := d.p.List(d.t.Context(), "")
	expect.OK(d.t, err)
	return held
}

// holdsNothing requires that the inventory is empty in the end.
func (d *desk) holdsNothing() {
	d.t.Helper()
	if held := d.held(); len(held) != 0 {
		d.t.Errorf("in the end it lists %+v", held)
	}
}

// life is the desk of another instance, or of another life, on the same server.
func (d *desk) life(id, begun string) *desk {
	o := *d
	o.in.ID, o.in.Incarnation = id, begun
	o.in.Operation = provider.Operation{ID: begun, Kind: operation.Provision, Started: d.clock.Now()}
	return &o
}

// holds requires that the grant opens, and finds so many rows.
func holds(t *testing.T, g *provider.Grant, want int) {
	t.Helper()
	c := expect.Get(connect(t, g))(t)
	var n int
	if err := c.QueryRow(t.Context(), "SELECT count(*) FROM t").Scan(&n); err != nil || n != want {
		t.Fatalf("%d rows, want %d: %v", n, want, err)
	}
	exec(t, c, "INSERT INTO t VALUES (2)", "ALTER TABLE t ALTER a SET NOT NULL") // as its owner
}

// If the operator drops a retained database, an instance that is to have it back fails, makes nothing in its place,
// and can be deleted.
func TestRetainedDatabaseIsDropped(t *testing.T) {
	t.Parallel()
	d := newDesk(t, hosted.Access{Host: "fake", Port: 1}, nil)
	f := postgres.NewFake("one", d.clock.Now)
	d.p.Fake(f)
	d.provision()
	h := d.retain()
	f.Drop(hosted.Name("lsd", provider.TagsOf(d.in)))
	back := d.life("back", "op-2")
	back.in.Origin = provider.Origin{Instance: d.in.ID, Incarnation: d.in.Incarnation}
	h.Tags = provider.TagsOf(back.in)
	d.put(func(ctx context.Context, h provider.Holding) error { return d.p.Adopt(ctx, h, provider.TagsOf(d.in)) }, h)
	d.put(d.p.Release, h)
	provision := func(ctx context.Context) (provider.Status, error) { return back.p.Provision(ctx, back.in) }
	if _, f := back.drive(provision); f == nil {
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
		session := expect.Get(connect(t, left))(t)
		d.unbind("b1")
		d.retain()
		if _, err := session.Exec(t.Context(), "SELECT 1"); err == nil {
			t.Error("a session outlives the deletion")
		}
		shut(t, "what is retained opens to a binding", left)
		superuser, err := pgx.Connect(t.Context(), s.Superuser(hosted.Name("lsd", provider.TagsOf(d.in))))
		if err == nil {
			_ = superuser.Close(t.Context())
			t.Error("what is retained opens to a superuser")
		}
		again := d.life("i", "op-2")
		again.provision()
		for verb, step := range map[string]func(context.Context) (provider.Status, error){
			"Provision": func(ctx context.Context) (provider.Status, error) { return d.p.Provision(ctx, d.in) },
			"Update":    func(ctx context.Context) (provider.Status, error) { return d.p.Update(ctx, d.in) },
			"Bind":      func(ctx context.Context) (provider.Status, error) { return d.p.Bind(ctx, d.binding("late", "")) },
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
		holdsNothing := expect.Get(connect(t, again.bind("b2", "")))(t)
		exec(t, holdsNothing, "CREATE TABLE t (a int)")
		again.unbind("b2")
		again.deprovision()
		d.holdsNothing()
	})
}

// A retained database becomes another instance, with all of its content, also twice. Its former users do not get in.
func TestRetainedDatabasesAreGivenBack(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := retainDesk(t, s)
		d.unbind("b1")
		left, reads := d.bind("left", ""), d.bind("reads", `{"role":"read_only"}`)
		stayOut := func(when string) {
			t.Helper()
			for _, g := range []*provider.Grant{left, reads} {
				shut(t, when+", it opens to a binding of the deleted instance", g)
			}
		}
		again := d.undelete(d.retain(), "new", "op-3")
		stayOut("given back")
		c := expect.Get(connect(t, again.bind("own", "")))(t)
		if limit := value[int](t, c, "SELECT datconnlimit FROM pg_database WHERE datname = current_database()"); limit != -1 {
			t.Errorf("it takes %d connections", limit)
		}
		again.unbind("own")
		again = again.undelete(again.retain(), "newer", "op-4")
		stayOut("given back once more")
		holds(t, again.bind("b2", ""), 1)
		reader := expect.Get(connect(t, again.bind("b3", `{"role":"read_only"}`)))(t)
		exec(t, reader, "SELECT * FROM t")
		again.unbind("b2")
		again.unbind("b3")
		holds(t, again.bind("b4", ""), 2)
		d.unbind("left")
		d.unbind("reads")
		if _, f := d.drive(func(ctx context.Context) (provider.Status, error) { return d.p.Deprovision(ctx, d.in) }); f == nil {
			t.Error("a deletion that came late has removed what is another's")
		}
		holds(t, again.bind("b5", ""), 3)
		for _, id := range []string{"b4", "b5"} {
			again.unbind(id)
		}
		again.in.Snapshot = nil
		again.deprovision()
		d.holdsNothing()
	})
}
