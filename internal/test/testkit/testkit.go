// Package testkit makes a broker for tests: the decisions, the worker, the reaper, the operator's console and the
// wire, over one store, one clock and one provider. Parts that a test does not give have defaults in memory. The
// tests drive the operations and the clock.
package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing/fstest"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/worker"
	"github.com/longshore/longshore/offerings"
)

// Epoch is when the clocks of tests begin.
var Epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Options are what a broker is made of. A member that is left out has the
// default that is named beside it.
type Options struct {
	Store     store.Store                  // empty, in memory
	Now       func() time.Time             // always Epoch
	NewID     func() string                // IDs
	Identity  string                       // Identity
	Vault     vault.Vault                  // Key
	Catalog   *catalog.Catalog             // Demo
	Providers map[string]provider.Provider // cloudtest as the demo, 3 s for each change
	Engine    workflow.Engine              // Idle
	Log       *slog.Logger                 // discards
	Secret    []byte                       // 32 characters, the same for each binding
	// SynchronousWait is a minute; OperationTimeout is a day.
	SynchronousWait, OperationTimeout time.Duration
	// CallTimeout is a minute, and HardTimeout too; see worker.Options.
	CallTimeout, HardTimeout time.Duration
	// Alone is as in worker.Options.
	Alone bool
}

// Identity is the identity of a broker that has no other.
const Identity = "the-broker"

// A Kit is a broker's parts. Each method makes a new part over the same store:
// several brokers, or one that was started again, are several calls. The options
// of a part are for tests that exchange something in it.
type Kit struct{ Options }

// New fills in the defaults.
func New(o Options) *Kit {
	def(&o.Store, func() store.Store { return memory.New() })
	def(&o.Identity, func() string { return Identity })
	def(&o.Vault, Key)
	def(&o.Engine, func() workflow.Engine { return Idle{} })
	def(&o.Catalog, Demo)
	def(&o.Log, func() *slog.Logger { return slog.New(slog.DiscardHandler) })
	def(&o.SynchronousWait, func() time.Duration { return time.Minute })
	def(&o.OperationTimeout, func() time.Duration { return 24 * time.Hour })
	def(&o.CallTimeout, func() time.Duration { return time.Minute })
	def(&o.HardTimeout, func() time.Duration { return time.Minute })
	if o.Now == nil {
		o.Now = func() time.Time { return Epoch }
	}
	if o.NewID == nil {
		o.NewID = IDs()
	}
	if o.Secret == nil {
		o.Secret = []byte("0123456789abcdef0123456789abcdef")
	}
	if o.Providers == nil {
		o.Providers = map[string]provider.Provider{"demo": cloudtest.Demo(cloudtest.NewCloud(o.Now), 3*time.Second)}
	}
	return &Kit{o}
}

func def[T comparable](member *T, value func() T) {
	var none T
	if *member == none {
		*member = value()
	}
}

// Ledger reads and writes the records.
func (k *Kit) Ledger() *ledger.Ledger { return k.LedgerOver(k.Store) }

// LedgerOver is one over another store, such as one that fails.
func (k *Kit) LedgerOver(s store.Store) *ledger.Ledger {
	return ledger.New(s, k.NewID)
}

// Table seals under the data key of the table.
func (k *Kit) Table() *datakey.Vault { return datakey.New(ledger.New(k.Store, IDs()), k.Vault) }

// BrokerOptions are those of the decisions.
func (k *Kit) BrokerOptions() broker.Options {
	return broker.Options{
		Identity: k.Identity, Records: k.Ledger(), Catalog: k.Catalog, Vault: k.Vault, Engine: k.Engine, Now: k.Now,
		Table: k.Table(), NewID: k.NewID, Log: k.Log, NewSecret: func() []byte { return append([]byte(nil), k.Secret...) },
		SynchronousWait: k.SynchronousWait, OperationTimeout: k.OperationTimeout,
	}
}

// Broker decides.
func (k *Kit) Broker() *broker.Broker { return broker.New(k.BrokerOptions()) }

// WorkerOptions are those of the worker.
func (k *Kit) WorkerOptions() worker.Options {
	return worker.Options{
		Records: k.Ledger(), Vault: k.Vault, Plans: k.Catalog, Providers: k.Wired(), Now: k.Now, NewID: k.NewID, Log: k.Log,
		HardTimeout: k.HardTimeout, Alone: k.Alone,
	}
}

// Wired are the providers as a worker has them.
func (k *Kit) Wired() map[string]wired.Provider {
	all := map[string]wired.Provider{}
	for name, p := range k.Providers {
		all[name] = Wire(p, k.CallTimeout)
	}
	return all
}

// Wire is a provider as a worker has it, with its inventory if it has one. A call
// takes so long at most.
func Wire(p provider.Provider, call time.Duration) wired.Provider {
	w := wired.Of(p)
	w.CallTimeout = call
	return w
}

// Worker makes the steps of operations.
func (k *Kit) Worker() *worker.Worker { return worker.New(k.WorkerOptions()) }

// AsDemo wires a provider in the demo's place.
func AsDemo(p provider.Provider) map[string]wired.Provider {
	return map[string]wired.Provider{"demo": Wire(p, time.Minute)}
}

// ReaperOptions are those of a reaper that compares no inventory.
func (k *Kit) ReaperOptions() reaper.Options {
	return reaper.Options{
		Records: k.Ledger(), Start: k.Engine.Start, Now: k.Now, NewID: k.NewID, OperationTimeout: k.OperationTimeout, Log: k.Log,
	}
}

// Reaper finds what is stuck.
func (k *Kit) Reaper() *reaper.Reaper { return reaper.New(k.ReaperOptions()) }

