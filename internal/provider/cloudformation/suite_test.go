package cloudformation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
	"github.com/longshore/longshore/internal/test/crashtest"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/testkit"
)

const (
	here, elsewhere = "111122223333", "444455556666"
	suitePage       = 3
	suiteTemplate   = `{"Resources":{"Bucket":{"Type":"AWS::S3::Bucket"}}}`
)

// A planned provider gets a snapshot that follows from the plan's settings, as it has one from the catalog.
type planned struct {
	*Provider
	*mutation
}

func snapshotWith(settings map[string]any) json.RawMessage {
	fail, _ := settings["fail"].(string)
	kind, _ := settings["principal"].(string)
	m := plan.Settings{
		Principal: plan.Principal(kind), Assume: []string{"123456789012"},
		Format: plan.Format, Offering: "s3", Template: plan.Digest([]byte(suiteTemplate)),
		Resources:  map[string]string{"Bucket": kindBucket},
		Parameters: map[string]plan.Source{"Note": {Parameter: "note"}, "Fail": {Value: &fail}},
		OnDelete:   plan.Empty, Proof: &plan.Proof{Service: "s3"},
		Policy: json.RawMessage(`{"Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"${Note}"}]}`),
	}
	switch operation.Kind(fail) {
	case operation.Provision:
		fail = "create"
	case operation.Deprovision:
		m.OnDelete = plan.Refuse
	}
	raw, _ := json.Marshal(m)
	return raw
}

func withPlan(in provider.Instance) provider.Instance {
	if in.Snapshot != nil || in.Settings != nil {
		in.Snapshot = snapshotWith(in.Settings)
	}
	if in.Former != nil {
		in.Former = snapshotWith(nil)
	}
	return in
}

func (p planned) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.Provider.Provision(ctx, withPlan(in))
}

func (p planned) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.Provider.Update(ctx, withPlan(in))
}

func (p planned) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.Provider.Deprovision(ctx, withPlan(in))
}

func (p planned) Describe(ctx context.Context, in provider.Instance) (provider.Facts, error) {
	return p.Provider.Describe(ctx, withPlan(in))
}

func (p planned) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	if providertest.Fails(b.Instance) {
		return provider.Status{}, provider.Failf("asked to fail")
	}
	b.Instance = withPlan(b.Instance)
	if p.is("takes-foreign") {
		p.of = provider.BindingTagsOf(b)
	}
	if p.is("forgets-state") {
		b.State = provider.State{}
	}
	st, err := p.Provider.Bind(ctx, b)
	if p.is("keeps-secret") && err == nil && st.Done {
		st.State = nil
	}
	return st, err
}

func (p planned) Quarantine(ctx context.Context, h provider.Holding) error {
	if p.is("open-in-quarantine") {
		return nil
	}
	return p.Provider.Quarantine(ctx, h)
}

func (p planned) Release(ctx context.Context, h provider.Holding) error {
	if p.is("never-released") {
		return nil
	}
	return p.Provider.Release(ctx, h)
}

func (p planned) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	if providertest.Fails(b.Instance) {
		return provider.Status{}, provider.Failf("asked to fail")
	}
	return p.Provider.Unbind(ctx, b)
}

// over makes a provider over a fake.
func (f *fake) over(broker, at string, call func(context.Context, string, func() error) error) *Provider {
	p := New(Options{
		Broker: broker, Scope: plan.ScopeOf("suite"), Now: f.now, Emulated: f.emulated,
		File: func(digest string) ([]byte, bool) {
			return []byte(suiteTemplate), digest == plan.Digest([]byte(suiteTemplate))
		},
	})
	p.Config.Region = "eu-central-1"
	p.open = func(string, plan.Target) (cloud, func(plan.Location) *principal.Keeper) {
		c := fakeClient{fake: f, at: at, call: call, page: suitePage}
		return c, func(plan.Location) *principal.Keeper { return f.keeper(p, at, call) }
	}
	return p
}

// keeper keeps the principals of a provider. The names of its calls begin with iam.
func (f *fake) keeper(p *Provider, at string, call func(context.Context, string, func() error) error) *principal.Keeper {
	iam := f.iam(at).By(func(ctx context.Context, name string, do func() error) error { return call(ctx, "iam "+name, do) })
	return &principal.Keeper{IAM: iam, Prover: iam, Scope: p.Scope, Broker: p.Broker, Now: p.Now, Log: p.Log,
		Reads:    rate.NewLimiter(rate.Inf, 1),
		Boundary: func(offering string) string { return "arn:aws:iam::" + here + ":policy/" + offering }}
}

