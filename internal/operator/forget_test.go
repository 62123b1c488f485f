package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/test/expect"
)

// people are what their platforms say of two users.
var people = map[string]string{
	"ann": `{"username":"ann","uid":"u-1","groups":["admin"]}`,
	"bob": `{"user_name":"bob","email":"bob@example.com","user_id":"u-2"}`,
}

// asks has a user provision, bind, unbind or delete.
func (s *site) asks(user, what, instance, binding, plan string) {
	s.Helper()
	s.asker, s.said = lifecycle.Asker{IdentityPlatform: "somewhere", Request: "request-of-" + user}, json.RawMessage(people[user])
	var err error
	switch what {
	case "provision":
		_, err = s.broker.Provision(s.Context(), s.order(instance, plan))
	case "bind":
		_, err = s.broker.Bind(s.Context(), s.login(instance, binding, plan))
	case "delete":
		_, err = s.broker.Delete(s.Context(), s.removal(instance, binding, plan))
	}
	expect.OK(s, err, user, what, instance, binding)
}

// everything is all that the table holds, with histories.
func (s *site) everything() (all ledger.Everything) {
	s.Helper()
	for page, err := range paging.All(s.Context(), func(ctx context.Context, cursor string) ([]ledger.Everything, string, error) {
		page, next, err := s.ledger.ScanPage(ctx, cursor, true)
		return []ledger.Everything{page}, next, err
	}) {
		expect.OK(s, err)
		all.Records, all.Past = append(all.Records, page.Records...), append(all.Past, page.Past...)
		all.Entries = append(all.Entries, page.Entries...)
	}
	return all
}

// tells is how much tells that the user asked.
func (s *site) tells(user string) (is operator.Erasure) {
	s.Helper()
	names := datakey.New(s.ledger, local(s.T, 0))
	add := func(count *int, key lifecycle.Key, asker lifecycle.Asker) {
		who := expect.Get(names.Who(s.Context(), lifecycle.Entry{Key: key, Asker: asker}))(s)
		if who == user {
			*count++
		}
		if (who == "") != asker.IsZero() {
			s.Errorf("%v: a part of who asked is left: %+v", key, asker)
		}
	}
	all := s.everything()
	for _, e := range all.Entries {
		add(&is.Entries, e.Key, e.Asker)
	}
	for _, p := range all.Past {
		add(&is.Operations, p.Key, p.Operation.Asker)
	}
	for _, r := range all.Records {
		switch {
		case r.Operation == nil:
		case r.InProgress():
			add(&is.Running, r.Key, r.Operation.Asker)
		default:
			add(&is.Operations, r.Key, r.Operation.Asker)
		}
	}
	return is
}

// used is a site where two users have asked for much, former lives among it, and one operation of each is in progress.
func used(t *testing.T) (s *site, running lifecycle.Record) {
	s = newSite(t)
	s.asks("ann", "provision", "i", "", "sync")
	s.asks("ann", "bind", "i", "b", "sync")
	s.asks("bob", "bind", "i", "c", "sync")
	s.asks("bob", "delete", "i", "b", "sync")
	s.asks("bob", "provision", "lived", "", "sync") // and lives again
	s.asks("ann", "delete", "lived", "", "sync")
	s.asks("ann", "provision", "lived", "", "sync")
	s.asks("bob", "provision", "kept", "", "retained")
	s.asks("ann", "delete", "kept", "", "retained")
	s.stalled = true
	s.asks("ann", "provision", "slow", "", "async")
	s.asks("bob", "provision", "slow-too", "", "async")
	running = s.record(lifecycle.Key{Platform: "p", Instance: "slow"})
	expect.Same(t, "it runs", true, running.InProgress())
	return s, running
}

