package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/test/storetest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
)

// A site is a broker that does everything at once, and its things.
type site struct {
	*testing.T
	clock   time.Time
	id      func() string
	store   store.Store
	things  *cloudtest.Cloud
	worker  *worker.Worker
	broker  *broker.Broker
	console *operator.Console
	ledger  *ledger.Ledger
	stalled bool // what is begun does not go on, and callers accept that
	looks   int  // how often the console has read the platforms; see knowing
	asker   lifecycle.Asker
	said    json.RawMessage // of the asker, by the platform
}

func newSite(t *testing.T) *site {
	t.Helper()
	var s *site
	s = siteOver(t, cloudtest.NewCloud(func() time.Time { return s.clock }))
	return s
}

func siteOver(t *testing.T, things *cloudtest.Cloud) *site {
	t.Helper()
	s := &site{T: t, clock: testkit.Epoch, id: testkit.IDs(), store: memory.New(), things: things}
	s.sealsWith(local(t, 0))
	return s
}

// over is another site over the same things, whose records know nothing of them.
func (s *site) over() *site {
	s.Helper()
	return siteOver(s.T, s.things)
}

// demo is the provider of all sites, and does everything at once.
func (s *site) demo() *cloudtest.Provider { return cloudtest.Demo(s.things, 0) }

func local(t *testing.T, key byte) vault.Vault {
	t.Helper()
	return expect.Get(vault.NewLocal(bytes.Repeat([]byte{key}, 32)))(t)
}

// sealsWith has all that the site is made of use the vault.
func (s *site) sealsWith(v vault.Vault) {
	kit := testkit.New(testkit.Options{Store: s.store, Vault: v, Engine: s, Now: func() time.Time { return s.clock }, NewID: s.id,
		OperationTimeout: time.Hour, Providers: map[string]provider.Provider{"demo": s.demo()}})
	s.ledger, s.worker, s.broker, s.console = kit.Ledger(), kit.Worker(), kit.Broker(),
		kit.Console(ledger.Identity{Deployment: "site", Broker: testkit.Identity})
}

func (s *site) Start(ctx context.Context, ref workflow.Ref) error {
	if s.stalled {
		return nil
	}
	return s.Finish(context.WithoutCancel(ctx), ref) // as an engine does
}

func (s *site) Finish(ctx context.Context, ref workflow.Ref) error {
	for range 100 {
		outcome, err := s.worker.Step(ctx, ref)
		if err != nil || outcome.Settled {
			return err
		}
		s.clock = s.clock.Add(max(outcome.Wait, time.Millisecond))
	}
	return errors.New("it never ends")
}

func (s *site) caller() broker.Caller {
	s.clock = s.clock.Add(time.Second)
	return broker.Caller{Platform: "p", Received: s.clock, AcceptsIncomplete: s.stalled, Asker: s.asker, Identity: s.said}
}

// order is a platform's request for an instance, login one for a binding, and removal one for the end of either.
func (s *site) order(id, plan string) broker.ProvisionRequest {
	service, planID := testkit.PlanIDs(plan)
	return broker.ProvisionRequest{Caller: s.caller(), InstanceID: id, ServiceID: service, PlanID: planID,
		OrganizationGUID: "o", SpaceGUID: "s", Parameters: []byte(`{"a":1}`)}
}

func (s *site) login(instance, id, plan string) broker.BindRequest {
	service, planID := testkit.PlanIDs(plan)
	return broker.BindRequest{Caller: s.caller(), InstanceID: instance, BindingID: id, ServiceID: service, PlanID: planID}
}

func (s *site) removal(instance, binding, plan string) broker.DeleteRequest {
	service, planID := testkit.PlanIDs(plan)
	return broker.DeleteRequest{Caller: s.caller(), InstanceID: instance, BindingID: binding, ServiceID: service, PlanID: planID}
}

func (s *site) provision(id, plan string) {
	s.Helper()
	expect.Get(s.broker.Provision(s.Context(), s.order(id, plan)))(s)
}

