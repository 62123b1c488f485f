package operator_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/testkit"
)

// A host is a provider with one server, which can be restored. What it makes is done at once.
type host struct {
	provider.Provider    // for its Update, which nobody asks for
	provider.Quarantiner // for its Release, likewise
	server
	// dieAt counts down the effects on the server and in the records: at zero, the one
	// that is made meets an error, before it or after it.
	dieAt int
	after bool
	// listed is called when it is listed; nil for nothing.
	listed func()
}

// A server is what a snapshot holds.
type server struct {
	epoch  target.Epoch
	things map[string]provider.Holding
	locked map[string]bool
}

func newHost() *host {
	return &host{dieAt: -1, server: server{
		epoch: target.Epoch{Line: "one", Count: 1}, things: map[string]provider.Holding{}, locked: map[string]bool{},
	}}
}

func (s server) snapshot() server {
	s.things, s.locked = maps.Clone(s.things), maps.Clone(s.locked)
	return s
}

var errCut = errors.New("died")

func (h *host) effect(do func() error) error {
	h.dieAt--
	if h.dieAt == 0 && !h.after {
		return errCut
	}
	err := do()
	if err == nil && h.dieAt == 0 {
		err = errCut
	}
	return err
}

// hostRecords are records whose writes are effects.
type hostRecords struct {
	*memory.Store
	h *host
}

func (r hostRecords) Commit(ctx context.Context, changes ...store.Change) error {
	return r.h.effect(func() error { return r.Store.Commit(ctx, changes...) })
}

func (h *host) step(in provider.Instance, tags provider.Tags, removes bool) (provider.Status, error) {
	at := provider.Target{Name: "east", Identity: "s-1"}
	if in.Target.Identity == "" {
		return provider.Status{Target: &at, After: time.Millisecond}, nil
	}
	if err := h.epoch.Check("east", in.Epoch); err != nil {
		return provider.Status{}, err
	}
	name := tags.Instance + "-" + tags.Binding
	h.things[name] = provider.Holding{Name: name, Tags: tags, Target: at}
	if removes {
		delete(h.things, name)
		delete(h.locked, name)
	}
	return provider.Status{Done: true}, nil
}

func (h *host) Provision(_ context.Context, in provider.Instance) (provider.Status, error) {
	return h.step(in, provider.TagsOf(in), false)
}

func (h *host) Deprovision(_ context.Context, in provider.Instance) (provider.Status, error) {
	return h.step(in, provider.TagsOf(in), true)
}

func (h *host) Bind(_ context.Context, b provider.Binding) (provider.Status, error) {
	return h.step(b.Instance, provider.BindingTagsOf(b), false)
}

func (h *host) Unbind(_ context.Context, b provider.Binding) (provider.Status, error) {
	return h.step(b.Instance, provider.BindingTagsOf(b), true)
}

// List gives a thing a page.
func (h *host) List(_ context.Context, cursor string) ([]provider.Holding, string, error) {
	if h.listed != nil {
		h.listed()
	}
	names := slices.Sorted(maps.Keys(h.things))
	at := slices.IndexFunc(names, func(name string) bool { return name > cursor })
	if at < 0 {
		return nil, "", nil
	}
	thing := h.things[names[at]]
	thing.Epoch = h.epoch
	return []provider.Holding{thing}, names[at], nil
}

func (h *host) Holdings(ctx context.Context, _, cursor string) ([]provider.Holding, string, error) {
	return h.List(ctx, cursor)
}

func (h *host) Quarantine(_ context.Context, t provider.Holding) error {
	if err := h.epoch.Check("east", t.Epoch); err != nil {
		return err
	}
	return h.effect(func() error {
		h.locked[t.Name] = true
		thing := h.things[t.Name]
		thing.RetainedUntil = t.RetainedUntil
		h.things[t.Name] = thing
		return nil
	})
}

func (h *host) Survey(context.Context, string) (provider.Target, target.Epoch, error) {
	return provider.Target{Name: "east", Identity: "s-1"}, h.epoch, nil
}

