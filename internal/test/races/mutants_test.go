package races_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/storetest"
)

// mutantTries is how many histories may pass before a mutant must have been noticed. Most are within the first ten.
const mutantTries = 300

// A checker that finds nothing proves something only if it would find what is
// there: each of these brokers is broken in one place.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	mutants := map[string]struct {
		reason string
		taste  taste // that it is soonest noticed with
		mutant mutant
	}{
		"CommitsWithoutCondition": {"a ledger that writes over what others wrote", everything,
			mutant{store: storetest.Overwriting}},
		"WorkersWithoutCondition": {"CONC-09: a late worker writes over what has overtaken it", everything,
			mutant{steps: storetest.Overwriting}},
		"ChecksLeftOut": {"a bind that does not look whether its instance is still there", endings, mutant{store: unchecking}},
		"StaleReads":    {"NFR-07: decisions on what was read a moment ago", everything, mutant{records: stale}},
		"CommitsLost":   {"NFR-02: a 202 for an intent that is not durable", everything, mutant{records: losing}},
		"TwoTokens": {"PROV-10: a repeated PUT begins anew", instances,
			blind(provision, lifecycle.Creating, lifecycle.Absent)},
		"MadeTwice": {"PROV-07: a PUT of what is there makes it again", instances,
			blind(provision, lifecycle.Ready, lifecycle.Absent)},
		"FailsAnew": {"PROV-30: a PUT of what has failed begins again", instances,
			blind(provision, lifecycle.CreateFailed, lifecycle.Absent)},
		"BoundTwice": {"BIND-02: a PUT of a binding that is there gives other credentials", bindings,
			blind(bind, lifecycle.Ready, lifecycle.Absent)},
		"UpdatesNotInTheWay": {"CONC-01: a deletion during an update", instances,
			blind(deprovision, lifecycle.Updating, lifecycle.Ready)},
		"LatePuts": {"ORB-03: a PUT that was sent before a deletion begins after it", instances,
			instancesAs(func(i *lifecycle.Record) { i.DeleteReceived = time.Time{} })},
		"TimesAlone": {"a time decides about an id that was never deleted before", instances,
			instancesAs(func(i *lifecycle.Record) {
				if i.State != lifecycle.Absent && i.DeleteReceived.IsZero() {
					i.DeleteReceived = i.CreateReceived.Add(-time.Millisecond)
				}
			})},
		"IDsGivenTwice":   {"BIND-19: one binding id on two instances", bindings, mutant{api: tagging, records: pointless}},
		"EarlySuccess":    {"LOP-01: success before it is so", everything, mutant{api: hasty}},
		"CredentialsKept": {"IDEM-09: a new binding with the credentials of an old one", bindings, mutant{api: remembering}},
	}
	seed := seedOf(t)
	for name, tc := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z := budgets["Bolt"].size
			z.taste = &tc.taste
			for n := range mutantTries {
				c := newChronicle(newArena(t, newBolt(t), tc.mutant), z.groups)
				c.play(newPlot(uint64(seed+n), z))
				for _, h := range c.groups {
					if h.illegal() {
						culprit, _ := h.explained("")
						t.Logf("%s: noticed in history %d: %s", tc.reason, n+1, culprit)
						return
					}
				}
			}
			t.Errorf("%s: not noticed in %d histories; SEED=%d", tc.reason, mutantTries, seed)
		})
	}
}

// unchecking is a store that leaves out what a commit only checks.
func unchecking(s store.Store) store.Store { return uncheckingStore{s} }

type uncheckingStore struct{ store.Store }

func (s uncheckingStore) Commit(ctx context.Context, changes ...store.Change) error {
	checks := func(c store.Change) bool { return c.Action == store.ActionCheck }
	return s.Store.Commit(ctx, slices.DeleteFunc(slices.Clone(changes), checks)...)
}

// alteredRecords are records that tell otherwise than it is, or commit otherwise than they are asked to.
type alteredRecords struct {
	broker.Records
	record  func(context.Context, lifecycle.Key, *lifecycle.Record)
	pointer func(context.Context, *lifecycle.Pointer)
	commit  func(commit func() error) error
}

func (a alteredRecords) Record(ctx context.Context, key lifecycle.Key, at time.Time) (lifecycle.Record, error) {
	r, err := a.Records.Record(ctx, key, at)
	if a.record != nil {
		a.record(ctx, key, &r)
	}
	return r, err
}

func (a alteredRecords) Pointer(ctx context.Context, platform, binding string) (lifecycle.Pointer, error) {
	p, err := a.Records.Pointer(ctx, platform, binding)
	if a.pointer != nil {
		a.pointer(ctx, &p)
	}
	return p, err
}

func (a alteredRecords) Commit(ctx context.Context, changes ...ledger.Change) error {
	commit := func() error { return a.Records.Commit(ctx, changes...) }
	if a.commit != nil {
		return a.commit(commit)
	}
	return commit()
}