func (s *site) bind(instance, id, plan, predecessor string) error {
	q := s.login(instance, id, plan)
	q.AppGUID = "app"
	if predecessor != "" {
		q = broker.BindRequest{Caller: q.Caller, InstanceID: instance, BindingID: id, Predecessor: predecessor}
	}
	return expect.Err(s.broker.Bind(s.Context(), q))
}

// delete asks for the end of an instance, or of its binding.
func (s *site) delete(instance, binding string) error {
	return expect.Err(s.broker.Delete(s.Context(), s.removal(instance, binding, "sync")))
}

func (s *site) update(instance string) error {
	service, _ := testkit.PlanIDs("sync")
	return expect.Err(s.broker.Update(s.Context(),
		broker.UpdateRequest{Caller: s.caller(), InstanceID: instance, ServiceID: service, Parameters: []byte(`{"a":2}`)}))
}

// record is what is known of an instance or a binding.
func (s *site) record(key lifecycle.Key) lifecycle.Record {
	s.Helper()
	return expect.Get(s.ledger.Record(s.Context(), key, s.clock))(s)
}

// finds requires what a rebuild finds, in any order, without what is wrong with the bytes of a record.
func (s *site) finds(want operator.Rebuilt) {
	s.Helper()
	found := expect.Get(s.console.Rebuild(s.Context(), operator.None{}))(s)
	for n, text := range found.Unknown {
		found.Unknown[n], _, _ = strings.Cut(text, ": decoding record")
	}
	expect.Same(s, "what is found", want, found, cmpopts.SortSlices(strings.Compare), cmpopts.EquateEmpty())
}

// refuses requires that the broker refuses a request for this reason, and says so.
func (s *site) refuses(what string, reason lifecycle.Reason, says string, err error) {
	s.Helper()
	var refusal *lifecycle.Refusal
	if !errors.As(err, &refusal) || refusal.Reason != reason || !strings.Contains(refusal.Message, says) {
		s.Errorf("%s: %v", what, err)
	}
}

// lost requires that GET and PUT of a binding say that its credentials are lost, whatever the PUT asks for (GETB-02, BIND-02).
func (s *site) lost(instance, id, plan string) {
	s.Helper()
	const says = "credentials of this service binding were lost; rotate it"
	s.refuses("GET", lifecycle.Unprocessable, says, expect.Err(s.broker.View(s.Context(), s.caller(), instance, id)))
	q := s.login(instance, id, plan)
	put := func(what string, reason lifecycle.Reason, says string) {
		s.Helper()
		q.Caller = s.caller()
		s.refuses(what, reason, says, expect.Err(s.broker.Bind(s.Context(), q)))
	}
	put("PUT of a service key", lifecycle.Unprocessable, says)
	q.AppGUID = "app"
	put("PUT", lifecycle.Unprocessable, says)
	q.Parameters = []byte(`{"b":1}`)
	put("PUT of another", lifecycle.Unprocessable, says)
	q.PlanID = "nobody's"
	put("PUT with an unknown plan", lifecycle.BadRequest, "") // CLI-07
}

// again repeats a provision, which is the same as far as it is known (PROV-07), and is not with another plan (PROV-08).
func (s *site) again(id, plan string) {
	s.Helper()
	s.provision(id, plan)
	other := s.order(id, "async")
	other.Parameters = nil
	s.refuses("provisioning "+id+" again, of another plan", lifecycle.Conflict, "",
		expect.Err(s.broker.Provision(s.Context(), other)))
}

