package operator_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/test/testkit"
)

// An operator allows that what is retained is given back, and learns what is to be ordered for it: that works.
func TestUndelete(t *testing.T) {
	s := newSite(t)
	order := func(id, parameters string) error {
		q := s.order(id, "retained")
		q.Parameters = []byte(parameters)
		return expect.Err(s.broker.Provision(t.Context(), q))
	}
	expect.OK(t, errors.Join(order("i", `{}`), expect.Err(s.broker.Delete(t.Context(), s.removal("i", "", "retained")))))
	for _, unknown := range []operator.Undeletion{{}, {ID: "x"}, {ID: "i", Platform: "other"}} {
		isRefused(t, fmt.Sprintf("%+v", unknown), expect.Err(s.console.Undelete(t.Context(), unknown)))
	}
	out, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: "i"})
	if err != nil || out.Service != "demo" || out.Plan != "retained" || out.Parameter != "restore_from" || out.Kept.Space != "s" {
		t.Fatalf("%+v %v", out, err)
	}
	handle := lifecycle.Handle(out.Kept.Instance, out.Kept.Life)
	again := expect.Get(s.console.Undelete(t.Context(), operator.Undeletion{ID: handle}))(t)
	expect.Same(t, "the life that is allowed again", out.Kept.Life, again.Kept.Life)
	expect.OK(t, order("new", `{"`+out.Parameter+`":"`+handle+`"}`))
	expect.Same(t, "what is on record once it is given back", 0, len(s.rows(s.console.Retained, operator.Query{})))
	isRefused(t, "giving it back twice", expect.Err(s.console.Undelete(t.Context(), operator.Undeletion{ID: "i"})))
}

// kept is the record of a life that is kept until the time.
func kept(key lifecycle.Key, incarnation string, until time.Time) lifecycle.Record {
	return lifecycle.Record{Key: key.Former(incarnation), State: lifecycle.Quarantined,
		Incarnation: incarnation, Provider: "demo", Due: until, Kept: &lifecycle.Kept{Since: until, Until: until}}
}

// Undelete refuses what cannot be given back, and says why.
func TestUndeleteIsRefused(t *testing.T) {
	now := testkit.Epoch
	s := newSite(t)
	service, plan := testkit.PlanIDs("retained")
	put := func(id, incarnation string, change func(*lifecycle.Record)) {
		t.Helper()
		r := kept(lifecycle.Key{Platform: "p", Instance: id}, incarnation, now)
		r.Attributes = lifecycle.Attributes{ServiceID: service, PlanID: plan, OrganizationGUID: "o", SpaceGUID: "s"}
		change(&r)
		expect.OK(t, s.console.Records.Commit(t.Context(), ledger.Put(r)))
	}
	same := func(*lifecycle.Record) {}
	put("twice", "1", same)
	put("twice", "2", same)
	put("removed", "1", func(r *lifecycle.Record) { *r, _ = r.BeginDelete(lifecycle.Start{ID: "op", Now: now}) })
	put("nowhere", "1", func(r *lifecycle.Record) { r.Attributes.OrganizationGUID, r.Attributes.SpaceGUID = "", "" })
	put("unoffered", "1", func(r *lifecycle.Record) { r.Attributes.ServiceID = "gone" })
	for id, why := range map[string]string{
		"twice": "twice@1", "removed": "cannot be given back",
		"nowhere": "--organization and --space", "unoffered": "restore_parameter",
	} {
		isRefused(t, id, expect.Err(s.console.Undelete(t.Context(), operator.Undeletion{ID: id})), why)
	}
	out, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: "nowhere", Organization: "o2", Space: "s2"})
	expect.OK(t, err)
	expect.Same(t, "where it is ordered", "o2/s2", out.Kept.Organization+"/"+out.Kept.Space)
	expect.Get(s.console.Undelete(t.Context(), operator.Undeletion{ID: "twice@2"}))(t)
}

