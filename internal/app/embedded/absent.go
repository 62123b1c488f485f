package embedded

import (
	"context"
	"log/slog"
	"strings"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/adapters"
	"github.com/longshore/longshore/internal/app/console"
	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/folder"
	"github.com/longshore/longshore/internal/records/ledger"
)

// An absent provider stands for a provider without which the broker starts. Its operations
// wait, and the log says why: it is not set up, or cannot be reached.
type absent struct{ why error }

// An absent provider implements every interface that a provider may implement. A missing one
// would count as done: for example, a provider that cannot quarantine needs no quarantine.
var (
	_ provider.Provider  = absent{}
	_ provider.Inventory = absent{}
	_ provider.Adopter   = absent{}
	_ provider.Describer = absent{}
)

// Provision implements provider.Provider.
func (a absent) Provision(context.Context, provider.Instance) (s provider.Status, _ error) {
	return s, a.why
}

// Update implements provider.Provider.
func (a absent) Update(context.Context, provider.Instance) (s provider.Status, _ error) {
	return s, a.why
}

// Deprovision implements provider.Provider.
func (a absent) Deprovision(context.Context, provider.Instance) (s provider.Status, _ error) {
	return s, a.why
}

// Bind implements provider.Provider.
func (a absent) Bind(context.Context, provider.Binding) (s provider.Status, _ error) {
	return s, a.why
}

// Unbind implements provider.Provider.
func (a absent) Unbind(context.Context, provider.Binding) (s provider.Status, _ error) {
	return s, a.why
}

// Describe implements provider.Describer.
func (a absent) Describe(context.Context, provider.Instance) (provider.Facts, error) {
	return provider.Facts{}, a.why
}

// Quarantine implements provider.Quarantiner.
func (a absent) Quarantine(context.Context, provider.Holding) error { return a.why }

// Release implements provider.Quarantiner.
func (a absent) Release(context.Context, provider.Holding) error { return a.why }

// Adopt implements provider.Adopter.
func (a absent) Adopt(context.Context, provider.Holding, provider.Tags) error { return a.why }

// List implements provider.Inventory.
func (a absent) List(context.Context, string) ([]provider.Holding, string, error) {
	return nil, "", a.why
}

// newConsole makes a console. Absent providers on shared servers are among those that it reconciles: otherwise it would
// seem that no server of theirs was restored.
func newConsole(
	f *folder.Folder, offered *catalog.Catalog, providers map[string]wired.Provider, o operator.Options,
) *operator.Console {
	o.Vault, o.Whose, o.Now = f.Vault, f.Whose(), f.Now
	o.Platforms, o.Names = platforms.Names(f.Logins()), adapters.Names(f.Whose().Broker)
	c, known := console.New(ledger.New(f.Records, app.NewID), offered, providers, o), servers()
	for name, w := range providers {
		a, is := w.Provider.(absent)
		if _, shared := known[name]; is && shared {
			w.Targets = func(context.Context) ([]string, error) { return nil, a.why }
			c.Servers[name] = w
		}
	}
	return c
}

// without wires an absent provider for each missing one that a record names, and hides the offerings of
// missing providers without instances. Platforms still see the offerings of their instances.
func without(
	ctx context.Context, f *folder.Folder, providers map[string]wired.Provider, why map[string]error,
	offered *catalog.Catalog, log *slog.Logger,
) *catalog.Catalog {
	// A provider that was never used has no record: the folder tells this without reading all records.
	var once, hidden []string
	for name := range why {
		if f.Used(name) {
			once = append(once, name)
		}
	}
	live := recorded(ctx, ledger.New(f.Records, app.NewID), once, log)
	for name, reason := range sorted.Map(why) {
		has, known := live[name]
		if known {
			providers[name] = wired.Of(absent{reason})
		}
		if has {
			log.Warn("a provider that has instances is missing: operations on them wait",
				"provider", name, "error", reason)
			continue
		}
		hidden = append(hidden, name)
		if names := offered.Names(name); names != nil {
			log.Info("not offered", "offerings", strings.Join(names, ","), "reason", reason.Error())
		}
	}
	return offered.Without(hidden)
}

// recorded returns the providers that a record names, each with whether it has an instance. If a
// record cannot be read, all names count as providers that have.
func recorded(ctx context.Context, records *ledger.Ledger, names []string, log *slog.Logger) map[string]bool {
	live := map[string]bool{}
	if names == nil {
		return live
	}
	for r, err := range paging.All(ctx, func(ctx context.Context, cursor string) ([]lifecycle.Record, string, error) {
		page, next, err := records.ScanPage(ctx, cursor, false)
		return page.Records, next, err
	}) {
		if err != nil {
			log.Error("a record cannot be read: the broker assumes that each provider that was used has instances", "error", err)
			for _, name := range names {
				live[name] = true
			}
			continue
		}
		live[r.Provider] = live[r.Provider] || r.Exists()
	}
	return live
}
