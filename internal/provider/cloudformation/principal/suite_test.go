package principal_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
	"github.com/longshore/longshore/internal/test/principaltest"
	"github.com/longshore/longshore/internal/test/providertest"
)

const (
	pageSize = 3
	scope    = plan.Scope("longshore-abcdefgh")
	settles  = 4 * time.Second // of a new key in the suite
)

// A world is two accounts, in which instances are records, and bindings principals.
type world struct {
	now      func() time.Time
	mu       sync.Mutex
	accounts map[string]*fakeAccount // by endpoints
}

type fakeAccount struct {
	things map[string]thing
	iam    *principaltest.Fake
}

type thing struct {
	tags    provider.Tags
	config  string
	created time.Time
}

func newWorld(now func() time.Time) *world {
	w := &world{now: now, accounts: map[string]*fakeAccount{}}
	for i, endpoint := range []string{"east", "west"} {
		iam := principaltest.New(fmt.Sprintf("%012d", i+1), now)
		iam.Settles = settles
		w.accounts[endpoint] = &fakeAccount{things: map[string]thing{}, iam: iam}
	}
	return w
}

// small is a provider of the suite: the shortest that binds by a Keeper.
type small struct {
	w        *world
	broker   string
	endpoint string // where the target "east" answers
	kind     plan.Principal
	mutant   string
	calls    *providertest.Calls
}

func (p *small) keeper(m *mutated) *principal.Keeper {
	client := p.w.accounts[p.endpoint].iam.Client(p.calls)
	k := &principal.Keeper{
		IAM: client, Prover: client, Scope: scope, Broker: p.broker, Now: p.w.now, Log: slog.New(slog.DiscardHandler),
		Boundary: func(offering string) string { return "arn:aws:iam::000000000001:policy/" + offering },
		Reads:    rate.NewLimiter(rate.Inf, 1),
	}
	k.Page(pageSize)
	if m != nil {
		m.Client = client
		k.IAM, k.Prover = m, m
		if m.mutant == "boundless" {
			k.Boundary = func(string) string { return "" }
		}
	}
	return k
}