// With its records lost, a broker gets them again from what exists, and goes on:
// instances can be updated, bound and deleted, bindings rotated and removed.
func TestRebuild(t *testing.T) {
	before := newSite(t)
	before.provision("one", "rotatable")
	before.provision("two", "sync")
	expect.OK(t, errors.Join(before.bind("one", "b", "rotatable", ""), before.bind("two", "c", "sync", "")))
	// A thing of somebody else, and one of a plan that nobody offers.
	before.things.Plant("", cloudtest.Thing{Name: "odd", Plan: "gone"})
	before.things.Plant("", cloudtest.Thing{Name: "old", Plan: "gone",
		Tags: provider.Tags{Broker: testkit.Identity, Platform: "p", Instance: "three", Incarnation: "x"}})

	s := before.over() // its records are lost
	again := operator.Rebuilt{Rotate: []string{"one/b", "two/c"}, Parameters: []string{"one", "two"}, Kept: 4,
		Unknown: []string{"odd: its tags do not name an owner", `old: no offering has its plan "gone"`}}
	first := again
	first.Instances, first.Bindings, first.Kept = []string{"one", "two"}, []string{"one/b", "two/c"}, 0
	s.finds(first)
	s.finds(again)
	expect.Same(t, "the table says that it is of", "site", expect.Get(s.ledger.Identity(t.Context()))(t).Deployment)

	_, plan := testkit.PlanIDs("rotatable")
	expect.Same(t, "the plan", plan, expect.Get(s.broker.View(t.Context(), s.caller(), "one", ""))(t).Attributes.PlanID)
	for _, key := range []lifecycle.Key{{Platform: "p", Instance: "one"}, {Platform: "p", Instance: "one", Binding: "b"}} {
		poll := expect.Get(s.broker.LastOperation(t.Context(), key, "lost"))(t)
		expect.Same(t, "the last operation of what exists", lifecycle.Succeeded, poll.Operation.Phase)
	}
	s.lost("one", "b", "rotatable")
	s.again("one", "rotatable")
	expect.OK(t, s.bind("one", "next", "rotatable", "b"), "rotating:")
	expect.Get(s.broker.View(t.Context(), s.caller(), "one", "next"))(t, "the new credentials:")
	expect.OK(t, s.bind("two", "d", "sync", ""), "binding:")
	expect.OK(t, s.update("two"), "updating:")
	expect.OK(t, s.delete("two", "c"), "unbinding:")
	expect.OK(t, errors.Join(s.delete("one", ""), s.delete("two", "")), "deleting:")
	expect.Same(t, "things that are left, which were never ours", 2, len(s.things.Things()))
}

// The id of a binding stays unique, although the record of that alone was lost, and others write while it is mended.
func TestRebuildOfAPointer(t *testing.T) {
	s := newSite(t)
	s.provision("one", "sync")
	s.provision("two", "sync")
	expect.OK(t, s.bind("one", "b", "sync", ""))
	key := store.Key{Partition: "B#p#b", Sort: "POINTER"}
	r := expect.Get(s.store.Get(t.Context(), key))(t)
	expect.OK(t, s.store.Commit(t.Context(), store.Delete(key, r.Version)))
	left := 2 // some of the next writes of the key meet a conflict
	s.console.Records = ledger.New(&storetest.Faulty{Store: s.store, Before: func(changes []store.Change) error {
		if left == 0 || !slices.ContainsFunc(changes, func(c store.Change) bool { return c.Record.Key == key }) {
			return nil
		}
		left--
		return store.ErrConflict
	}}, s.id)
	expect.Get(s.console.Rebuild(t.Context(), operator.None{}))(t)
	expect.Same(t, "conflicts that are left", 0, left)
	s.refuses("the id is used twice", lifecycle.Conflict, "", s.bind("two", "b", "sync", ""))
}

// A table that was restored to an earlier time has records of what was deleted
// since: they are named, and their deletion leaves nothing.
func TestRebuildNamesWhatIsGone(t *testing.T) {
	s := newSite(t)
	s.provision("here", "sync")
	s.provision("gone", "sync")
	for _, thing := range s.things.Things() {
		if thing.Tags.Instance == "gone" {
			s.things.Take(thing.Name)
		}
	}
	s.finds(operator.Rebuilt{Gone: []string{"gone"}, Kept: 1})
	expect.OK(t, s.delete("gone", ""), "deleting it:")
	s.finds(operator.Rebuilt{Kept: 1})
}

// A moving inventory pages by number, as some clouds do: what is deleted from
// the front while it is listed moves the rest onto the page before.
type moving struct {
	things []provider.Holding
	// disturbed is in how many passes something in front comes and goes.
	disturbed, passes int
	others            func(n int) provider.Holding
}

