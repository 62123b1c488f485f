package testkit_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/reaper"
)

// A cloud is what several brokers make things in, and the time in it.
type cloud struct {
	*testing.T
	things *cloudtest.Cloud
	clock  time.Time
}

// A party is a whole broker in the cloud, that does everything at once.
type party struct {
	*cloud
	kit    *testkit.Kit
	whose  ledger.Identity
	reaper *reaper.Reaper
}

// joins is a broker over an empty store. Its inventory lists everyone's things if it is careless.
func (c *cloud) joins(identity string, careless bool) *party {
	c.Helper()
	p := &party{cloud: c, whose: ledger.Identity{Deployment: "embedded", Broker: identity}}
	made := cloudtest.Demo(c.things, 0)
	if made.Broker = identity; careless {
		made.Broker = ""
	}
	engine := &testkit.Driver{Clock: &c.clock}
	p.kit = testkit.New(testkit.Options{Store: memory.New(), Now: c.now, Identity: identity, Engine: engine,
		Providers: map[string]provider.Provider{"demo": made}})
	engine.Kit = p.kit
	o := p.kit.ReaperOptions()
	o.Inventory = &reaper.InventoryOptions{Records: p.kit.Ledger(), Whose: p.whose,
		Listers: map[string]reaper.Lister{"demo": {List: testkit.Lister{Inventory: made}.List}}}
	p.reaper = reaper.New(o)
	return p
}

func (c *cloud) now() time.Time { return c.clock }

func (p *party) caller() broker.Caller {
	p.clock = p.clock.Add(time.Second)
	return broker.Caller{Platform: "default", Received: p.clock}
}

// makes provisions the instance i and binds b to it.
func (p *party) makes() {
	p.Helper()
	service, plan := testkit.PlanIDs("sync")
	_, made := p.kit.Broker().Provision(p.Context(), broker.ProvisionRequest{
		Caller: p.caller(), InstanceID: "i", ServiceID: service, PlanID: plan, OrganizationGUID: "o", SpaceGUID: "s",
	})
	_, bound := p.kit.Broker().Bind(p.Context(), broker.BindRequest{
		Caller: p.caller(), InstanceID: "i", BindingID: "b", ServiceID: service, PlanID: plan, AppGUID: "app",
	})
	expect.OK(p, errors.Join(made, bound))
}

// exists tells of the things of each broker, and which of them are out of use.
func (c *cloud) exists() map[string][]string {
	c.Helper()
	out := map[string][]string{}
	for _, t := range c.things.Things() {
		name := t.Tags.Platform + "/" + t.Tags.Instance + "/" + t.Tags.Binding
		if t.Locked {
			name += " out of use"
		}
		out[t.Tags.Broker] = append(out[t.Tags.Broker], name)
		slices.Sort(out[t.Tags.Broker])
	}
	return out
}

// pass has the reapers of all sweep each hour for so long.
func (c *cloud) pass(d time.Duration, all ...*party) {
	c.Helper()
	for ; d > 0; d -= time.Hour {
		c.clock = c.clock.Add(time.Hour)
		for _, p := range all {
			expect.Get(p.reaper.Sweep(c.Context()))(c)
		}
	}
}

var (
	inUse    = []string{"default/i/", "default/i/b"}
	outOfUse = []string{"default/i/ out of use", "default/i/b out of use"}
)

func bothOf(a, b []string) map[string][]string {
	return map[string][]string{"broker-a": a, "broker-b": b}
}

// Two brokers in one cloud, with the same platform and the same ids: neither lists,
// quarantines, deletes or rebuilds what is the other's, whatever becomes of it.
func TestTwoBrokersInOneCloud(t *testing.T) {
	for name, careless := range map[string]bool{"": false, "CarelessInventory": true} {
		t.Run(name, func(t *testing.T) {
			c := &cloud{T: t, clock: testkit.Epoch}
			c.things = cloudtest.NewCloud(c.now)
			a, b := c.joins("broker-a", careless), c.joins("broker-b", careless)
			a.pass(time.Hour, a, b) // each table says whose it is
			a.makes()
			b.makes()
			want := func(what string, exists map[string][]string) {
				t.Helper()
				expect.Same(t, what, exists, c.exists())
			}
			want("each has made its own", bothOf(inUse, inUse))
			c.pass(20*24*time.Hour, a, b)
			want("nobody has touched anything", bothOf(inUse, inUse))

			// A loses its records, and its reaper is told that the table is right.
			lost := c.joins("broker-a", careless)
			expect.OK(t, reaper.Resume(t.Context(), lost.kit.Ledger(), lost.whose, c.clock))
			c.pass(3*time.Hour, lost, b)
			want("what A does not know is out of use", bothOf(outOfUse, inUse))

			found := expect.Get(lost.kit.Console(lost.whose).Rebuild(t.Context(), operator.None{}))(t)
			if len(found.Instances) != 1 || len(found.Bindings) != 1 {
				t.Fatalf("%+v", found)
			}
			c.pass(time.Hour, lost, b)
			want("A knows its own again", bothOf(inUse, inUse))

			service, plan := testkit.PlanIDs("sync")
			expect.Get(lost.kit.Broker().Delete(t.Context(), broker.DeleteRequest{
				Caller: lost.caller(), InstanceID: "i", ServiceID: service, PlanID: plan,
			}))(t)
			want("A has deleted its own", map[string][]string{"broker-b": inUse})
			c.pass(20*24*time.Hour, lost, b)
			want("and B has what it had", map[string][]string{"broker-b": inUse})
		})
	}
}