// stale answers with what it read up to some milliseconds ago. When a commit was late, it forgets everything, so that decisions
// are made anew.
func stale(r broker.Records) broker.Records {
	type read struct {
		lifecycle.Record
		at time.Time
	}
	var mu sync.Mutex
	kept := map[lifecycle.Key]read{}
	return alteredRecords{Records: r, record: func(_ context.Context, key lifecycle.Key, r *lifecycle.Record) {
		mu.Lock()
		defer mu.Unlock()
		if found, ok := kept[key]; ok && time.Since(found.at) < 5*time.Millisecond {
			*r = found.Record
		} else if !key.IsBinding() {
			kept[key] = read{*r, time.Now()}
		}
	}, commit: func(commit func() error) error {
		err := commit()
		if errors.Is(err, ledger.ErrConflict) {
			mu.Lock()
			defer mu.Unlock()
			clear(kept)
		}
		return err
	}}
}

// losing loses some commits and says that they were made.
func losing(r broker.Records) broker.Records {
	return alteredRecords{Records: r, commit: func(commit func() error) error {
		if rand.IntN(4) == 0 {
			return nil
		}
		return commit()
	}}
}

// A tag tells records for which request they are read: its verb, and the key of a bind.
type tag struct {
	verb verb
	key  lifecycle.Key
}

type tagKey struct{}

// tagging is a broker that tags its requests.
func tagging(a api) api { return tagged{a} }

type tagged struct{ api }

func (t tagged) Provision(ctx context.Context, q broker.ProvisionRequest) (broker.Result, error) {
	return t.api.Provision(context.WithValue(ctx, tagKey{}, tag{verb: provision}), q)
}

func (t tagged) Delete(ctx context.Context, q broker.DeleteRequest) (broker.Result, error) {
	if q.BindingID == "" {
		ctx = context.WithValue(ctx, tagKey{}, tag{verb: deprovision})
	}
	return t.api.Delete(ctx, q)
}

func (t tagged) Bind(ctx context.Context, q broker.BindRequest) (broker.Result, error) {
	key := lifecycle.Key{Platform: q.Platform, Instance: q.InstanceID, Binding: q.BindingID}
	return t.api.Bind(context.WithValue(ctx, tagKey{}, tag{bind, key}), q)
}

// blind takes one state for another when a request of the verb looks.
func blind(of verb, is, looks lifecycle.State) mutant {
	return mutant{api: tagging, records: func(r broker.Records) broker.Records {
		return alteredRecords{Records: r, record: func(ctx context.Context, key lifecycle.Key, r *lifecycle.Record) {
			g, tagged := ctx.Value(tagKey{}).(tag)
			if tagged && g.verb == of && key.IsBinding() == of.ofBinding() && r.State == is {
				r.State = looks
			}
		}}
	}}
}

// instancesAs shows each instance as the function makes it.
func instancesAs(change func(*lifecycle.Record)) mutant {
	return mutant{records: func(r broker.Records) broker.Records {
		return alteredRecords{Records: r, record: func(_ context.Context, key lifecycle.Key, r *lifecycle.Record) {
			if !key.IsBinding() {
				change(r)
			}
		}}
	}}
}

// pointless finds every binding id free.
func pointless(r broker.Records) broker.Records {
	return alteredRecords{Records: r, pointer: func(ctx context.Context, p *lifecycle.Pointer) {
		if g, ok := ctx.Value(tagKey{}).(tag); ok {
			p.Key = g.key
		}
	}}
}

// hasty tells of success as soon as an operation runs.
func hasty(a api) api { return hastyAPI{a} }

type hastyAPI struct{ api }

func (h hastyAPI) LastOperation(ctx context.Context, key lifecycle.Key, token string) (broker.Poll, error) {
	p, err := h.api.LastOperation(ctx, key, token)
	if p.Operation.Phase == lifecycle.InProgress {
		p.Operation.Phase = lifecycle.Succeeded
	}
	return p, err
}

// remembering gives the credentials that it gave first.
func remembering(a api) api {
	return &rememberingAPI{api: a, kept: map[lifecycle.Key]*provider.Grant{}}
}

type rememberingAPI struct {
	api
	mu   sync.Mutex
	kept map[lifecycle.Key]*provider.Grant
}

func (r *rememberingAPI) View(ctx context.Context, c broker.Caller, instance, id string) (broker.View, error) {
	v, err := r.api.View(ctx, c, instance, id)
	v.Grant = r.first(lifecycle.Key{Instance: instance, Binding: id}, v.Grant)
	return v, err
}

func (r *rememberingAPI) Bind(ctx context.Context, q broker.BindRequest) (broker.Result, error) {
	v, err := r.api.Bind(ctx, q)
	v.Grant = r.first(lifecycle.Key{Instance: q.InstanceID, Binding: q.BindingID}, v.Grant)
	return v, err
}

func (r *rememberingAPI) first(k lifecycle.Key, g *provider.Grant) *provider.Grant {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g == nil {
		return nil
	}
	if r.kept[k] == nil {
		r.kept[k] = g
	}
	return r.kept[k]
}