// One user is erased from all that has ended, in every life, and nothing else changes. An operation in progress keeps who asked
// until it ends, and what comes after is erased by the next run.
func TestForget(t *testing.T) {
	s, running := used(t)
	before, ann, bob := s.everything(), s.tells("ann"), s.tells("bob")
	if ann.Entries != 5 || ann.Operations < 4 || ann.Running != 1 || bob.Entries != 4 || bob.Running != 1 {
		t.Fatalf("the story is another: %+v and %+v", ann, bob)
	}
	erases := func(user string, want operator.Erasure) {
		t.Helper()
		expect.Same(t, "what is erased of "+user, want, expect.Get(s.console.Forget(t.Context(), user))(t))
	}
	did, err := s.console.Forget(t.Context(), "")
	isRefused(t, "nobody", err)
	expect.Same(t, "what is erased of nobody", operator.Erasure{}, did)
	for _, stranger := range []string{"an", "Ann", "admin", "somewhere"} {
		erases(stranger, operator.Erasure{})
	}
	erases("ann", ann)
	left := operator.Erasure{Running: 1}
	expect.Same(t, "what is left of the one", left, s.tells("ann"))
	expect.Same(t, "what is left of the other", bob, s.tells("bob"))
	isVersion := func(p cmp.Path) bool { return p.Last().String() == ".Version" }
	expect.Same(t, "what else there is", before, s.everything(), cmpopts.IgnoreTypes(lifecycle.Asker{}),
		cmp.FilterPath(isVersion, cmp.Ignore()))
	erases("ann", left)
	expect.OK(t, s.Finish(t.Context(), workflow.Of(running)))
	erases("u-1", operator.Erasure{Entries: 1, Operations: 1}) // her id
	erases("bob@example.com", bob)
}

// A meddled store changes a record after it was scanned, once.
type meddled struct {
	store.Store
	meddle func()
}

func (m *meddled) Scan(ctx context.Context, cursor string) (store.Page, error) {
	page, err := m.Store.Scan(ctx, cursor)
	if meddle := m.meddle; meddle != nil {
		m.meddle = nil
		meddle()
	}
	return page, err
}

// A record that changes meanwhile is read again, and nothing is counted twice.
func TestForgetMeetsConflicts(t *testing.T) {
	s, _ := used(t)
	ann := s.tells("ann")
	s.console.Records = ledger.New(&meddled{s.store, func() {
		r, err := s.ledger.Record(t.Context(), lifecycle.Key{Platform: "p", Instance: "i"}, s.clock)
		r.Unusable = true
		expect.OK(t, errors.Join(err, s.ledger.Commit(t.Context(), ledger.Put(r))))
	}}, s.id)
	expect.Same(t, "what is erased", ann, expect.Get(s.console.Forget(t.Context(), "ann"))(t))
	r := s.record(lifecycle.Key{Platform: "p", Instance: "i"})
	if !r.Unusable || !r.Operation.Asker.IsZero() {
		t.Errorf("the other change is lost: %+v", r)
	}
}

// Without the key, nothing is erased, and the error does not tell whom it was about. Forget goes around what cannot be read, and
// says so.
func TestForgetGoesAroundDamage(t *testing.T) {
	s, _ := used(t)
	ann := s.tells("ann")
	s.sealsWith(shut{local(t, 0)})
	s.console.Records = ledger.New(&leafed{Store: s.store}, s.id) // of many pages, of which one is tried
	did, err := s.console.Forget(t.Context(), "ann")
	if !errors.Is(err, errShut) || did != (operator.Erasure{}) || strings.Contains(err.Error(), "ann") ||
		strings.Count(err.Error(), errShut.Error()) != 1 {
		t.Errorf("%+v %v", did, err)
	}
	s.sealsWith(local(t, 0))
	damage := errors.New("a record is damaged")
	s.console.Records = ledger.New(&leafed{Store: s.store, fails: damage}, s.id)
	if did, err := s.console.Forget(t.Context(), "ann"); !errors.Is(err, damage) || did != ann ||
		!strings.HasPrefix(err.Error(), "5 history entries") {
		t.Errorf("erased %+v, want %+v: %v", did, ann, err)
	}
}

// shut is a vault that cannot be reached.
type shut struct{ vault.Vault }

var errShut = errors.New("the key service does not answer")

func (shut) Open(context.Context, vault.Label, []byte) ([]byte, error) { return nil, errShut }