func (m *moving) List(_ context.Context, cursor string) ([]provider.Holding, string, error) {
	at := 0
	if cursor == "" {
		m.passes++
	} else if _, err := fmt.Sscan(cursor, &at); err != nil {
		return nil, "", err
	}
	all := m.things
	if m.passes <= m.disturbed && cursor == "" {
		all = append([]provider.Holding{m.others(m.passes)}, all...)
	}
	end := min(at+2, len(all))
	next := ""
	if end < len(m.things) {
		next = fmt.Sprint(end)
	}
	return all[at:end], next, nil
}

// Others make and delete things while everything is listed: nothing is missed
// that was there all the time, and nothing is said to be gone.
func TestRebuildWhileTheListingChanges(t *testing.T) {
	for disturbed := range 6 {
		s := newSite(t)
		_, plan := testkit.PlanIDs("sync")
		holding := func(id, binding string) provider.Holding {
			tags := provider.Tags{Broker: testkit.Identity, Platform: "p", Instance: id, Binding: binding,
				Incarnation: "of-" + id + binding}
			if binding != "" {
				tags.Of = "of-" + id
			}
			return provider.Holding{Name: "thing-" + id + binding, PlanID: plan, Created: s.clock, Tags: tags}
		}
		m := &moving{disturbed: disturbed, others: func(n int) provider.Holding { return holding(fmt.Sprint("passing-", n), "") }}
		for _, id := range []string{"a", "b", "c", "d"} {
			m.things = append(m.things, holding(id, ""))
		}
		m.things = append(m.things, holding("b", "bound"))
		s.console.Inventories = map[string]provider.Inventory{"demo": m}
		s.provision("d", "sync") // has a record before
		m.things[3].Tags.Incarnation = s.record(lifecycle.Key{Platform: "p", Instance: "d"}).Incarnation
		found := expect.Get(s.console.Rebuild(t.Context(), operator.None{}))(t)
		slices.Sort(found.Instances)
		found.Instances = slices.DeleteFunc(found.Instances, func(id string) bool { return strings.HasPrefix(id, "passing") })
		if !slices.Equal(found.Instances, []string{"a", "b", "c"}) || !slices.Equal(found.Rotate, []string{"b/bound"}) ||
			found.Kept != 1 || len(found.Gone)+len(found.Unknown) != 0 {
			t.Errorf("%d disturbed passes, %d passes in all: %+v", disturbed, m.passes, found)
		}
	}
}

// A listing that changes all the time ends all the same.
func TestRebuildEnds(t *testing.T) {
	s := newSite(t)
	m := &moving{disturbed: 1 << 30, others: func(n int) provider.Holding { return provider.Holding{Name: fmt.Sprint("odd-", n)} }}
	s.console.Inventories = map[string]provider.Inventory{"demo": m}
	halted := ledger.Inventory{Halt: &ledger.Halt{At: s.clock, Reason: "the table was emptied"}}
	expect.OK(t, s.ledger.Commit(t.Context(), ledger.Put(halted)))
	found := expect.Get(s.console.Rebuild(t.Context(), operator.None{}))(t)
	expect.Same(t, "listings that differ", 10, found.Restless)
	expect.Same(t, "passes", 10, m.passes)
	state := expect.Get(s.console.Records.Inventory(t.Context()))(t)
	expect.Same(t, "the halt of the reaper, since something may have been missed", halted.Halt, state.Halt)
}

// lostKey is a site whose key was lost, with a record in each state that holds
// something sealed. Of "new", all is sealed with the key that it has now.
func lostKey(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.provision("one", "rotatable")
	s.provision("two", "sync")
	expect.OK(t, errors.Join(s.bind("one", "b", "rotatable", ""), s.bind("two", "c", "sync", "")))
	s.provision("binds", "async-bind")
	s.stalled = true
	s.provision("begun", "async")
	expect.Get(s.broker.Bind(t.Context(), s.asked()))(t)
	s.stalled = false
	s.sealsWith(local(t, 1))
	s.provision("new", "sync")
	expect.OK(t, s.bind("new", "n", "sync", ""))
	return s
}