// Console is what an operator does with the records. It knows the inventory of
// each provider that has one.
func (k *Kit) Console(whose ledger.Identity) *operator.Console {
	return operator.New(operator.Options{
		Acts: acts.Acts{Records: k.Ledger(), Start: k.Engine.Start, Now: k.Now, NewID: k.NewID,
			OperationTimeout: k.OperationTimeout},
		Vault: k.Vault, Catalog: k.Catalog.Plan, ServiceOf: k.Catalog.ServiceOf, Whose: whose, Inventories: k.inventories(),
	})
}

// inventories are those of the providers that have one.
func (k *Kit) inventories() map[string]provider.Inventory {
	inventories := map[string]provider.Inventory{}
	for name, p := range k.Providers {
		if i, ok := p.(provider.Inventory); ok {
			inventories[name] = i
		}
	}
	return inventories
}

// A Lister shows an inventory to a reaper.
type Lister struct{ provider.Inventory }

// List may be the List of a reaper.Lister.
func (l Lister) List(ctx context.Context, cursor string) (things []lifecycle.Thing, next string, err error) {
	page, next, err := l.Inventory.List(ctx, cursor)
	for _, h := range page {
		things = append(things, lifecycle.Thing{
			Name: h.Name, Broker: h.Tags.Broker, Incarnation: h.Tags.Incarnation, Of: h.Tags.Of, Created: h.Created,
			Origin: h.Tags.Origin, KeptUntil: h.RetainedUntil,
			Key: lifecycle.Key{Platform: h.Tags.Platform, Instance: h.Tags.Instance, Binding: h.Tags.Binding},
		})
	}
	return things, next, err
}

// Handler is the wire over decisions. The platforms are known by their user
// names; all have Password.
func (k *Kit) Handler(b osb.Broker, known Platforms) *osb.Server {
	return osb.New(osb.Options{Broker: b, Platforms: known, Offerings: k.Catalog.Offerings, Now: k.Now,
		NewID: k.NewID, Log: k.Log})
}

// Password is that of all platforms of tests.
const Password = "the-password-of-the-platform"

// Platforms are those that a broker knows, by their user names.
type Platforms map[string]platforms.Identity

// Authenticate implements osb.Authenticator.
func (p Platforms) Authenticate(user, password string) (platforms.Identity, bool) {
	id, ok := p[user]
	return id, ok && password == Password
}

// IDs makes ids of an operation's length, one after the other.
func IDs() func() string {
	var serial atomic.Int64
	return func() string { return fmt.Sprintf("id%0*d", lifecycle.OperationIDLength-2, serial.Add(1)) }
}

// Key is a vault whose key everybody knows.
func Key() vault.Vault {
	v, err := vault.NewLocal(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	return v
}

// Demo is the catalog of the demo that ships, with plans of what needs a cloud.
var Demo = sync.OnceValue(func() *catalog.Catalog { return load(shipped(cloudPlans)) })

// Shipped is the catalog of the demo as it ships: what an embedded broker can do.
var Shipped = sync.OnceValue(func() *catalog.Catalog { return load(shipped("")) })

// DemoAnd is the demo, and offerings beside it: paths of files and what is in them.
func DemoAnd(files map[string]string) *catalog.Catalog {
	return load(shipped(cloudPlans), source(files))
}

// cloudPlans are plans of cloudtest alone.
const cloudPlans = `
- id: 7d0b6e0c-3a55-4c0e-9d0c-2f6f2c1b8e47
  name: cloud-secret
  description: The service itself chooses the password of a binding and shows it once
  asynchronous: never
  asynchronous_binding: allowed
  settings:
    secret: cloud

- id: bbcfc0b4-f35b-4a12-a565-2b2af1dc113b
  name: retained
  description: A deleted instance is retained for a week, in which the operator can have it given back
  asynchronous: allowed
  restore_parameter: restore_from
  settings:
    retain_days: 7
  schemas:
    service_instance:
      create: *restorable
      update: *restorable
    service_binding:
      create: *parameters
`

func shipped(more string) compile.Source {
	files := fstest.MapFS{}
	folders, err := fs.Glob(offerings.FS, "demo*/offering.yaml")
	if err != nil {
		panic(err)
	}
	for _, name := range folders {
		text, err := fs.ReadFile(offerings.FS, name)
		if err != nil {
			panic(err)
		}
		if name == "demo/offering.yaml" {
			text = append(text, more...)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	return compile.Source{Name: "offerings", FS: files}
}

// Offering is a catalog of one offering file, whose provider is given. Of a plan's settings,
// instances record the time for which the plan keeps what is deleted.
func Offering(name, file string) *catalog.Catalog {
	recorded := func(plan check.Plan) (json.RawMessage, error) {
		days, keeps := plan.Settings["retain_days"]
		if !keeps {
			return nil, nil
		}
		return json.Marshal(map[string]any{"retain_days": days})
	}
	c, err := compile.Load(compile.Options{Providers: map[string]check.Func{name: recorded}},
		source(map[string]string{"offering/offering.yaml": file}))
	if err != nil {
		panic(err)
	}
	return c
}

func source(files map[string]string) compile.Source {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return compile.Source{Name: "test", FS: all}
}

func load(sources ...compile.Source) *catalog.Catalog {
	c, err := compile.Load(compile.Options{Providers: map[string]check.Func{"demo": cloudtest.Check}}, sources...)
	if err != nil {
		panic(err)
	}
	return c
}

// PlanIDs finds a plan of the demo by its name.
func PlanIDs(plan string) (serviceID, planID string) {
	for _, o := range Demo().Offerings() {
		for _, p := range o.Plans {
			if o.Name == "demo" && p.Name == plan {
				return o.ID, p.ID
			}
		}
	}
	panic("the demo has no plan " + plan)
}