func (h *host) Advance(_ context.Context, _ provider.Target, from, to target.Epoch) (target.Epoch, error) {
	if h.epoch != from || from == to {
		return h.epoch, nil
	}
	err := h.effect(func() error { h.epoch = to; return nil })
	return h.epoch, err
}

// newHosted is a site on a host, with records of its own unless others are given.
func newHosted(t *testing.T, h *host, records *memory.Store) *site {
	t.Helper()
	if records == nil {
		records = memory.New()
	}
	s := &site{T: t, clock: testkit.Epoch, id: func() string { return rand.Text()[:22] }, store: hostRecords{records, h}}
	kit := testkit.New(testkit.Options{Store: s.store, Engine: s, Now: func() time.Time { return s.clock }, NewID: s.id,
		Providers: map[string]provider.Provider{"demo": h}})
	s.ledger, s.worker, s.broker = kit.Ledger(), kit.Worker(), kit.Broker()
	s.console = kit.Console(ledger.Identity{Deployment: "site", Broker: testkit.Identity})
	s.console.Servers = map[string]wired.Provider{"demo": {Provider: h, Inventory: h, Quarantiner: h, Reconciler: h,
		Targets: func(context.Context) ([]string, error) { return []string{"east"}, nil }}}
	return s
}

// reconciles has an operator reconcile the site's one server.
func (s *site) reconciles(meant bool) operator.Reconciled {
	s.Helper()
	all := expect.Get(s.console.Reconcile(s.Context(), operator.Scope{Meant: meant}))(s)
	if len(all) != 1 {
		s.Fatalf("%+v", all)
	}
	return all[0]
}

// goesOn requires that a bind makes something on the server.
func (s *site) goesOn(h *host) {
	s.Helper()
	if err := s.bind("i", "next", "sync", ""); err != nil || h.things["i-next"].Name == "" {
		s.Errorf("the next bind: %v, %v", err, h.things)
	}
}

// restored is a site whose server is as it was at an earlier time: the login of one
// binding is back, and that of another is not there.
func restored(t *testing.T, line string) (*site, *host) {
	t.Helper()
	h := newHost()
	s := newHosted(t, h, nil)
	s.provision("i", "sync")
	for _, id := range []string{"kept", "removed"} {
		expect.OK(t, s.bind("i", id, "sync", ""))
	}
	snapshot := h.snapshot()
	expect.OK(t, s.delete("i", "removed"))
	expect.OK(t, s.bind("i", "made", "sync", ""))
	s.provision("late", "sync")
	h.server = snapshot
	h.epoch.Line = line
	return s, h
}

// Reconcile locks the logins of a restored server that no binding owns, and lists what is
// missing; then operations go on. Without --yes it changes nothing.
func TestReconcile(t *testing.T) {
	for _, line := range []string{"one", "two"} {
		t.Run(line, func(t *testing.T) {
			s, h := restored(t, line)
			before := h.snapshot()
			want := operator.Reconciled{Provider: "demo", Target: "east", Identity: "s-1", Logins: 1,
				Locked: []string{"i-removed (i/removed)"}, Unbound: []string{"i/made"}, Gone: []string{"late"}}
			for _, meant := range []bool{false, true, true} {
				got := s.reconciles(meant)
				if (got.Trouble == "") != (want.Identity == "") && want.Locked != nil {
					t.Errorf("meant %v: %+v", meant, got)
				}
				got.Trouble = ""
				want.Done = meant && want.Locked != nil
				expect.Same(t, fmt.Sprintf("meant %v", meant), want, got)
				switch {
				case !meant && fmt.Sprint(h.server) != fmt.Sprint(before):
					t.Errorf("a look has changed the server to %+v", h.server)
				case meant && (!h.locked["i-removed"] || len(h.locked) != 1):
					t.Errorf("locked: %v", h.locked)
				case meant: // the next one finds it as it was
					want = operator.Reconciled{Provider: "demo", Target: "east", Identity: "s-1"}
				}
			}
			s.goesOn(h)
		})
	}
	// Until then no rebuild lists the server: its things are no orphans, and missing ones are not gone.
	s, h := restored(t, "one")
	s.listsOf(h, 0, target.Restored)
	s.console.Inventories["demo"] = s.guarded(h)
	if _, err := s.console.Rebuild(t.Context(), operator.None{}); err == nil {
		t.Error("a rebuild goes by what a restored server lacks")
	}
	none := operator.Scope{Provider: "demo", Target: "west", Meant: true}
	isRefused(t, "a target that is none", expect.Err(s.console.Reconcile(t.Context(), none)))
	demo := operator.Scope{Provider: "demo", Meant: true}
	expect.Same(t, "servers of the provider", 1, len(expect.Get(s.console.Reconcile(t.Context(), demo))(t)))
	s.listsOf(h, 1, "")
}