// asked is the bind that runs when the key is lost.
func (s *site) asked() broker.BindRequest {
	q := s.login("binds", "d", "async-bind")
	q.AppGUID, q.Parameters, q.AcceptsIncomplete = "app", []byte(`{"b":1}`), true
	return q
}

// ended requires that the history says once that a rebuild has ended the operation, however often a rebuild was run.
func (s *site) ended(key lifecycle.Key, kind lifecycle.Kind) {
	s.Helper()
	history, _, err := s.ledger.History(s.Context(), key, "", 0)
	history = slices.DeleteFunc(history, func(e lifecycle.Entry) bool { return e.Key != key })
	if err != nil || len(history) != 1 || history[0].Kind != kind || history[0].Phase != lifecycle.Failed ||
		!strings.Contains(history[0].Description, "lost the request") {
		s.Errorf("the history of %q has %+v: %v", key.Instance, history, err)
	}
}

// rebuilds requires that a rebuild gives up what the lost key had sealed, and
// no more, and that everything then goes on. A second one says the same.
func (s *site) rebuilds() {
	s.Helper()
	for range 2 {
		var told []string
		s.console.Lost = func(what string) { told = append(told, what) }
		s.finds(operator.Rebuilt{Rotate: []string{"one/b", "two/c"}, Parameters: []string{"begun", "binds", "one", "two"},
			Failed: []string{"begun", "binds/d"}, Kept: 7})
		expect.Same(s, "things that were told", 8, len(told))
	}
	s.ended(lifecycle.Key{Platform: "p", Instance: "begun"}, lifecycle.Provision)
	s.ended(lifecycle.Key{Platform: "p", Instance: "binds", Binding: "d"}, lifecycle.Bind)
	s.lost("one", "b", "rotatable")
	s.lost("two", "c", "sync")
	s.again("one", "rotatable")
	view := expect.Get(s.broker.View(s.Context(), s.caller(), "new", ""))(s)
	expect.Same(s, "what was sealed with the key in use", `{"a":1}`, string(view.Parameters))
	if b, err := s.broker.View(s.Context(), s.caller(), "new", "n"); err != nil || len(b.Grant.Credentials) == 0 {
		s.Errorf("what was sealed with the key in use: %v", err)
	}
	expect.Get(s.broker.Bind(s.Context(), s.asked()))(s, "what has failed is asked for again:")
	expect.OK(s, errors.Join(s.bind("one", "next", "rotatable", "b"), s.bind("two", "e", "sync", "")), "rotating and binding:")
	for _, id := range []string{"b", "next"} {
		expect.Get(s.broker.Delete(s.Context(), s.removal("one", id, "rotatable")))(s, "unbinding", id)
	}
	expect.OK(s, s.update("two"), "updating:")
	for _, id := range []string{"one", "two", "binds", "begun", "new"} {
		expect.OK(s, s.delete(id, ""), "deleting", id)
	}
	expect.Same(s, "things that are left", 0, len(s.things.Things()))
}

// With the vault's key lost and another in its place, records keep all that is not sealed; bindings are to be rotated; what
// runs and cannot go on has failed. A rebuild that dies anywhere is ended by the next one.
func TestRebuildWithALostKey(t *testing.T) {
	for n, died := 0, true; died; n++ {
		s := lostKey(t)
		whole := s.console.Records
		s.console.Records = ledger.New(storetest.Dying(s.store, n), s.id)
		_, err := s.console.Rebuild(t.Context(), operator.None{})
		if died = err != nil; died {
			expect.Fails(t, "the rebuild", storetest.ErrDied, err)
		} else if n < 6 {
			t.Errorf("a rebuild took %d commits", n)
		}
		s.console.Records = whole
		s.rebuilds()
	}
}

// absent is a vault that cannot be asked for the nth value, and none after.
type absent struct {
	vault.Vault
	left int
}