func factory(mutant string, emulated bool, kind plan.Principal) providertest.Factory {
	return func(*testing.T) *providertest.Harness {
		clock := providertest.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
		f, calls := newFake(clock.Now), &providertest.Calls{}
		f.emulated, f.settles = emulated, keySettles
		open := func(broker, at string, calls *providertest.Calls) planned {
			p := f.over(broker, at, func(ctx context.Context, _ string, do func() error) error { return calls.Call(ctx, do) })
			m := &mutation{name: mutant}
			m.into(p)
			return planned{p, m}
		}
		p := open("broker-1", here, calls)
		return &providertest.Harness{
			Provider: p, Inventory: p, Broker: "broker-1", Clock: clock, Target: provider.Target{Name: plan.DefaultTarget},
			Elsewhere: func(testing.TB) (provider.Provider, provider.Inventory) {
				p := open("broker-1", elsewhere, &providertest.Calls{})
				return p, p
			},
			ServiceID: "service-1", PlanID: "plan-1", Settings: map[string]any{"size": "small", "principal": string(kind)},
			Parameters: providertest.Note, Fail: providertest.FailBySetting,
			Plant: func(_ testing.TB, at, owner provider.Tags) { f.plant(p.Scope, kind, at, owner) },
			Look:  func(_ testing.TB, at provider.Tags) string { return f.describe(p.Scope, at) },
			Opens: func(_ testing.TB, g *provider.Grant) bool { return f.opens(g) },
			Secrets: func(_ testing.TB, at provider.Tags) int {
				path := p.Scope.BindingPath(at)
				return f.iam(here).Secrets(path) + f.iam(elsewhere).Secrets(path)
			},
			Falter: calls.Arm,
			Open: func(_ testing.TB, broker string) (provider.Provider, provider.Inventory) {
				p := open(broker, here, &providertest.Calls{})
				return p, p
			},
			PageSize: suitePage,
		}
	}
}

// scenePlace is where the suite orders.
var scenePlace = provider.Place{Organization: "organization-1", Space: "space-1"}

// orderOf is the order of the instance with these tags.
func orderOf(t provider.Tags, at provider.Place) provider.Instance {
	return provider.Instance{Broker: t.Broker, Platform: t.Platform, ID: t.Instance, Incarnation: t.Incarnation, Origin: t.Origin,
		Place: at}
}

// nameIn is the name of the stack of an instance where it is ordered.
func nameIn(s plan.Scope, in provider.Instance) string {
	return s.Stack(provider.TagsOf(in), plan.SpaceOf(in))
}

