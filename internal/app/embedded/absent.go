package embedded

import (
	"context"
	"log/slog"
	"strings"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/adapters"
	"github.com/longshore/longshore/internal/app/console"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/folder"
	"github.com/longshore/longshore/internal/records/ledger"
)

// newConsole makes a console. Absent providers on shared servers are among those that it reconciles: otherwise it would
// seem that no server of theirs was restored.
func newConsole(
	f *folder.Folder, offered *catalog.Catalog, providers map[string]wired.Provider, o operator.Options,
) *operator.Console {
	o.Vault, o.Whose, o.Now = f.Vault, f.Whose(), f.Now
	o.Platforms, o.Names = platforms.Names(f.Logins()), adapters.Names(f.Whose().Broker)
	c, known := console.New(ledger.New(f.Records, app.NewID), offered, providers, o), servers()
	for name, w := range providers {
		if _, shared := known[name]; shared && w.Absent != nil {
			w.Targets = func(context.Context) ([]string, error) { return nil, w.Absent }
			c.Servers[name] = w
		}
	}
	return c
}

// without removes the absent providers that no record names, and hides the offerings of absent providers
// without instances. Platforms still see the offerings of their instances.
func without(
	ctx context.Context, f *folder.Folder, providers map[string]wired.Provider, offered *catalog.Catalog, log *slog.Logger,
) *catalog.Catalog {
	// A provider that was never used has no record: the folder tells this without reading all records.
	var once, hidden []string
	for name, w := range providers {
		if w.Absent != nil && f.Used(name) {
			once = append(once, name)
		}
	}
	live := recorded(ctx, ledger.New(f.Records, app.NewID), once, log)
	for name, w := range sorted.Map(providers) {
		if w.Absent == nil {
			continue
		}
		has, known := live[name]
		if !known {
			delete(providers, name)
		}
		if has {
			log.Warn("a provider that has instances is missing: operations on them wait",
				"provider", name, "error", w.Absent)
			continue
		}
		hidden = append(hidden, name)
		if names := offered.Names(name); names != nil {
			log.Info("not offered", "offerings", strings.Join(names, ","), "reason", w.Absent.Error())
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
	for r, err := range records.Scan(ctx) {
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