// A provider whose servers are not known does not hide what was done with another one's, and does not count as being in order.
func TestReconcileOfServersThatAreNotKnown(t *testing.T) {
	s, h := restored(t, "one")
	s.console.Servers["absent"] = wired.Provider{Targets: func(context.Context) ([]string, error) { return nil, errCut }}
	all, err := s.console.Reconcile(t.Context(), operator.Scope{Meant: true})
	expect.Fails(t, "the reconciliation", errCut, err)
	if len(all) != 1 || !all[0].Done || !h.locked["i-removed"] {
		t.Errorf("%+v, locked %v", all, h.locked)
	}
	for _, provider := range []string{"absent", "demo"} {
		_, err := s.console.Reconcile(t.Context(), operator.Scope{Provider: provider})
		expect.Same(t, "that of "+provider+" fails", provider == "absent", errors.Is(err, errCut))
	}
}

// Wherever a run ends, no operation goes on before each login that no binding owns is locked, and the next run comes to the end.
func TestReconcileDies(t *testing.T) {
	for _, line := range []string{"one", "two"} {
		for at := 1; ; at++ {
			ended := false
			for _, after := range []bool{false, true} {
				s, h := restored(t, line)
				h.dieAt, h.after = at, after
				got := s.reconciles(true)
				ended = h.dieAt > 0
				h.dieAt = -1
				if !ended && !after && got.Unreached == "" {
					t.Fatalf("line %s, effect %d: %+v", line, at, got)
				}
				known := expect.Get(s.ledger.Epoch(t.Context(), "demo", "s-1"))(t)
				goesOn := h.epoch.Follows(target.Epoch{Line: known.Line, Count: known.Count})
				if goesOn && !h.locked["i-removed"] {
					t.Errorf("line %s, effect %d: operations go on, and a login that was removed is valid", line, at)
				}
				if got = s.reconciles(true); got.Done == goesOn || got.Unreached != "" {
					t.Errorf("line %s, effect %d, went on %v: again: %+v", line, at, goesOn, got)
				}
				if err := s.bind("i", "next", "sync", ""); err != nil || !h.locked["i-removed"] {
					t.Errorf("line %s, effect %d: the next bind: %v, locked %v", line, at, err, h.locked)
				}
			}
			if ended {
				break
			}
		}
	}
}

// guarded is the host's inventory as programs have it.
func (s *site) guarded(h *host) provider.Inventory {
	return wired.Guarded{Inventory: h, Known: func(ctx context.Context, identity string) (target.Known, error) {
		known, err := s.ledger.Epoch(ctx, "demo", identity)
		return known.Known, err
	}}
}

// listsOf requires how many things are on the first page of the host, or what is the trouble with it.
func (s *site) listsOf(h *host, want int, kind string) {
	s.Helper()
	page, _, err := s.guarded(h).List(s.Context(), "")
	expect.Same(s, "things that are listed", want, len(page))
	trouble, is := errors.AsType[*target.Trouble](err)
	if is != (err != nil) || is != (kind != "") || is && trouble.Kind != kind {
		s.Errorf("the trouble is %v, want %q", err, kind)
	}
}

