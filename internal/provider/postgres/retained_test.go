package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// retainDesk is a desk whose plan retains what is deleted for a week, and an instance
// of it with a table in which is one.
func retainDesk(t *testing.T, s *pgtest.Server) *desk {
	t.Helper()
	d := newDesk(t, s.Access(), func(o *postgres.Options) { o.Broker = t.Name() })
	snapshot, err := postgres.Check(provider.Checked{Settings: map[string]any{"retain_days": 7}})
	if err != nil {
		t.Fatal(err)
	}
	d.in.Snapshot = snapshot
	d.provision()
	c, err := connect(t, d.bind("b1", ""))
	if err != nil {
		t.Fatal(err)
	}
	exec(t, c, "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
	return d
}

// retain deletes the instance, and gives what is retained of it.
func (d *desk) retain() provider.Holding {
	d.t.Helper()
	st := d.must(func(ctx context.Context) (provider.Status, error) { return d.p.Deprovision(ctx, d.in) })
	for range 2 {
		again := d.must(func(ctx context.Context) (provider.Status, error) { return d.p.Deprovision(ctx, d.in) })
		if st.Retained == nil || again.Retained == nil || *again.Retained != *st.Retained {
			d.t.Fatalf("retained as %+v, and repeated as %+v", st.Retained, again.Retained)
		}
		d.clock.Advance(time.Minute)
	}
	held := d.held()
	if len(held) != 1 || held[0].Name != st.Retained.Name || !held[0].RetainedUntil.Equal(st.Retained.Until) ||
		held[0].Tags != provider.TagsOf(d.in) {
		d.t.Fatalf("retained as %+v, it lists %+v", st.Retained, held)
	}
	return held[0]
}

func (d *desk) held() []provider.Holding {
	d.t.Helper()
	held, _, err := d.p.List(d.t.Context(), "")
	if err != nil {
		d.t.Fatal(err)
	}
	return held
}

// life is the desk of another instance, or of another life, on the same server.
func (d *desk) life(id, operation string) *desk {
	o := *d
	o.in.ID, o.in.Incarnation = id, operation
	o.in.Operation = provider.Operation{ID: operation, Kind: provider.KindProvision, Started: d.clock.Now()}
	return &o
}

func (d *desk) remove(h provider.Holding) {
	d.t.Helper()
	h.Epoch = d.in.Epoch
	for range 2 {
		d.must(func(ctx context.Context) (provider.Status, error) { return d.p.RemoveRetained(ctx, h) })
	}
}

// holds requires that the grant opens, and finds so many rows.
func holds(t *testing.T, g *provider.Grant, want int) {
	t.Helper()
	c, err := connect(t, g)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := c.QueryRow(t.Context(), "SELECT count(*) FROM t").Scan(&n); err != nil || n != want {
		t.Fatalf("%d rows, want %d: %v", n, want, err)
	}
	exec(t, c, "INSERT INTO t VALUES (2)", "ALTER TABLE t ALTER a SET NOT NULL") // as its owner
}

// What was taken by a call that came late, of an instance that nobody knows any more, is
// data that somebody may still want back: whatever removes it, it is retained again.
func TestWhatWasTakenLateIsRetainedAgain(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(half *desk){
		"AsAnOrphan": func(half *desk) {
			half.in.Source, half.in.PlanID, half.in.Snapshot = nil, "", nil
			half.deprovision()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, hosted.Access{Host: "fake", Port: 1}, nil)
			f := postgres.NewFake("one", d.clock.Now)
			d.p.Fake(f)
			d.in.Snapshot = json.RawMessage(`{"retain_days":7}`)
			d.provision()
			kept := d.retain()
			half := d.life("half", "op-2")
			half.in.Source = &provider.Source{Platform: "p", ID: "i", Incarnation: "op-1", Target: d.in.Target,
				Retained: &provider.Retained{Name: kept.Name, Until: kept.RetainedUntil}}
			half.taken(f)
			gone(half)
			for _, h := range d.held() {
				if h.Name == kept.Name && h.Tags == kept.Tags && h.RetainedUntil.Equal(kept.RetainedUntil) {
					return
				}
			}
			t.Errorf("it lists %+v, want %+v among them", d.held(), kept)
		})
	}
}

// taken has an instance take what is retained, and do no more.
func (d *desk) taken(f *postgres.Fake) {
	d.t.Helper()
	died := errors.New("died")
	f.Effect = func(_ context.Context, name string, do func() error) error {
		if strings.HasPrefix(name, "postgres.configure") {
			return died
		}
		return do()
	}
	if _, err := d.p.Provision(d.t.Context(), d.in); !errors.Is(err, died) {
		d.t.Fatal(err)
	}
	if held := d.held(); len(held) != 1 || held[0].Tags != provider.TagsOf(d.in) {
		d.t.Fatalf("it was not taken: %+v", held)
	}
	f.Effect = func(_ context.Context, _ string, do func() error) error { return do() }
}