func (a *absent) Open(ctx context.Context, label vault.Label, sealed []byte) ([]byte, error) {
	if a.left--; a.left < 0 {
		return nil, errors.New("the key is disabled")
	}
	return a.Vault.Open(ctx, label, sealed)
}

// A vault out of reach says nothing of what opens: nothing is taken for lost.
func TestRebuildNeedsTheVault(t *testing.T) {
	for n := range 12 {
		s := newSite(t)
		s.provision("one", "sync")
		s.provision("two", "sync")
		expect.OK(t, errors.Join(s.bind("one", "b", "sync", ""), s.bind("two", "c", "sync", "")))
		s.console.Vault = &absent{Vault: s.console.Vault, left: n}
		found, err := s.console.Rebuild(t.Context(), operator.None{})
		if (err == nil) != (n >= 6) { // two parameters, two secrets, two grants
			t.Errorf("with %d answers: %v", n, err)
		}
		if len(found.Rotate)+len(found.Parameters)+len(found.Failed) > 0 {
			t.Errorf("with %d answers: %+v", n, found)
		}
		if view, err := s.broker.View(t.Context(), s.caller(), "one", ""); err != nil || view.Parameters == nil {
			t.Errorf("with %d answers, its parameters: %s %v", n, view.Parameters, err)
		}
		if view, err := s.broker.View(t.Context(), s.caller(), "two", "c"); err != nil || len(view.Grant.Credentials) == 0 {
			t.Errorf("with %d answers, its credentials: %v", n, err)
		}
	}
}

// A list and a rebuild name the one record that cannot be read. All others stay as they
// were, and a thing without a record gets one.
func TestRebuildAroundARecordThatCannotBeRead(t *testing.T) {
	s := newSite(t)
	for _, id := range []string{"bad", "good", "lost"} {
		s.provision(id, "sync")
	}
	at := func(id string) store.Record {
		return expect.Get(s.store.Get(t.Context(), store.Key{Partition: "I#p#" + id, Sort: "INSTANCE"}))(t)
	}
	bad, lost := at("bad"), at("lost")
	tags := provider.Tags{Broker: testkit.Identity, Platform: "p", Instance: "bad",
		Incarnation: s.record(lifecycle.Key{Platform: "p", Instance: "bad"}).Incarnation}
	bad.Body = []byte("{")
	expect.OK(t, s.store.Commit(t.Context(), store.Put(bad), store.Delete(lost.Key, lost.Version)))
	rows, _, err := s.console.List(t.Context(), operator.Query{What: operator.Instances})
	if len(rows) != 1 || rows[0].Instance != "good" || !errors.Is(err, ledger.ErrUnreadable) || !strings.Contains(err.Error(), "I#p#bad") {
		t.Errorf("it lists %+v and says: %v", rows, err)
	}
	good := expect.Get(s.console.Instance(t.Context(), "", "good"))(t)
	expect.Same(t, "one that can be read is found as", "good", good.Key.Instance)
	listed, err := s.store.List(t.Context(), "DIRECTORY", "", "", 0)
	for _, r := range listed.Records {
		if strings.HasSuffix(r.Sort, "#good") {
			err = errors.Join(err, s.store.Commit(t.Context(), store.Delete(r.Key, r.Version)))
		}
	}
	if err != nil || len(listed.Records) != 3 {
		t.Fatal(listed, err)
	}
	s.clock = s.clock.Add(time.Hour)
	s.finds(operator.Rebuilt{Instances: []string{"lost"}, Parameters: []string{"lost"}, Kept: 1,
		Unknown: []string{s.demo().Name(tags) + ": its record cannot be read", "records that cannot be read"}})
	view := expect.Get(s.broker.View(t.Context(), s.caller(), "good", ""))(t)
	expect.Same(t, "the parameters of the good one", `{"a":1}`, string(view.Parameters))
	if keys, _, err := s.ledger.Instances(t.Context(), "p", "", 0); len(keys) != 3 || err != nil {
		t.Errorf("the directory has %v %v", keys, err)
	}
}