// A released thing is in use by an operator's word, and left alone. A login that is back is locked also where its id is being
// bound again: that binding has another login.
func TestReconcileLocksTheLoginOfAnEarlierLifeAlone(t *testing.T) {
	s, h := restored(t, "one")
	tags := provider.Tags{Broker: testkit.Identity, Platform: "p", Instance: "i", Binding: "stray", Incarnation: "n"}
	h.things["stray"] = provider.Holding{Name: "stray", Tags: tags, Target: provider.Target{Name: "east", Identity: "s-1"}}
	q := kept(lifecycle.Key{Platform: "p", Instance: "i", Binding: "stray"}, "n", s.clock)
	q.State, q.Kept.Name = lifecycle.Ready, "stray"
	was := s.record(lifecycle.Key{Platform: "p", Instance: "i", Binding: "removed"})
	expect.Same(t, "it exists", false, was.Exists())
	again, err := was.BeginCreate(lifecycle.Start{ID: s.id(), Now: s.clock, Timeout: time.Hour}, was)
	expect.OK(t, errors.Join(err, s.ledger.Commit(t.Context(), ledger.Put(q), ledger.Put(again))))
	if got := s.reconciles(true); len(got.Locked) != 1 || h.locked["stray"] || !h.locked["i-removed"] || got.Logins != 1 {
		t.Errorf("%+v, locked %v", got, h.locked)
	}
}

// Reconcile shuts an instance that is kept out of use and that the restore has opened, until its date.
func TestReconcileShutsWhatIsKept(t *testing.T) {
	h := newHost()
	s := newHosted(t, h, nil)
	s.provision("i", "sync")
	snapshot := h.snapshot()
	key := lifecycle.Key{Platform: "p", Instance: "i"}
	was := s.record(key)
	err := s.delete("i", "")
	life := kept(key, was.Incarnation, s.clock.Add(time.Hour))
	expect.OK(t, errors.Join(err, s.ledger.Commit(t.Context(), ledger.Put(life))))
	h.server = snapshot
	for _, meant := range []bool{false, true} {
		if got := s.reconciles(meant); len(got.Locked) != 1 || got.Trouble == "" ||
			h.things["i-"].RetainedUntil.Equal(life.Kept.Until) != meant {
			t.Errorf("%+v, the server has %+v", got, h.things)
		}
	}
}

// copies are two sites on one host, of which the second began with what the first one's
// records were: both have a binding that the other does not know.
func copies(t *testing.T) (original, copied *site, h *host) {
	t.Helper()
	h = newHost()
	original = newHosted(t, h, nil)
	original.provision("i", "sync")
	copied = newHosted(t, h, original.store.(hostRecords).Clone())
	expect.OK(t, original.bind("i", "since", "sync", ""))
	return original, copied, h
}

// Two brokers have copies of one set of records. The second one lists nothing and changes nothing until an operator has it take
// the server over; then the first one does neither. A broker that raises the server while another one reconciles it is seen.
func TestReconcileOfACopy(t *testing.T) {
	original, copied, h := copies(t)
	original.listsOf(h, 1, "")
	copied.listsOf(h, 0, target.Doubled)
	_ = copied.bind("i", "other", "sync", "")
	expect.Same(t, "the copy has made", "", h.things["i-other"].Name)
	h.listed = func() { h.epoch.Count, h.epoch.Mark = h.epoch.Count+1, "theirs" }
	if got := copied.reconciles(true); got.Done || got.Unreached == "" {
		t.Errorf("the copy reconciles against a living one: %+v", got)
	}
	h.listed = nil
	if got := copied.reconciles(true); !got.Done || len(got.Locked) != 1 || !h.locked["i-since"] {
		t.Errorf("the copy reconciles: %+v, locked %v", got, h.locked)
	}
	copied.goesOn(h)
	original.listsOf(h, 0, target.Doubled)
	if got := original.reconciles(false); got.Trouble == "" || got.Done {
		t.Errorf("the original looks: %+v", got)
	}
}

// Records that are from a backup are completed from a server that went on, and nothing there is locked.
func TestRebuildOfOldRecordsTakesTheServerOver(t *testing.T) {
	_, restored, h := copies(t)
	restored.console.Inventories["demo"] = restored.guarded(h)
	out, err := restored.console.Rebuild(t.Context(), operator.None{})
	if err != nil || len(out.Bindings) != 1 || len(h.locked) > 0 {
		t.Errorf("%+v %v, locked %v", out, err, h.locked)
	}
	restored.goesOn(h)
}