// planOf is what the suite's plan means.
func planOf(kind plan.Principal) (plan.Settings, map[string]string) {
	m := plan.Settings{
		Format: plan.Format, Offering: "thing", Principal: kind, Assume: []string{"123456789012"},
		Policy: json.RawMessage(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"x:Use","Resource":"${Arn}"}]}`),
		Proof:  &plan.Proof{Service: "x"}, Credentials: map[string]string{"arn": "${Arn}"},
	}
	return m, map[string]string{"Arn": "arn:aws:x:::thing", plan.ValueRegion: "us-east-1", plan.ValuePartition: "aws"}
}

func (p *small) name(t provider.Tags) string {
	return provider.Name("small", "i", t.OfInstance())
}

// at proves the target, as each step does.
func (p *small) at(ctx context.Context, t provider.Target) (*fakeAccount, *provider.Status, error) {
	identity := "account of " + p.endpoint
	if err := p.calls.Call(ctx, func() error { return nil }); err != nil {
		return nil, nil, err
	}
	switch {
	case t.Identity == "":
		learnt := provider.Target{Name: "east", Identity: identity}
		return nil, &provider.Status{Target: &learnt, After: time.Second}, nil
	case t.Identity != identity:
		return nil, nil, fmt.Errorf("target %q is another one", t.Name)
	}
	return p.w.accounts[p.endpoint], nil, nil
}

// instance makes one call about an instance's record.
func (p *small) instance(ctx context.Context, in provider.Instance, call func(things map[string]thing, t thing,
	there bool) error) (
	provider.Status, error,
) {
	a, learnt, err := p.at(ctx, in.Target)
	if err != nil {
		return provider.Status{}, err
	}
	if learnt != nil {
		return *learnt, nil
	}
	err = p.calls.Call(ctx, func() error {
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		t, there := a.things[p.name(provider.TagsOf(in))]
		switch {
		case there && t.tags != provider.TagsOf(in):
			return provider.Failf("not ours")
		case in.Settings["fail"] == string(in.Operation.Kind) && (there || in.Operation.Kind == operation.Provision):
			return provider.Failf("asked to fail")
		}
		return call(a.things, t, there)
	})
	return provider.Status{Done: err == nil}, err
}

func config(in provider.Instance) string { return fmt.Sprintf("%s %s", in.Snapshot, in.Parameters) }

func (p *small) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.instance(ctx, in, func(things map[string]thing, t thing, there bool) error {
		if !there || t.tags != provider.TagsOf(in) {
			things[p.name(provider.TagsOf(in))] = thing{provider.TagsOf(in), config(in), p.w.now()}
		}
		return nil
	})
}

func (p *small) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.instance(ctx, in, func(things map[string]thing, t thing, there bool) error {
		if t.tags != provider.TagsOf(in) {
			return provider.Failf("there is no such instance")
		}
		t.config = config(in)
		things[p.name(t.tags)] = t
		return nil
	})
}

func (p *small) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.instance(ctx, in, func(things map[string]thing, t thing, there bool) error {
		delete(things, p.name(provider.TagsOf(in)))
		return nil
	})
}

func (p *small) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	st, err := p.instance(ctx, b.Instance, func(_ map[string]thing, t thing, _ bool) error {
		if t.tags != provider.TagsOf(b.Instance) {
			return provider.Failf("there is no such instance")
		}
		return nil
	})
	if err != nil || !st.Done {
		return st, err
	}
	var m *mutated
	if p.mutant != "" {
		m = &mutated{mutant: p.mutant, tags: provider.BindingTagsOf(b)}
	}
	if p.mutant == "forgets-state" {
		b.State = provider.State{}
	}
	means, values := planOf(p.kind)
	st, err = p.keeper(m).Bind(ctx, b, means, values)
	if p.mutant == "keeps-secret" && err == nil && st.Done {
		st.State = nil
	}
	return st, err
}

func (p *small) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	_, learnt, err := p.at(ctx, b.Instance.Target)
	if err != nil {
		return provider.Status{}, err
	}
	if learnt != nil {
		return *learnt, nil
	}
	if iam := p.w.accounts[p.endpoint].iam; b.Instance.Settings["fail"] == string(operation.Unbind) &&
		iam.Look(scope.BindingPath(provider.BindingTagsOf(b))) != "" {
		return provider.Status{}, provider.Failf("asked to fail")
	}
	var m *mutated
	if p.mutant != "" {
		m = &mutated{mutant: p.mutant, tags: provider.BindingTagsOf(b)}
	}
	return p.keeper(m).Unbind(ctx, b)
}

const ofKeeper = "principals " // begins the cursors of its part

func (p *small) List(ctx context.Context, cursor string) (page []provider.Holding, next string, err error) {
	_, learnt, err := p.at(ctx, provider.Target{Name: "east"})
	if err != nil {
		return nil, "", err
	}
	if page, next = p.instances(cursor, *learnt.Target); next != "" {
		return page, next, nil
	}
	if rest, ok := strings.CutPrefix(cursor, ofKeeper); ok || len(page) == 0 {
		if !ok {
			rest = "" // it goes on behind the instances
		}
		page, next, err = p.keeper(nil).List(ctx, rest)
		for i := range page {
			page[i].Target = *learnt.Target
		}
		if next != "" {
			next = ofKeeper + next
		}
		return page, next, err
	}
	return page, ofKeeper, nil
}

// instances is a page of them; next is empty after the last.
func (p *small) instances(cursor string, at provider.Target) (page []provider.Holding, next string) {
	if strings.HasPrefix(cursor, ofKeeper) {
		return nil, ""
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	things := p.w.accounts[p.endpoint].things
	for _, name := range slices.Sorted(maps.Keys(things)) {
		switch t := things[name]; {
		case name <= cursor || t.tags.Broker != p.broker:
		case len(page) == pageSize:
			return page, page[pageSize-1].Name
		default:
			page = append(page, provider.Holding{Name: name, Tags: t.tags, Created: t.created, Target: at})
		}
	}
	return page, ""
}

func (p *small) Quarantine(ctx context.Context, h provider.Holding) error {
	if h.Tags.Binding == "" || p.mutant == "open-in-quarantine" {
		return nil
	}
	return p.keeper(nil).Quarantine(ctx, h)
}

func (p *small) Release(ctx context.Context, h provider.Holding) error {
	if h.Tags.Binding == "" || p.mutant == "never-released" {
		return nil
	}
	return p.keeper(nil).Release(ctx, h)
}

// factory makes harnesses over two fake accounts.
func factory(kind plan.Principal, mutant string) providertest.Factory {
	return func(*testing.T) *providertest.Harness {
		clock := providertest.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
		w := newWorld(clock.Now)
		calls := &providertest.Calls{}
		open := func(broker, endpoint string, calls *providertest.Calls) *small {
			return &small{w: w, broker: broker, endpoint: endpoint, kind: kind, mutant: mutant, calls: calls}
		}
		p := open("broker-1", "east", calls)
		return &providertest.Harness{
			Provider: p, Inventory: p, Broker: "broker-1", Clock: clock, Target: provider.Target{Name: "east"},
			Elsewhere: func(testing.TB) (provider.Provider, provider.Inventory) {
				p := open("broker-1", "west", &providertest.Calls{})
				return p, p
			},
			ServiceID: "service-1", PlanID: "plan-1", Settings: map[string]any{"size": "small"},
			Parameters: providertest.Note, Fail: providertest.FailBySetting,
			Plant: func(_ testing.TB, at, owner provider.Tags) {
				if at.Binding != "" {
					w.accounts["east"].iam.Plant(cmp.Or(kind, plan.User), scope.Binding(at), scope.BindingPath(at), owner)
					return
				}
				w.accounts["east"].things[p.name(at)] = thing{tags: owner, created: clock.Now()}
			},
			Look: func(_ testing.TB, at provider.Tags) string { return w.look(p, at) },
			Secrets: func(_ testing.TB, at provider.Tags) (n int) {
				if at.Binding == "" {
					return 0
				}
				return w.accounts["east"].iam.Secrets(scope.BindingPath(at))
			},
			Opens: func(_ testing.TB, g *provider.Grant) bool {
				c := func(name string) string { text, _ := g.Credentials[name].(string); return text }
				iam := w.accounts["east"].iam
				return iam.Opens(c("access_key_id"), c("secret_access_key")) || iam.Assumes(c("role_arn"), c("external_id"))
			},
			Falter: calls.Arm,
			Open: func(_ testing.TB, broker string) (provider.Provider, provider.Inventory) {
				p := open(broker, "east", &providertest.Calls{})
				return p, p
			},
			PageSize: pageSize,
		}
	}
}

func (w *world) look(p *small, at provider.Tags) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at.Binding != "" {
		return w.accounts["east"].iam.Look(scope.BindingPath(at))
	}
	if t, ok := w.accounts["east"].things[p.name(at)]; ok {
		return fmt.Sprintf("%+v %s", t.tags, t.config)
	}
	return ""
}

// Users pass; in the subprocesses of TestMutants their Keeper's world is not sound.
func TestSound(t *testing.T) {
	// A Keeper does not read whether somebody waits.
	providertest.RunExcept(t, factory(plan.User, os.Getenv(providertest.MutantVariable)), "Synchronous/Faults",
		"Synchronous/LateCalls")
}

// The race detector needs the one case that has several callers.
func TestTwoCallers(t *testing.T) { providertest.RunTwoCallers(t, factory(plan.User, "")) }

func TestRolesAreSound(t *testing.T) { providertest.RunOnce(t, factory(plan.Role, "")) }

// mutated is a client with a fault, which stands for a Keeper that does without what the client does.
type mutated struct {
	*principaltest.Client
	mutant string
	tags   provider.Tags
}

func (m *mutated) Get(ctx context.Context, kind plan.Principal, name string) (principal.Found, error) {
	f, err := m.Client.Get(ctx, kind, name)
	if m.mutant == "takes-foreign" {
		for _, l := range label.Write(m.tags) {
			f.Tags[l.Name] = l.Value
		}
	}
	return f, err
}

func (m *mutated) DeleteKey(ctx context.Context, user, id string) error {
	if m.mutant == "leftover-key" {
		return nil
	}
	return m.Client.DeleteKey(ctx, user, id)
}

func (m *mutated) Prove(ctx context.Context, k principal.Key, proof *plan.Proof, values map[string]string) (bool, string, error) {
	if m.mutant == "proves-nothing" {
		return true, "", nil
	}
	return m.Client.Prove(ctx, k, proof, values)
}

// The suite catches each mutant of a Keeper by the case that is there for it.
func TestMutants(t *testing.T) {
	providertest.RunMutants(t, map[string]providertest.Mutant{
		"boundless":          {Reason: "a principal has a boundary", Caught: "Lifecycle"},
		"forgets-state":      {Reason: "a key that is recorded is granted", Caught: "Lifecycle"},
		"keeps-secret":       {Reason: "a secret leaves the state with the grant", Caught: "Grants"},
		"leftover-key":       {Reason: "a key that was never recorded is revoked", Caught: "Faults"},
		"never-released":     {Reason: "what is released opens as before", Caught: "Quarantine"},
		"open-in-quarantine": {Reason: "what is in quarantine opens to nobody", Caught: "Quarantine"},
		"proves-nothing":     {Reason: "a key works when it is granted", Caught: "Lifecycle"},
		"takes-foreign":      {Reason: "what is not ours is left alone", Caught: "NotOurs"},
	})
}