// A rebuild from what exists alone finds what is retained, and never takes it for the instance, which is deleted.
func TestRebuildOfWhatIsRetained(t *testing.T) {
	before := newSite(t)
	before.provision("i", "retained")
	expect.Get(before.broker.Delete(t.Context(), before.removal("i", "", "retained")))(t)
	was := before.rows(before.console.Retained, operator.Query{})
	if len(was) != 1 {
		t.Fatal(was)
	}
	s := before.over()
	s.clock = before.clock.Add(time.Hour)
	s.finds(operator.Rebuilt{Retained: []string{lifecycle.Handle("i", was[0].Life)}, Kept: 1})
	is := s.rows(s.console.Retained, operator.Query{})
	if len(is) != 1 || is[0].Instance != "i" || is[0].Life != was[0].Life || is[0].Plan != "retained" ||
		!slices.Equal(is[0].Made, was[0].Made) || is[0].Kept.Until.Before(s.clock.Add(lifecycle.QuarantineTime)) {
		t.Errorf("%+v, and was %+v", is, was)
	}
	isRefused(t, "what was ordered nobody knows where", expect.Err(s.console.Undelete(t.Context(), operator.Undeletion{ID: "i"})))
	again := expect.Get(s.console.Undelete(t.Context(), operator.Undeletion{ID: "i", Organization: "o", Space: "s"}))(t)
	expect.Same(t, "the plan", "retained", again.Plan)
	s.finds(operator.Rebuilt{Parameters: []string{"i"}, Kept: 1})
}

// A retained life that a rebuild records again is in its target, and so is one of which only that was lost. Otherwise an
// inventory would not miss the target once it leaves the settings.
func TestRebuildSaysWhereWhatIsRetainedIs(t *testing.T) {
	s := newSite(t)
	_, plan := testkit.PlanIDs("retained")
	tags := provider.Tags{Broker: testkit.Identity, Platform: "p", Instance: "i", Incarnation: "1"}
	s.console.Inventories = map[string]provider.Inventory{"demo": &moving{things: []provider.Holding{{Name: "thing", PlanID: plan,
		Tags: tags, Target: provider.Target{Name: "east"}, Created: s.clock, RetainedUntil: s.clock.Add(time.Hour)}}}}
	for _, when := range []string{"recorded again", "when only that was lost"} {
		expect.Get(s.console.Rebuild(t.Context(), operator.None{}))(t)
		life := s.record(lifecycle.Key{Platform: "p", Instance: "i"}.Former("1"))
		use := expect.Get(s.ledger.TargetUse(t.Context(), life.TargetUse(s.clock)))(t)
		if life.State != lifecycle.Quarantined || life.Made.Target.Name != "east" || use.Version != 1 {
			t.Fatalf("%s, it is %q in %+v, and its use is %+v", when, life.State, life.Made.Target, use)
		}
		expect.OK(t, s.ledger.Commit(t.Context(), ledger.Delete(use)))
	}
}

// With the key, the state of what is kept is lost: it is on record without, so that
// another instance can still have it, whose provider finds it by its tags.
func TestRebuildOfAKeptStateThatIsLost(t *testing.T) {
	for name, opens := range map[string]bool{"Opens": true, "Lost": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			life := kept(lifecycle.Key{Platform: "p", Instance: "i"}, "1", s.clock.Add(time.Hour))
			sealed, err := s.console.Vault.Seal(t.Context(), vault.Label{Key: life.Key, Member: vault.State},
				[]byte(`{"format":1}`))
			life.Made.State = sealed
			expect.OK(t, errors.Join(err, s.ledger.Commit(t.Context(), ledger.Put(life))))
			if !opens {
				s.sealsWith(local(t, 1))
			}
			expect.Get(s.console.Rebuild(t.Context(), operator.None{}))(t)
			is := s.record(life.Key)
			if (is.Made.State != nil) != opens || !is.Kept.Until.Equal(life.Kept.Until) {
				t.Errorf("%+v", is)
			}
		})
	}
}

