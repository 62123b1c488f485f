package providertest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

const (
	platform = "platform-1"
	canary   = "canary-7c1e5b0d-parameter"
)

// A scene is one harness, and the requests that are made in it.
type scene struct {
	*Harness
	t           *testing.T
	synchronous bool
	watch       *watch
	p           provider.Provider // the harness' one, watched
	operations  int
	planted     []provider.Tags
}

func newScene(t *testing.T, factory Factory, synchronous bool) *scene {
	t.Helper()
	h := factory(t)
	if h.Target.Name == "" { // it makes all things in one place
		h.Target = provider.Target{Name: "target-1", Identity: "identity-1"}
	}
	optional := []string{"Harness.Elsewhere", "Harness.Target.Identity", "Harness.Fill", "Harness.Holds"}
	zero := slices.DeleteFunc(zeroFields(reflect.ValueOf(h).Elem(), "Harness"), func(name string) bool {
		return slices.Contains(optional, name)
	})
	if len(zero) > 0 {
		t.Fatalf("the harness is not whole: %v", zero)
	}
	return over(t, h, synchronous)
}

// over is the scene of a harness with nothing of its broker in it.
func over(t *testing.T, h *Harness, synchronous bool) *scene {
	t.Helper()
	s := &scene{Harness: h, t: t, synchronous: synchronous, watch: &watch{t: t, secrets: map[string]bool{}}}
	s.watch.records = &records{target: h.Target, of: map[provider.Tags]record{}, epochs: map[string]target.Epoch{}}
	s.p = s.watch.over(h.Provider)
	if held := s.list(); len(held) > 0 {
		t.Fatalf("the harness is not empty: %v", held)
	}
	return s
}

// A request is a verb with what it is given.
type request struct {
	instance provider.Instance
	binding  *provider.Binding // of bind and unbind
}

func (s *scene) operation(kind operation.Kind) provider.Operation {
	s.operations++
	return provider.Operation{
		ID:          fmt.Sprintf("operation%013d", s.operations),
		Kind:        kind,
		Started:     s.Clock.Now(),
		Deadline:    s.Clock.Now().Add(7 * 24 * time.Hour),
		Synchronous: s.synchronous,
	}
}

// provision asks for a new instance.
func (s *scene) provision(platform, id string) request {
	op := s.operation(operation.Provision)
	return request{instance: provider.Instance{
		Broker:      s.Broker,
		Platform:    platform,
		ID:          id,
		Incarnation: op.ID,
		ServiceID:   s.ServiceID,
		PlanID:      s.PlanID,
		Operation:   op,
		Parameters:  s.Parameters(canary),
		Settings:    s.Settings,
		Snapshot:    planSnapshot(op),
		Maintenance: "1.0.0",
		Place:       provider.Place{Organization: "organization-1", Space: "space-1", InstanceName: "my instance"},
	}}
}