// plant makes a stack or a principal without asking anybody.
func (f *fake) plant(scope plan.Scope, kind plan.Principal, at, owner provider.Tags) {
	if at.Binding != "" {
		f.iam(here).Plant(kind, scope.Binding(at), scope.BindingPath(at), owner)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids++
	s := &fakeStack{stack: stack{id: fmt.Sprintf("planted-%d", f.ids), name: nameIn(scope, orderOf(at, scenePlace)),
		status: createComplete, created: f.now()}, tokens: map[string]bool{}}
	s.set(order{labels: label.Write(owner)})
	a := f.account(here)
	a.stacks = append(a.stacks, s)
}

func (f *fake) describe(scope plan.Scope, at provider.Tags) (text string) {
	if at.Binding != "" {
		return f.iam(here).Look(scope.BindingPath(at)) + f.iam(elsewhere).Look(scope.BindingPath(at))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range []string{here, elsewhere} {
		for _, s := range f.account(name).stacks {
			if _, is := scope.SpaceIn(s.name, at); is && s.status != deleteComplete {
				text += fmt.Sprintf("%s: %+v %v %v\n", name, s.tags, s.params, s.body)
			}
		}
	}
	return text
}

// The suite over CloudFormation in memory; in the subprocesses of TestMutants it is not sound.
func TestSound(t *testing.T) {
	providertest.Run(t, factory(os.Getenv(providertest.MutantVariable), false, plan.User))
}

// The race detector needs the one case that has several callers.
func TestTwoCallers(t *testing.T) { providertest.RunTwoCallers(t, factory("", false, plan.User)) }

// Where events carry no tokens, their ids tell as much.
func TestEmulated(t *testing.T) {
	providertest.RunOnce(t, factory("", true, plan.User))
}

// Bindings of roles pass as those of users do.
func TestRolesAreSound(t *testing.T) { providertest.RunOnce(t, factory("", false, plan.Role)) }

// The suite catches each mutant of the provider by the case that is there for it.
func TestMutants(t *testing.T) {
	providertest.RunMutants(t, map[string]providertest.Mutant{
		"lists-all":      {Reason: "the inventory lists nothing of another broker", Caught: "Brokers"},
		"no-waiting":     {Reason: "a deletion is done when the stack is gone", Caught: "Lifecycle"},
		"one-token":      {Reason: "a call that was refused once is made again with a token of its own", Caught: "Lifecycle"},
		"one-page":       {Reason: "all that exists is listed", Caught: "Inventory"},
		"trusts-absence": {Reason: "no absence counts at the wrong target", Caught: "WrongTarget"},

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

// A mutation is a mistake that a provider makes; a nil one makes none.
type mutation struct {
	name string
	of   provider.Tags // the binding that is being made
}

func (m *mutation) is(name string) bool { return m != nil && m.name == name }

// into has the provider make the mistake, if it has a name.
func (m *mutation) into(p *Provider) {
	if m.name == "" {
		return
	}
	open := p.open
	p.open = func(target string, t plan.Target) (cloud, func(plan.Location) *principal.Keeper) {
		c, enter := open(target, t)
		return mutant{c, m.name, p.Broker}, func(who plan.Location) *principal.Keeper {
			k := enter(who)
			if m.is("boundless") {
				k.Boundary = func(string) string { return "" }
			}
			client := careless{k.IAM, k.Prover, m}
			k.IAM, k.Prover = client, client
			return k
		}
	}
}

// A careless client stands for a Keeper that does without what the client does.
type careless struct {
	principal.IAM
	principal.Prover
	*mutation
}

func (c careless) Get(ctx context.Context, kind plan.Principal, name string) (principal.Found, error) {
	f, err := c.IAM.Get(ctx, kind, name)
	if c.of.Binding != "" {
		for _, l := range label.Write(c.of) {
			f.Tags[l.Name] = l.Value
		}
	}
	return f, err
}

func (c careless) DeleteKey(ctx context.Context, user, id string) error {
	if c.is("leftover-key") {
		return nil
	}
	return c.IAM.DeleteKey(ctx, user, id)
}

func (c careless) Prove(ctx context.Context, k principal.Key, proof *plan.Proof, values map[string]string) (bool, string, error) {
	if c.is("proves-nothing") {
		return true, "", nil
	}
	return c.Prover.Prove(ctx, k, proof, values)
}

// A mutant is a cloud that is asked for something else than it should be.
type mutant struct {
	cloud
	name, broker string
}

func (m mutant) identify(ctx context.Context) (plan.Location, error) {
	who, err := m.cloud.identify(ctx)
	if m.name == "trusts-absence" {
		who.Account = here
	}
	return who, err
}

func (m mutant) look(ctx context.Context, ref string) (*stack, error) {
	s, err := m.cloud.look(ctx, ref)
	if s != nil && m.name == "no-waiting" && s.status == deleteInProgress {
		return nil, err
	}
	return s, err
}

func (m mutant) send(ctx context.Context, o order) error {
	if m.name == "one-token" {
		o.token = "one"
	}
	return m.cloud.send(ctx, o)
}

func (m mutant) list(ctx context.Context, asked func(string) bool, cursor string) ([]*stack, string, error) {
	page, next, err := m.cloud.list(ctx, asked, cursor)
	for _, s := range page {
		if m.name == "lists-all" {
			s.tags.Broker = m.broker
			s.name = nameIn(plan.ScopeOf("suite"), orderOf(s.tags, scenePlace))
		}
	}
	if m.name == "one-page" {
		next = ""
	}
	return page, next, err
}

var reading = []string{"look", "list", "identify", "iam List", "iam Get", "iam Policy", "iam Attachments", "iam Keys",
	"iam Usage",
	"iam Prove"}

// histories are a subject over CloudFormation in memory.
func histories() crashtest.Subject {
	type onFake struct {
		planned
		fake *fake
	}
	return crashtest.Subject{
		Name: "cloudformation", Settings: map[string]any{"size": "small"}, Others: map[string]any{"size": "large"},
		Sparse: 401,
		Opens:  func(p provider.Provider, g *provider.Grant) (bool, error) { return p.(onFake).fake.opens(g), nil },
		New: func(now func() time.Time, effect crashtest.Effect) (provider.Provider, provider.Inventory) {
			f := newFake(now)
			f.takes = 200 * time.Millisecond
			made := f.over(testkit.Identity, here, func(_ context.Context, name string, do func() error) error {
				if slices.Contains(reading, name) { // which is no effect
					return do()
				}
				return effect(name, do)
			})
			p := onFake{planned{Provider: made}, f}
			return p, p
		},
	}
}

// Whole histories of a platform and a broker, with processes that die between any two
// calls that change something, and within one.
func TestHistories(t *testing.T) { crashtest.Run(t, histories(), 60) }