// A former life is told from what has its id: in the lists by its handle, by its id alone
// what lives is meant. What is kept is listed if that is asked for.
func TestAFormerLifeIsListedAsSuch(t *testing.T) {
	s := newSite(t)
	s.provision("i", "sync")
	life := kept(lifecycle.Key{Platform: "p", Instance: "i"}, "before", s.clock.Add(time.Hour))
	gone, err := life.BeginDelete(lifecycle.Start{ID: "op", Now: s.clock, Timeout: time.Hour})
	gone.Key = life.Key.Former("earlier")
	expect.OK(t, errors.Join(err, s.ledger.Commit(t.Context(), ledger.Put(life), ledger.Put(gone))))
	for state, want := range map[string][]string{"": {"", "earlier"}, "quarantined": {"before"}, "deleting": {"earlier"},
		"ready": {""}} {
		var lives []string
		for _, r := range s.rows(s.console.List, operator.Query{What: operator.Instances, State: state}) {
			lives = append(lives, r.Life)
		}
		slices.Sort(lives)
		expect.Same(t, "lives in state "+state, want, lives)
	}
	expect.Same(t, "the life of what has the id", "", expect.Get(s.console.Instance(t.Context(), "", "i"))(t).Key.Life)
}

// spoils puts a record that cannot be read.
func (s *site) spoils(partition, sort string, due time.Time) {
	s.Helper()
	r := store.Record{Key: store.Key{Partition: partition, Sort: sort}, Writer: "w", Schema: 1, Due: due, Body: []byte("no JSON")}
	expect.OK(s, s.store.Commit(s.Context(), store.Put(r)))
}

// Lists of the reaper's records go around what is damaged: they name each such record, and give the rest, with the name of the
// platform as the operator knows it. What names a thing that can be read finds it.
func TestAListGoesAroundADamagedRecord(t *testing.T) {
	now := testkit.Epoch
	s := knowing(t)
	key := lifecycle.Key{Platform: "p", Instance: "i"}
	service, plan := testkit.PlanIDs("retained")
	life := kept(key, "1", now)
	life.Attributes, life.Made.Broker = lifecycle.Attributes{ServiceID: service, PlanID: plan, SpaceGUID: "s"}, testkit.Identity
	enclosed := kept(key, "2", now)
	enclosed.Kept.Name = "enclosed"
	report := ledger.PutReport(ledger.Report{Started: now}, "1")
	expect.OK(t, s.ledger.Commit(t.Context(), ledger.Put(life), ledger.Put(enclosed), report))
	s.spoils("I#p#a", "FORMER#a#", now)
	s.spoils("I#p#z", "FORMER#z#", now)
	s.spoils(ledger.ReaperPartition, "REPORT#a", time.Time{})
	s.spoils(ledger.ReaperPartition, "INVENTORY", time.Time{})
	kepts, next, err := s.console.Retained(t.Context(), operator.Query{})
	if len(kepts) != 1 || kepts[0].Life != "1" || kepts[0].PlatformName != "korifi" || next != "" ||
		len(operator.Faults(err)) != 2 {
		t.Errorf("retained: %+v %q %v", kepts, next, err)
	}
	orphans, next, err := s.console.Quarantined(t.Context(), operator.Query{})
	if len(orphans) != 1 || orphans[0].PlatformName != "korifi" || next != "" || len(operator.Faults(err)) != 2 {
		t.Errorf("in quarantine: %+v %q %v", orphans, next, err)
	}
	if r, err := s.console.Report(t.Context(), operator.None{}); len(r.Reports) != 1 || len(operator.Faults(err)) != 2 {
		t.Errorf("reports: %+v %v", r, err)
	}

	// Whether a damaged record is of a thing of the same name, nobody can tell.
	for name, found := range map[string]bool{"enclosed": false, "demo/enclosed": true, "other": false} {
		if _, err := s.console.Release(t.Context(), name); (err == nil) != found || refused(err) {
			t.Errorf("release of %q: %v", name, err)
		}
	}
	for id, found := range map[string]bool{"i": false, life.Handle(): true} {
		if _, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: id, Platform: "korifi"}); (err == nil) != found ||
			refused(err) {
			t.Errorf("undelete of %q: %v", id, err)
		}
	}
	expect.Same(t, "whose it is", "1", expect.Get(s.console.Owner(t.Context(), kepts[0].Made[0]))(t).Life)
}

