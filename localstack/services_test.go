//go:build deployed

package localstack_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/servicestest"
	"github.com/longshore/longshore/internal/test/testserver"
)

// A tenant orders AWS services of the deployed broker, and looks into the account.
type tenant struct {
	platform
	config   aws.Config
	broker   string // its identity
	scope    plan.Scope
	endpoint string // over TLS to policies
	enforced bool   // policies do what they say
}

func newTenant(t *testing.T) tenant {
	t.Helper()
	n := tenant{platform: newPlatform(t), config: emulator.Config(t), scope: plan.ScopeOf(theStack)}
	n.broker = newCloud(t).environment(t, "provisioner")[app.EnvBroker]
	server := httptest.NewServer(expect.Get(testserver.OverTLS(*n.config.BaseEndpoint))(t))
	t.Cleanup(server.Close)
	n.endpoint = server.URL
	nobodys := map[string]string{"region": n.config.Region, "access_key_id": "AKIAAAAAAAAAAAAAAAAA", "secret_access_key": "x"}
	_, err := servicestest.Listing(t.Context(), servicestest.Config(n.endpoint, nobodys), "")
	if n.enforced = servicestest.Refused(err); !n.enforced && err != nil {
		t.Fatal(err)
	}
	return n
}

// Each service that ships, and the one of an operator's own, lives by the deployed broker: made, bound, used with what was
// handed out, and deleted, so that nothing of it is left. Where policies do what they say, what was handed out opens nothing
// after the unbind, and nothing without TLS if that is asked.
func TestServices(t *testing.T) {
	t.Parallel()
	n := newTenant(t)
	t.Logf("policies are enforced: %v", n.enforced)
	var all sync.WaitGroup // t.Parallel would wait for processors, and these wait for clocks
	rents := func(s servicestest.Service, p servicestest.Plan) {
		all.Go(func() { t.Run(s.Offering+" "+p.Name, func(t *testing.T) { n.rents(t, s, p) }) })
	}
	for _, s := range servicestest.Services() {
		rents(s, s.Deployed())
	}
	own := servicestest.Own()
	for _, p := range own.Plans {
		rents(own, p)
	}
	all.Wait()
}

func (n tenant) rents(t *testing.T, s servicestest.Service, p servicestest.Plan) {
	t.Helper()
	service, plan := n.planOf(t, s.Offering, p.Name)
	instance, bound := id("i"), id("b")
	path := instancePath(instance)
	binding, ids := path+"/service_bindings/"+bound, hintsOf(service, plan)
	life := lifeOf(t, n.ends(t, "PUT", path, "", order(service, plan, "")))
	tags := provider.Tags{Broker: n.broker, Platform: "default", Instance: instance, Incarnation: life}
	n.made(t, tags)
	tags.Binding, tags.Of = bound, life
	tags.Incarnation = lifeOf(t, n.ends(t, "PUT", binding, "", bind(service, plan)))
	got := texts(n.call(t, "GET", binding, "", 200).body["credentials"])
	expect.Fails(t, "the credentials", nil, s.Complete(p, got))
	use := func(at string) error { return p.Use(t.Context(), servicestest.Config(at, got), got) }
	expect.Fails(t, "using the credentials, where "+p.Shows, nil, use(n.endpoint))
	if err := use(*n.config.BaseEndpoint); servicestest.Refused(err) != (s.OnlyTLS && n.enforced) {
		t.Errorf("refused without TLS must be %v: %v", s.OnlyTLS && n.enforced, err)
	}
	n.ends(t, "DELETE", binding, ids, "")
	if err := use(n.endpoint); servicestest.Refused(err) != n.enforced {
		t.Errorf("refused after the unbind must be %v: %v", n.enforced, err)
	}
	n.ends(t, "DELETE", path, ids, "")
	n.call(t, "GET", path, "", 404)
	for _, name := range []string{n.stackName(tags), n.scope.Binding(tags)} {
		if left, err := servicestest.Listing(t.Context(), n.config, name); err != nil || len(left) > 0 {
			t.Errorf("left after the deletion: %v %v", left, err)
		}
	}
}

// texts are the members of a binding's credentials.
func texts(credentials any) map[string]string {
	members, _ := credentials.(map[string]any)
	out := map[string]string{}
	for name, value := range members {
		out[name] = fmt.Sprint(value)
	}
	return out
}

// lifeOf is the incarnation that an operation has begun.
func lifeOf(t *testing.T, operation string) string {
	t.Helper()
	return expect.Get(lifecycle.ParseToken(operation))(t).Operation
}

// stackName is the name of the stack of an instance, as they are ordered here.
func (n tenant) stackName(of provider.Tags) string {
	of = of.OfInstance()
	return n.scope.Stack(of, plan.SpaceOf(provider.Instance{Broker: of.Broker, Platform: of.Platform, ID: of.Instance,
		Incarnation: of.Incarnation, Place: provider.Place{Organization: "o", Space: "s"}}))
}

// made reports what an emulator says to have made for an instance and has not.
func (n tenant) made(t *testing.T, tags provider.Tags) {
	t.Helper()
	found := expect.Get(resourcesOf(t.Context(), n.config, n.stackName(tags)))(t)
	if len(found) == 0 {
		t.Error("the stack holds nothing")
	}
	for _, r := range found {
		if id := aws.ToString(r.PhysicalResourceId); id == "" || strings.Contains(id, "unknown") {
			t.Errorf("%s is not made, although its stack is: its id is %q", aws.ToString(r.ResourceType), id)
		}
	}
}