// planSnapshot is what an instance records of the plan from an operation on.
func planSnapshot(op provider.Operation) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"since":%q}`, op.ID))
}

// restore asks for a new instance that is made of the one that r is about.
func (s *scene) restore(r request, id string) request {
	out := s.provision(r.instance.Platform, id)
	in := s.watch.records.instance(r.instance)
	out.instance.Source = &provider.Source{
		Platform: in.Platform, ID: in.ID, Incarnation: in.Incarnation, Origin: in.Origin, Snapshot: in.Snapshot,
		Target: in.Target, State: in.State,
	}
	return out
}

// update asks for a change of the instance that r is about.
func (s *scene) update(r request) request {
	in := r.instance
	in.Operation = s.operation(operation.Update)
	in.Parameters = s.Parameters(canary + "-" + in.Operation.ID)
	in.Settings = s.Settings
	in.Former, in.Snapshot = in.Snapshot, planSnapshot(in.Operation)
	return request{instance: in}
}

// deprovision asks for the end of the instance that r is about.
func (s *scene) deprovision(r request) request {
	in := r.instance
	in.Operation = s.operation(operation.Deprovision)
	in.Settings, in.Parameters = s.Settings, nil
	return request{instance: in}
}

// bind asks for a new binding of the instance that r is about.
func (s *scene) bind(r request, id string) request {
	in := r.instance
	in.Operation = s.operation(operation.Bind)
	in.Settings = s.Settings
	secret := sha256.Sum256([]byte("canary secret of " + id + in.Operation.ID))
	return request{instance: in, binding: &provider.Binding{
		Instance:    in,
		ID:          id,
		Incarnation: in.Operation.ID,
		AppGUID:     "app-1",
		Route:       "app.apps.example.com",
		Parameters:  s.Parameters(canary),
		Secret:      secret[:],
	}}
}

// unbind asks for the end of the binding that r is about.
func (s *scene) unbind(r request) request {
	b := *r.binding
	b.Instance.Operation = s.operation(operation.Unbind)
	b.Instance.Settings = s.Settings
	b.Secret, b.Parameters, b.Instance.Parameters = nil, nil, nil
	return request{instance: b.Instance, binding: &b}
}

// failing is r as it fails for good.
func (s *scene) failing(r request) request {
	s.t.Helper()
	r.instance.Settings = s.Fail(s.t, r.instance.Operation.Kind)
	if r.binding != nil {
		b := *r.binding
		b.Instance = r.instance
		r.binding = &b
	}
	return r
}

// ofAnother is r with an incarnation that was never created.
func (s *scene) ofAnother(r request) request {
	if r.binding != nil {
		b := *r.binding
		b.Incarnation = "another-incarnation"
		r.binding = &b
		return r
	}
	r.instance.Incarnation = "another-incarnation"
	return r
}

func (r request) kind() operation.Kind { return r.instance.Operation.Kind }

func (r request) tags() provider.Tags {
	if r.binding != nil {
		return provider.BindingTagsOf(*r.binding)
	}
	return provider.TagsOf(r.instance)
}

func (r request) step(p provider.Provider) Step {
	switch r.kind() {
	case operation.Provision:
		return bound(p.Provision, r.instance)
	case operation.Update:
		return bound(p.Update, r.instance)
	case operation.Deprovision:
		return bound(p.Deprovision, r.instance)
	case operation.Bind:
		return bound(p.Bind, *r.binding)
	default: // unbind
		return bound(p.Unbind, *r.binding)
	}
}

// run drives r to its end.
func (s *scene) run(r request) (provider.Status, *provider.Failure) {
	s.t.Helper()
	return Drive(s.t, s.Clock, r.step(s.p))
}

// must drives r, which has to end well.
func (s *scene) must(r request) provider.Status {
	s.t.Helper()
	st, f := s.run(r)
	if f != nil {
		s.t.Fatalf("%s failed: %s", r.kind(), f.Message)
	}
	return st
}

// mustFail drives r, which has to fail for good.
func (s *scene) mustFail(r request) *provider.Failure {
	s.t.Helper()
	_, f := s.run(r)
	if f == nil {
		s.t.Fatalf("%s succeeded, want a failure", r.kind())
	}
	return f
}

// once makes one step of r and leaves it there.
func (s *scene) once(r request) {
	s.t.Helper()
	if _, err := r.step(s.p)(s.t.Context()); err != nil {
		s.t.Fatalf("first step of %s: %v", r.kind(), err)
	}
}

// reopened is a new provider over the same world, watched.
func (s *scene) reopened() provider.Provider {
	s.t.Helper()
	p, _ := s.Open(s.t, s.Broker)
	return s.watch.over(p)
}

// another is a scene of another broker over the same world.
func (s *scene) another() *scene {
	s.t.Helper()
	h := *s.Harness
	h.Broker = "broker-another"
	h.Provider, h.Inventory = s.Open(s.t, h.Broker)
	return over(s.t, &h, s.synchronous)
}

// pages reads the whole inventory.
func (s *scene) pages(inventory provider.Inventory) [][]provider.Holding {
	s.t.Helper()
	var pages [][]provider.Holding
	seen := map[string]bool{"": true}
	for cursor := ""; ; {
		page, next, err := inventory.List(s.t.Context(), cursor)
		if err != nil {
			s.t.Fatalf("listing the inventory: %v", err)
		}
		pages = append(pages, page)
		if next == "" {
			return pages
		}
		if seen[next] {
			s.t.Fatalf("the inventory goes in circles: cursor %q came twice", next)
		}
		seen[next] = true
		cursor = next
	}
}

// list is all that the inventory holds.
func (s *scene) list() []provider.Holding {
	s.t.Helper()
	var all []provider.Holding
	for _, page := range s.pages(s.Inventory) {
		for _, h := range page {
			s.watch.safe("a holding", fmt.Sprintf("%+v", h))
			all = append(all, h)
		}
	}
	return all
}

// held is what the inventory holds of the tags.
func (s *scene) held(tags provider.Tags) []provider.Holding {
	s.t.Helper()
	var held []provider.Holding
	for _, h := range s.list() {
		if h.Tags == tags {
			held = append(held, h)
		}
	}
	return held
}

// one requires that r's thing is held, once and with r's tags.
func (s *scene) one(r request) {
	s.t.Helper()
	held := s.held(r.tags())
	if len(held) != 1 || held[0].Tags != r.tags() {
		s.t.Errorf("after %s: inventory holds %+v, want one with tags %+v", r.kind(), held, r.tags())
	}
}

// none requires that nothing of r's is held.
func (s *scene) none(r request) {
	s.t.Helper()
	if held := s.held(r.tags()); len(held) > 0 {
		s.t.Errorf("after %s: inventory still holds %+v", r.kind(), held)
	}
	if left := s.Look(s.t, r.tags()); left != "" {
		s.t.Errorf("after %s: left standing: %s", r.kind(), left)
	}
}

// findable requires that what stands at r's name, half made or whole, is in the
// inventory: what is not cannot be cleaned up.
func (s *scene) findable(r request) {
	s.t.Helper()
	if s.Look(s.t, r.tags()) != "" && len(s.held(r.tags())) == 0 {
		s.t.Errorf("something stands at the name of %+v and is not in the inventory", r.tags())
	}
}

// finish removes all that was made, from what the inventory lists of it alone,
// and requires that nothing remains.
func (s *scene) finish() {
	s.t.Helper()
	foreign := func(tags provider.Tags) bool {
		for _, p := range s.planted {
			if p == tags {
				return true
			}
		}
		return false
	}
	var bindings, instances []provider.Tags
	s.watch.records.forget()
	for _, h := range s.list() {
		if foreign(h.Tags) {
			continue
		}
		s.watch.records.found(h)
		if h.Tags.Binding != "" {
			bindings = append(bindings, h.Tags)
		} else {
			instances = append(instances, h.Tags)
		}
	}
	for _, tags := range append(bindings, instances...) {
		// This is how the deletion of an orphan asks, which knows no more.
		of := tags.OfInstance()
		in := provider.Instance{
			Broker: of.Broker, Platform: of.Platform, ID: of.Instance, Incarnation: of.Incarnation, Origin: of.Origin,
		}
		r := request{instance: in}
		r.instance.Operation = s.operation(operation.Deprovision)
		if tags.Binding != "" {
			r.instance.Operation.Kind = operation.Unbind
			r.binding = &provider.Binding{Instance: r.instance, ID: tags.Binding, Incarnation: tags.Incarnation}
		}
		s.must(r)
		s.none(r)
	}
	for _, h := range s.list() {
		if !foreign(h.Tags) {
			s.t.Errorf("left behind: %+v", h)
		}
	}
}
