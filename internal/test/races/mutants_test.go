package races_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
)

// mutantTries is how many histories may pass before a mutant must have been
// noticed. Most are within the first ten.
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
		"CommitsWithoutCondition": {"a ledger that writes over what others wrote", everything, mutant{store: overwriting}},
		"WorkersWithoutCondition": {"CONC-09: a late worker writes over what has overtaken it", everything,
			mutant{steps: overwriting}},
		"ChecksLeftOut": {"a bind that does not look whether its instance is still there", endings, mutant{store: unchecking}},
		"StaleReads":    {"NFR-07: decisions on what was read a moment ago", everything, mutant{records: stale}},
		"CommitsLost":   {"NFR-02: a 202 for an intent that is not durable", everything, mutant{records: losing}},
		"TwoTokens": {"PROV-10: a repeated PUT begins anew", instances,
			mutant{api: tagging, records: blind(func(g tag, i *lifecycle.Record) {
				if g.verb == provision && i.State == lifecycle.Creating {
					i.State = lifecycle.Absent
				}
			}, nil)}},
		"MadeTwice": {"PROV-07: a PUT of what is there makes it again", instances,
			mutant{api: tagging, records: blind(func(g tag, i *lifecycle.Record) {
				if g.verb == provision && i.State == lifecycle.Ready {
					i.State = lifecycle.Absent
				}
			}, nil)}},
		"FailsAnew": {"PROV-30: a PUT of what has failed begins again", instances,
			mutant{api: tagging, records: blind(func(g tag, i *lifecycle.Record) {
				if g.verb == provision && i.State == lifecycle.CreateFailed {
					i.State = lifecycle.Absent
				}
			}, nil)}},
		"BoundTwice": {"BIND-02: a PUT of a binding that is there gives other credentials", bindings,
			mutant{api: tagging, records: blind(nil, func(g tag, b *lifecycle.Record) {
				if g.verb == bind && b.State == lifecycle.Ready {
					b.State = lifecycle.Absent
				}
			})}},
		"UpdatesNotInTheWay": {"CONC-01: a deletion during an update", instances,
			mutant{api: tagging, records: blind(func(g tag, i *lifecycle.Record) {
				if g.verb == deprovision && i.State == lifecycle.Updating {
					i.State = lifecycle.Ready
				}
			}, nil)}},
		"LatePuts": {"ORB-03: a PUT that was sent before a deletion begins after it", instances,
			mutant{records: blind(func(_ tag, i *lifecycle.Record) {
				i.DeleteReceived = time.Time{}
			}, nil)}},
		"TimesAlone": {"a time decides about an id that was never deleted before", instances,
			mutant{records: blind(func(_ tag, i *lifecycle.Record) {
				if i.State != lifecycle.Absent && i.DeleteReceived.IsZero() {
					i.DeleteReceived = i.CreateReceived.Add(-time.Millisecond)
				}
			}, nil)}},
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

// altered is a store whose commits are altered.
type altered struct {
	store.Store
	commit func(ctx context.Context, changes []store.Change) error
}

func (s altered) Commit(ctx context.Context, changes ...store.Change) error {
	return s.commit(ctx, changes)
}

// overwriting takes the version that it meets for the one that it was told.
func overwriting(s store.Store) store.Store {
	return altered{s, func(ctx context.Context, changes []store.Change) error {
		for {
			err := s.Commit(ctx, changes...)
			if !errors.Is(err, store.ErrConflict) {
				return err
			}
			for n := range changes {
				r, err := s.Get(ctx, changes[n].Record.Key)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return err
				}
				changes[n].Record.Version = r.Version
			}
		}
	}}
}

func unchecking(s store.Store) store.Store {
	return altered{s, func(ctx context.Context, changes []store.Change) error {
		var puts []store.Change
		for _, c := range changes {
			if c.Action != store.ActionCheck {
				puts = append(puts, c)
			}
		}
		return s.Commit(ctx, puts...)
	}}
}

// stale answers with what it read up to some milliseconds ago.
func stale(r broker.Records) broker.Records {
	return &staleRecords{Records: r, kept: map[lifecycle.Key]keptRecord{}}
}

type staleRecords struct {
	broker.Records
	mu   sync.Mutex
	kept map[lifecycle.Key]keptRecord
}

type keptRecord struct {
	lifecycle.Record
	read time.Time
}

func (s *staleRecords) Record(ctx context.Context, key lifecycle.Key, at time.Time) (lifecycle.Record, error) {
	if key.IsBinding() {
		return s.Records.Record(ctx, key, at)
	}
	s.mu.Lock()
	found, ok := s.kept[key]
	s.mu.Unlock()
	if ok && time.Since(found.read) < 5*time.Millisecond {
		return found.Record, nil
	}
	i, err := s.Records.Record(ctx, key, at)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[key] = keptRecord{i, time.Now()}
	return i, err
}

// Commit forgets everything when it was late, so that decisions are made anew.
func (s *staleRecords) Commit(ctx context.Context, changes ...ledger.Change) error {
	err := s.Records.Commit(ctx, changes...)
	if errors.Is(err, ledger.ErrConflict) {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.kept)
	}
	return err
}

// losing loses some commits and says that they were made.
func losing(r broker.Records) broker.Records { return lostRecords{r} }

type lostRecords struct{ broker.Records }

func (l lostRecords) Commit(ctx context.Context, changes ...ledger.Change) error {
	if rand.IntN(4) == 0 {
		return nil
	}
	return l.Records.Commit(ctx, changes...)
}

// A tag tells records for which request they are read.
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

func (t tagged) Bind(ctx context.Context, q broker.BindRequest) (broker.BindResult, error) {
	key := lifecycle.Key{Platform: q.Platform, Instance: q.InstanceID, Binding: q.BindingID}
	return t.api.Bind(context.WithValue(ctx, tagKey{}, tag{bind, key}), q)
}

// blind are records that look otherwise than they are.
func blind(instance func(tag, *lifecycle.Record), binding func(tag, *lifecycle.Record)) func(broker.Records) broker.Records {
	return func(r broker.Records) broker.Records { return blindRecords{r, instance, binding} }
}

type blindRecords struct {
	broker.Records
	instance func(tag, *lifecycle.Record)
	binding  func(tag, *lifecycle.Record)
}

func (b blindRecords) Record(ctx context.Context, key lifecycle.Key, at time.Time) (lifecycle.Record, error) {
	r, err := b.Records.Record(ctx, key, at)
	change := b.instance
	if key.IsBinding() {
		change = b.binding
	}
	if g, _ := ctx.Value(tagKey{}).(tag); change != nil {
		change(g, &r)
	}
	return r, err
}

// pointless finds every binding id free.
func pointless(r broker.Records) broker.Records { return pointlessRecords{r} }

type pointlessRecords struct{ broker.Records }

func (p pointlessRecords) Pointer(ctx context.Context, platform, binding string) (lifecycle.Pointer, error) {
	pointer, err := p.Records.Pointer(ctx, platform, binding)
	if g, ok := ctx.Value(tagKey{}).(tag); ok {
		pointer.Key = g.key
	}
	return pointer, err
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

func (r *rememberingAPI) Binding(ctx context.Context, c broker.Caller, instance, id string) (broker.BindingView, error) {
	v, err := r.api.Binding(ctx, c, instance, id)
	v.Grant = r.first(lifecycle.Key{Instance: instance, Binding: id}, v.Grant)
	return v, err
}

func (r *rememberingAPI) Bind(ctx context.Context, q broker.BindRequest) (broker.BindResult, error) {
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