// What is retained may be dropped by its operator: an instance that was to have it back
// can be deleted all the same, and so can what is left.
func TestRetainedDatabaseIsDropped(t *testing.T) {
	t.Parallel()
	d := newDesk(t, hosted.Access{Host: "fake", Port: 1}, nil)
	f := postgres.NewFake("one", d.clock.Now)
	d.p.Fake(f)
	d.in.Snapshot = json.RawMessage(`{"retain_days":7}`)
	d.provision()
	kept := d.retain()
	back := d.life("back", "op-2")
	back.in.Source = &provider.Source{Platform: "p", ID: "i", Incarnation: "op-1", Target: d.in.Target,
		Retained: &provider.Retained{Name: kept.Name, Until: kept.RetainedUntil}}
	refused := func() {
		t.Helper()
		if _, f := back.drive(func(ctx context.Context) (provider.Status, error) { return back.p.Provision(ctx, back.in) }); f == nil {
			t.Error("what is gone is given back")
		}
		gone := *back
		gone.in.Unfinished = true
		gone.deprovision()
	}
	f.Drop("lsd" + kept.Name[3:])
	refused()
	d.remove(kept)

	d.provision()
	d.retain()
	back.taken(f)
	f.Drop(hosted.Name("lsd", provider.TagsOf(back.in)))
	refused()
	if held := d.held(); len(held) != 0 {
		t.Errorf("in the end it lists %+v", held)
	}
}

// What is deleted is closed, and free as an id; it is removed alone, and whatever has
// its id stays.
func TestDeletedDatabasesAreRetained(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := retainDesk(t, s)
		d.unbind("b1")
		kept := d.retain()
		superuser, err := pgx.Connect(t.Context(), s.Superuser("lsd"+kept.Name[3:]))
		if err == nil {
			_ = superuser.Close(t.Context())
			t.Error("what is retained opens to a superuser")
		}
		again := d.life("i", "op-2")
		again.provision()
		wrong := kept
		wrong.Tags.Incarnation = "op-2"
		_, err = d.p.RemoveRetained(t.Context(), wrong)
		if f := (*provider.Failure)(nil); !errors.As(err, &f) {
			t.Errorf("what another life's name has was removed: %v", err)
		}
		d.remove(kept)
		held := d.held()
		if len(held) != 1 || held[0].Tags.Incarnation != "op-2" {
			t.Fatalf("it lists %+v, want the instance that has the id now", held)
		}
		holdsNothing, err := connect(t, again.bind("b2", ""))
		if err != nil {
			t.Fatal(err)
		}
		exec(t, holdsNothing, "CREATE TABLE t (a int)")
		again.unbind("b2")
		again.in.Unfinished = true
		again.deprovision()
		if held := d.held(); len(held) != 0 {
			t.Errorf("what never was ready is retained: %+v", held)
		}
	})
}

// What is retained becomes another instance, with all that is in it.
func TestRetainedDatabasesAreGivenBack(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := retainDesk(t, s)
		d.unbind("b1")
		kept := d.retain()
		source := &provider.Source{Platform: "p", ID: "i", Incarnation: "op-1", Target: d.in.Target,
			Retained: &provider.Retained{Name: kept.Name, Until: kept.RetainedUntil}}

		half := d.life("half", "op-2") // taken, and given back
		half.in.Source = source
		half.provision()
		if held := d.held(); len(held) != 1 || held[0].Tags.Instance != "half" || !held[0].RetainedUntil.IsZero() {
			t.Fatalf("it lists %+v", held)
		}
		back := *half
		back.in.Unfinished, back.in.Snapshot = true, json.RawMessage("{}")
		for range 2 {
			back.deprovision()
			held := d.held()
			if len(held) != 1 || held[0].Name != kept.Name || held[0].Tags != kept.Tags || !held[0].RetainedUntil.Equal(kept.RetainedUntil) {
				t.Fatalf("given back, it lists %+v, want %+v", held, kept)
			}
		}

		again := d.life("new", "op-3")
		again.in.Source = source
		for range 2 {
			again.provision()
		}
		again.in.Source = nil
		holds(t, again.bind("b2", ""), 1)
		reader, err := connect(t, again.bind("b3", `{"role":"read_only"}`))
		if err != nil {
			t.Fatal(err)
		}
		exec(t, reader, "SELECT * FROM t")
		again.unbind("b2")
		again.unbind("b3")
		holds(t, again.bind("b4", ""), 2)
		late := d.life("late", "op-4")
		late.in.Source = source
		if _, f := late.drive(func(ctx context.Context) (provider.Status, error) { return late.p.Provision(ctx, late.in) }); f == nil {
			t.Error("it was given back twice, or an empty one in its place")
		}
		again.unbind("b4")
		again.in.Snapshot = nil
		again.deprovision()
		if held := d.held(); len(held) != 0 {
			t.Errorf("in the end it lists %+v", held)
		}
	})
}
