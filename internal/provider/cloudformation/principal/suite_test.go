package principal_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
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
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
)

const (
	scope   = plan.Scope("longshore-abcdefgh")
	settles = 4 * time.Second // of a new key in the suite
)

// small is a provider of the suite: it makes instances of things in a cloud, and binds by a Keeper.
type small struct {
	things   *cloudtest.Provider
	accounts map[string]*principaltest.Fake // by endpoints
	endpoint string                         // where the target "east" answers
	kind     plan.Principal
	now      func() time.Time
}

// keeper is one of a step about a binding.
func (p *small) keeper(of provider.Tags) *principal.Keeper {
	client := &mutated{p.accounts[p.endpoint].Client(p.things.Calls), p.things.Mutant, of}
	k := &principal.Keeper{
		IAM: client, Prover: client, Scope: scope, Broker: p.things.Broker, Now: p.now,
		Log: slog.New(slog.DiscardHandler), Reads: rate.NewLimiter(rate.Inf, 1),
		Boundary: func(offering string) string { return "arn:aws:iam::000000000001:policy/" + offering },
	}
	if client.mutant == "boundless" {
		k.Boundary = func(string) string { return "" }
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

func (p *small) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.things.Provision(ctx, in)
}

func (p *small) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.things.Update(ctx, in)
}

func (p *small) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.things.Deprovision(ctx, in)
}

// fails is the failure that was asked for.
func fails(b provider.Binding, kind operation.Kind) error {
	if all, _ := b.Instance.Settings["fail"].([]any); slices.Contains(all, any(string(kind))) {
		return provider.Failf("asked to fail")
	}
	return nil
}

func (p *small) Bind(ctx context.Context, b provider.Binding) (st provider.Status, err error) {
	if _, err = p.things.Describe(ctx, b.Instance); err == nil {
		err = fails(b, operation.Bind)
	}
	if err != nil {
		return st, err
	}
	if p.things.Mutant == "forgets-state" {
		b.State = provider.State{}
	}
	means, values := planOf(p.kind)
	st, err = p.keeper(provider.BindingTagsOf(b)).Bind(ctx, b, means, values)
	if p.things.Mutant == "keeps-secret" && err == nil && st.Done {
		st.State = nil
	}
	return st, err
}

func (p *small) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	tags := provider.BindingTagsOf(b)
	st, err := p.things.Unbind(ctx, b) // which has nothing to do but to prove the target
	if err == nil && st.Done && p.accounts[p.endpoint].Look(scope.BindingPath(tags)) != "" {
		err = fails(b, operation.Unbind)
	}
	if err != nil || !st.Done {
		return st, err
	}
	return p.keeper(tags).Unbind(ctx, b)
}

const ofKeeper = "principals " // begins the cursors of its part

func (p *small) List(ctx context.Context, cursor string) (page []provider.Holding, next string, err error) {
	rest, is := strings.CutPrefix(cursor, ofKeeper)
	if !is {
		page, next, err = p.things.List(ctx, cursor)
		if err != nil || next != "" || len(page) > 0 {
			return page, cmp.Or(next, ofKeeper), err
		}
	}
	page, next, err = p.keeper(provider.Tags{}).List(ctx, rest)
	for i := range page {
		page[i].Target = provider.Target{Name: "east", Identity: "account of " + p.endpoint}
	}
	if next != "" {
		next = ofKeeper + next
	}
	return page, next, err
}

func (p *small) Quarantine(ctx context.Context, h provider.Holding) error {
	if h.Tags.Binding == "" || p.things.Mutant == "open-in-quarantine" {
		return nil
	}
	return p.keeper(h.Tags).Quarantine(ctx, h)
}

func (p *small) Release(ctx context.Context, h provider.Holding) error {
	if h.Tags.Binding == "" || p.things.Mutant == "never-released" {
		return nil
	}
	return p.keeper(h.Tags).Release(ctx, h)
}

// factory makes harnesses over two fake accounts: those of the things, with one for principals beside each.
func factory(kind plan.Principal, mutant string) providertest.Factory {
	return func(t *testing.T) *providertest.Harness {
		h := cloudtest.Factory("cloud", mutant)(t)
		accounts := map[string]*principaltest.Fake{}
		for id, endpoint := range map[string]string{"000000000001": "east", "000000000002": "west"} {
			accounts[endpoint] = principaltest.New(id, h.Clock.Now)
			accounts[endpoint].Settles, accounts[endpoint].Page = settles, cloudtest.PageSize
		}
		over := func(things provider.Provider, endpoint string) *small {
			return &small{things.(*cloudtest.Provider), accounts, endpoint, kind, h.Clock.Now}
		}
		elsewhere, open, plant, look := h.Elsewhere, h.Open, h.Plant, h.Look
		p, east := over(h.Provider, "east"), accounts["east"]
		h.Provider, h.Inventory = p, p
		h.Elsewhere = func(t testing.TB) (provider.Provider, provider.Inventory) {
			things, _ := elsewhere(t)
			p := over(things, "west")
			return p, p
		}
		h.Open = func(t testing.TB, broker string) (provider.Provider, provider.Inventory) {
			things, _ := open(t, broker)
			p := over(things, "east")
			return p, p
		}
		h.Plant = func(t testing.TB, at, owner provider.Tags) {
			if at.Binding == "" {
				plant(t, at, owner)
				return
			}
			east.Plant(cmp.Or(kind, plan.User), scope.Binding(at), scope.BindingPath(at), owner)
		}
		h.Look = func(t testing.TB, at provider.Tags) string {
			if at.Binding == "" {
				return look(t, at)
			}
			return east.Look(scope.BindingPath(at))
		}
		h.Secrets = func(_ testing.TB, at provider.Tags) int {
			if at.Binding == "" {
				return 0
			}
			return east.Secrets(scope.BindingPath(at))
		}
		h.Opens = func(_ testing.TB, g *provider.Grant) bool {
			return east.Opens(text(g, "access_key_id"), text(g, "secret_access_key")) ||
				east.Assumes(text(g, "role_arn"), text(g, "external_id"))
		}
		return h
	}
}

// Users pass; in the subprocesses of TestMutants their Keeper's world is not sound.
func TestSound(t *testing.T) {
	// A Keeper does not read whether somebody waits.
	providertest.RunExcept(t, factory(plan.User, os.Getenv(providertest.MutantVariable)), "Synchronous/Faults",
		"Synchronous/LateCalls")
}

func TestRolesAreSound(t *testing.T) { providertest.RunOnce(t, factory(plan.Role, "")) }

// mutated is a client with a fault, which stands for a Keeper that does without what the client does.
type mutated struct {
	*principaltest.Client
	mutant string
	tags   provider.Tags
}

func (m *mutated) Get(ctx context.Context, kind plan.Principal, name string) (principal.Found, error) {
	f, err := m.Client.Get(ctx, kind, name)
	if m.mutant == "takes-foreign" && m.tags.Binding != "" {
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
