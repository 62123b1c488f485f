package providertest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// A stage makes a scene with nothing in it.
type stage func(t *testing.T) *scene

var cases = []struct {
	name string
	run  func(t *testing.T, open stage)
}{
	{"Fixtures", testFixtures},
	{"Lifecycle", testLifecycle},
	{"Repeated", testRepeated},
	{"NeverWas", testNeverWas},
	{"InstanceStates", testInstanceStates},
	{"BindingStates", testBindingStates},
	{"Failures", testFailures},
	{"LostAnswers", testLostAnswers},
	{"Faults", testFaults},
	{"LateCalls", testLateCalls},
	{"Restarts", testRestarts},
	{"TwoCallers", testTwoCallers},
	{"Incarnations", testIncarnations},
	{"NotOurs", testNotOurs},
	{"Platforms", testPlatforms},
	{"Identifiers", testIdentifiers},
	{"Bindings", testBindings},
	{"Grants", testGrants},
	{"Inventory", testInventory},
	{"Describes", testDescribes},
	{"Cancelled", testCancelled},
	{"Brokers", testBrokers},
	{"WrongTarget", testWrongTarget},
	{"Orphans", testOrphans},
	{"Quarantine", testQuarantine},
	{"Restores", testRestores},
	{"Retains", testRetains},
	{"Undeletes", testUndeletes},
	{"AdoptsNothing", testAdoptsNothing},
	{"TwoAdopters", testTwoAdopters},
	{"RetentionFaults", testRetentionFaults},
}

// The suite sets each field in some request: a field that a provider ignores cannot be told
// from one that it forgot.
func testFixtures(t *testing.T, open stage) {
	s := open(t)
	s.synchronous = true // the one field whose zero value is used elsewhere
	source := s.provision(platform, "instance-0")
	s.must(source)
	r := s.bind(s.update(s.restore(source, "instance-1")), "binding-1")
	r.instance.Origin = provider.Origin{Instance: "f", Incarnation: "g"}
	r.instance.Source.Origin, r.binding.Instance = r.instance.Origin, r.instance
	for _, tags := range []provider.Tags{provider.TagsOf(r.instance), r.tags()} {
		s.watch.records.of[tags] = record{target: provider.Target{Name: "a", Identity: "b"}, state: provider.State{Format: 1, Data: []byte("c")}}
	}
	r.instance.Source.Target, r.instance.Source.State = provider.Target{Name: "a", Identity: "b"}, provider.State{Format: 1, Data: []byte("c")}
	s.watch.records.epochs["b"] = target.Epoch{Line: "d", Count: 1, Mark: "e"}
	b := s.watch.records.binding(*r.binding)
	b.Instance.Unfinished = true // which only deletions are told
	if zero := zeroFields(reflect.ValueOf(b), "Binding"); len(zero) > 0 {
		t.Errorf("fields not set: %v", zero)
	}
	for _, parameters := range []json.RawMessage{r.instance.Parameters, r.binding.Parameters} {
		if !json.Valid(parameters) || !strings.Contains(string(parameters), canary) {
			t.Errorf("parameters are not JSON with the canary in it: %s", parameters)
		}
	}
}

func testLifecycle(t *testing.T, open stage) {
	s := open(t)
	in := s.provision(platform, "instance-1")
	s.must(in)
	s.one(in)
	created := s.Look(t, in.tags())
	if created == "" {
		t.Error("provisioned, but nothing stands there")
	}
	s.must(s.update(in))
	s.one(in)
	if s.Look(t, in.tags()) == created {
		t.Error("updated, but nothing has changed")
	}
	a, b := s.bind(in, "binding-1"), s.bind(in, "binding-2")
	b.binding.AppGUID = "" // a service key
	for _, r := range []request{a, b} {
		if grant := s.must(r).Grant; !s.Opens(t, grant) {
			t.Error("bound, but the credentials are not accepted")
		}
		s.one(r)
	}
	for _, r := range []request{s.unbind(a), s.unbind(b), s.deprovision(in)} {
		s.must(r)
		s.none(r)
	}
	s.finish()
}

// life is every verb once, in an order in which each ends well.
func (s *scene) life(id string) []request {
	in := s.provision(platform, id)
	b := s.bind(in, id+"-binding")
	return []request{in, s.update(in), b, s.unbind(b), s.deprovision(in)}
}

// stands requires what is true after r has ended well.
func (s *scene) stands(r request) {
	s.t.Helper()
	switch r.kind() {
	case operation.Deprovision, operation.Unbind:
		s.none(r)
	default:
		s.one(r)
	}
}

func testRepeated(t *testing.T, open stage) {
	s := open(t)
	for _, r := range s.life("instance-1") {
		first := s.must(r)
		s.stands(r)
		look := s.Look(t, r.tags())
		for range 3 {
			again, err := r.step(s.p)(t.Context())
			if err != nil || !again.Done {
				t.Errorf("%s, repeated after it was done: done %v, error %v", r.kind(), again.Done, err)
			}
			sameGrant(t, first.Grant, again.Grant)
			s.stands(r)
			s.Clock.Advance(time.Minute)
		}
		if diff := cmp.Diff(look, s.Look(t, r.tags())); diff != "" {
			t.Errorf("%s, repeated, changed the thing (-first +repeated):\n%s", r.kind(), diff)
		}
	}
	s.finish()
}