// enclosed puts what a site has made for an instance out of use, whose record it
// has lost, and gives the thing's name, and the key of its life.
func enclosed(t *testing.T) (*site, string, lifecycle.Key) {
	t.Helper()
	before := newSite(t)
	before.provision("one", "sync")
	s := before.over()
	s.clock = before.clock.Add(time.Hour)
	held, _, err := s.console.Inventories["demo"].List(t.Context(), "")
	if err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	h := held[0]
	key := lifecycle.Key{Platform: h.Tags.Platform, Instance: h.Tags.Instance, Life: h.Tags.Incarnation}
	q, err := lifecycle.Record{Key: key}.BeginQuarantine(lifecycle.Start{ID: s.id(), Now: s.clock},
		lifecycle.Thing{Name: h.Name, Incarnation: h.Tags.Incarnation, Provider: "demo", Broker: h.Tags.Broker,
			Created: h.Created})
	expect.OK(t, errors.Join(err, s.ledger.Commit(t.Context(), ledger.Put(q)), s.Finish(t.Context(), workflow.Of(q))))
	if q := s.record(q.Key); q.State != lifecycle.Quarantined || !s.locked() {
		t.Fatalf("%+v, out of use: %v", q, s.locked())
	}
	return s, h.Name, q.Key
}

// locked reports whether anything is out of use.
func (s *site) locked() bool {
	return slices.ContainsFunc(s.things.Things(), func(t cloudtest.Thing) bool { return t.Locked })
}

// hasReleased requires that the thing is in use again.
func (s *site) hasReleased(key lifecycle.Key) {
	s.Helper()
	if q := s.record(key); !q.IsReleased() || s.locked() {
		s.Errorf("%+v, out of use: %v", q, s.locked())
	}
}

// An operator puts a thing into use again. In quarantine, it is found by its name, too.
func TestAnOperatorReleasesAThing(t *testing.T) {
	s, name, key := enclosed(t)
	if r := expect.Get(s.console.Owner(t.Context(), name))(t); r.Instance != "one" || r.State != "quarantined" || r.Life == "" {
		t.Errorf("%+v", r)
	}
	expect.Same(t, "released", name, expect.Get(s.console.Release(t.Context(), "demo/"+name))(t).Kept.Name)
	s.hasReleased(key)
	for _, again := range []string{name, "nothing"} {
		isRefused(t, "release of "+again, expect.Err(s.console.Release(t.Context(), again)))
	}
	for state, listed := range map[string]int{"": 1, "released": 1, "ready": 0} {
		page := s.rows(s.console.Quarantined, operator.Query{State: state})
		if len(page) != listed || listed > 0 && page[0].State != "released" {
			t.Errorf("listed by the state %q: %+v", state, page)
		}
	}
}

func TestAnOperatorDeletesAThing(t *testing.T) {
	s, name, key := enclosed(t)
	discard := func() {
		t.Helper()
		expect.Same(t, "deleted", "one", expect.Get(s.console.Discard(t.Context(), name))(t).Instance)
	}
	discard()
	expect.Same(t, "things that are left", 0, len(s.things.Things()))
	expect.Same(t, "its state", lifecycle.Deleted, s.record(key).State)

	// A thing that has a record is its platform's to delete.
	s, name, key = enclosed(t)
	back, err := lifecycle.Record{Key: key.Current()}.Rebuild(lifecycle.Thing{Incarnation: key.Life, Provider: "demo"},
		lifecycle.Attributes{}, s.clock)
	expect.OK(t, err)
	expect.OK(t, s.console.Records.Commit(t.Context(), ledger.Put(back)))
	isRefused(t, "what has a record", expect.Err(s.console.Discard(t.Context(), name)))

	// A record of another life of the id does not matter.
	s, name, key = enclosed(t)
	s.provision("one", "sync")
	discard()
	expect.Same(t, "the state of what has the id", lifecycle.Ready, s.record(key.Current()).State)
	expect.Same(t, "its own state", lifecycle.Deleted, s.record(key).State)
}

// A rebuild releases what has a record again. It names the quarantines that it cannot read, and comes to its end.
func TestARebuildReleasesWhatHasARecordAgain(t *testing.T) {
	for _, unknown := range [][]string{nil, {"records that cannot be read"}} {
		s, name, key := enclosed(t)
		if unknown != nil {
			s.spoils("I#p#a", "FORMER#a#", s.clock)
		}
		s.finds(operator.Rebuilt{Instances: []string{"one"}, Parameters: []string{"one"}, Released: []string{name},
			Unknown: unknown})
		s.hasReleased(key)
	}
}
