package embedded

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/adapters"
	"github.com/longshore/longshore/internal/app/console"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/socket"
	"github.com/longshore/longshore/internal/records/ledger"
)

// fileControl is the socket through which a running broker is asked.
const fileControl = "control.sock"

// Console is for the embedded broker over a data folder: a running broker is
// asked, otherwise the folder is opened. Close it in the end. If lost is not nil, lost
// records and a lost key are no error: what is left of them is set aside, new ones are
// begun, and lost is told at once what a rebuild cannot bring back. The catalog is
// loaded, and providers are set up by the environment, only if no broker runs.
func Console(
	ctx context.Context, dir string, load func() (*catalog.Catalog, error), getenv func(string) string, lost func(what string),
) (_ operator.Link, closing func(), _ error) {
	if _, err := markerOf(dir); err != nil {
		return nil, nil, err
	}
	if running := socket.Dial(filepath.Join(dir, fileControl)); running.Answers(ctx) {
		return running.Call, func() {}, nil
	}
	offered, err := load()
	if err != nil {
		return nil, nil, err
	}
	open := lookInto
	if lost != nil {
		open = func(dir string) (*folder, error) { return openFolder(dir, true) }
	}
	f, err := open(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, what := range f.damaged {
		lost(what)
	}
	console, wired, err := f.console(offered, getenv, lost)
	if err != nil {
		f.close()
		return nil, nil, err
	}
	return console.Call, func() {
		closeAll(wired)
		f.close()
	}, nil
}

// console makes the console of a folder on which no broker runs.
func (f *folder) console(offered *catalog.Catalog, getenv func(string) string, lost func(what string)) (
	_ *operator.Console, wired map[string]wired.Provider, err error,
) {
	var left map[string]error
	if !f.toRead { // providers write, and nothing can be done with what they have
		wired, left, err = wiredIn(rows(), f, offered, getenv, slog.New(slog.DiscardHandler))
	}
	if err != nil {
		return nil, nil, err
	}
	console := console.New(ledger.New(f.records, app.NewID), offered, wired, operator.Options{
		Vault: f.vault, Whose: f.whose(), Now: f.clock.Now, Lost: lost, Damaged: f.damaged, Rebuilt: f.rebuilt,
		Platforms: platforms.Names(folderRegistrar{f.dir}), Names: adapters.Names(f.mark.Broker),
	})
	for name, why := range left {
		if slices.Contains(f.mark.Providers, name) {
			console.Inventories[name] = absent{why} // otherwise what it holds would seem to be gone
		}
	}
	return console, wired, nil
}