func testNeverWas(t *testing.T, open stage) {
	s := open(t)
	in := s.provision(platform, "instance-1")
	b := s.bind(in, "binding-1")
	for _, r := range []request{s.unbind(b), s.deprovision(in)} {
		s.must(r)
		s.none(r)
	}
	s.must(in)
	for _, r := range []request{s.unbind(b), s.deprovision(s.provision(platform, "instance-2"))} {
		s.must(r)
		s.none(r)
	}
	s.one(in)
	s.finish()
}

func testNotOurs(t *testing.T, open stage) {
	// plant puts a thing of owner in the way of r.
	plant := func(s *scene, r request, owner provider.Tags) {
		s.t.Helper()
		s.Plant(s.t, r.tags(), owner)
		s.planted = append(s.planted, owner)
		if s.Look(s.t, r.tags()) == "" {
			s.t.Fatal("planted, but nothing stands there")
		}
	}
	// refused requires that r fails and leaves alone what stands there.
	refused := func(s *scene, at provider.Tags, r request) {
		s.t.Helper()
		before := s.Look(s.t, at)
		s.mustFail(r)
		if diff := cmp.Diff(before, s.Look(s.t, at)); diff != "" {
			s.t.Errorf("%s changed what is not ours (-before +after):\n%s", r.kind(), diff)
		}
	}
	owners := map[string]func(provider.Tags) provider.Tags{
		"OtherBroker":   func(t provider.Tags) provider.Tags { t.Broker = "broker-other"; return t },
		"OtherPlatform": func(t provider.Tags) provider.Tags { t.Platform = "platform-2"; return t },
		"OtherInstance": func(t provider.Tags) provider.Tags { t.Instance = "instance-other"; return t },
		"OtherBinding":  func(t provider.Tags) provider.Tags { t.Binding = "binding-other"; return t },
		"OtherLife":     func(t provider.Tags) provider.Tags { t.Incarnation = "another-incarnation"; return t },
		"NoTags":        func(provider.Tags) provider.Tags { return provider.Tags{} },
	}
	for name, owner := range owners {
		t.Run("Instance/"+name, func(t *testing.T) {
			s := open(t)
			in := s.provision(platform, "instance-1")
			plant(s, in, owner(in.tags()))
			for _, r := range []request{in, s.update(in), s.bind(in, "binding-1"), s.deprovision(in)} {
				refused(s, in.tags(), r)
			}
			s.finish()
		})
		t.Run("Binding/"+name, func(t *testing.T) {
			s := open(t)
			in := s.provision(platform, "instance-1")
			s.must(in)
			b := s.bind(in, "binding-1")
			plant(s, b, owner(b.tags()))
			for _, r := range []request{b, s.unbind(b)} {
				refused(s, b.tags(), r)
			}
			s.finish()
		})
	}
}

func testPlatforms(t *testing.T, open stage) {
	s := open(t)
	mine, theirs := s.provision(platform, "instance-1"), s.provision("platform-2", "instance-1")
	theirs.instance.Incarnation = mine.instance.Incarnation // nothing but the platform differs
	myBinding, theirBinding := s.bind(mine, "binding-1"), s.bind(theirs, "binding-1")
	theirBinding.binding.Incarnation = myBinding.binding.Incarnation
	for _, r := range []request{mine, theirs, s.update(mine)} {
		s.must(r)
	}
	myGrant, theirGrant := s.must(myBinding).Grant, s.must(theirBinding).Grant
	for _, r := range []request{mine, theirs, myBinding, theirBinding} {
		s.one(r)
	}
	if cmp.Equal(myGrant.Credentials, theirGrant.Credentials) {
		t.Error("two platforms got the same credentials")
	}
	for _, r := range []request{s.unbind(myBinding), s.deprovision(mine)} {
		s.must(r)
		s.none(r)
	}
	s.one(theirs)
	s.one(theirBinding)
	if s.Opens(t, myGrant) || !s.Opens(t, theirGrant) {
		t.Error("after one platform's deletion: want its credentials refused, and the other's accepted")
	}
	s.finish()
}

// Identifiers may hold any character, and what reads the same when joined is
// not the same.
func testIdentifiers(t *testing.T, open stage) {
	s := open(t)
	var made []request
	for _, ids := range [][2]string{
		{"a", "bc"}, {"ab", "c"}, {"a-b", "c"}, {"a", "b-c"},
		{"A", "BC"}, {"a", "../../bc"}, {"a", `b"c\d`}, {"a", "b c%2F?#"},
		{"a", "ä\u0000ö\n"}, {"a", strings.Repeat("long", 64)},
		{"a", strings.Repeat("<", limits.Identifier)}, {"a", strings.Repeat("{", limits.Identifier)},
		{"a", strings.Repeat("漢", limits.Identifier/3)},
	} {
		in := s.provision(ids[0], ids[1])
		in.instance.Incarnation = "of-all" // nothing but the ids differs
		b := s.bind(in, ids[1])
		b.binding.Incarnation = "of-all"
		s.must(in)
		s.must(b)
		made = append(made, in, b)
	}
	for _, r := range made {
		s.one(r)
	}
	if got := len(s.list()); got != len(made) {
		t.Errorf("inventory holds %d, want %d", got, len(made))
	}
	for _, r := range made {
		if r.binding != nil {
			u := s.unbind(r)
			s.must(u)
			s.none(u)
		}
	}
	s.finish()
}
