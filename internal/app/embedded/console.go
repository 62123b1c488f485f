package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"maps"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/operator/folder"
	"github.com/longshore/longshore/internal/operator/socket"
)

// inputs are the options of a folder that a command opens.
var inputs = folder.Options{NewID: app.NewID}

// Console returns a link to the broker over a data folder: to the running broker or, if none
// runs, to the opened folder, until closing is called. If lost is not nil, lost records and a
// lost key are no error: Console sets the rest of them aside, begins new ones, and at once
// tells lost what a rebuild cannot bring back. Only if no broker runs does it load the catalog, with
// the operator's own offerings of a folder, and set providers up by the environment.
func Console(
	ctx context.Context, dir, offerings string, getenv func(string) string, lost func(what string),
) (_ operator.Link, closing func(), _ error) {
	if err := folder.Begun(dir); err != nil {
		return nil, nil, err
	}
	if running := socket.Dial(folder.Control(dir)); running.Answers(ctx) {
		return running.Call, func() {}, nil
	}
	e := embedding{
		offerings: offerings, getenv: getenv, serves: func(backup.Server, string) {}, log: slog.New(slog.DiscardHandler),
	}
	var err error
	if e.offered, err = offeringfiles.Load(offerings); err != nil {
		return nil, nil, err
	}
	open := folder.Look
	if lost != nil {
		open = folder.Rebuild
	}
	f, err := open(dir, inputs)
	if err != nil {
		return nil, nil, err
	}
	for _, what := range f.Damaged {
		lost(what)
	}
	made := map[string]wired.Provider{}
	if f.ReadOnly { // providers write
		why := advice.For(fmt.Sprintf("data folder %q", f.Dir), "cannot be written, which its providers need",
			"allow it to be written")
		for name := range rows() {
			made[name] = wired.Absent(why)
		}
	} else if made, err = wiredIn(rows(), f, e); err != nil {
		f.Close()
		return nil, nil, err
	}
	// If a provider was used, it stays, absent or not: otherwise its things would seem to be gone.
	maps.DeleteFunc(made, func(name string, w wired.Provider) bool { return w.Absent != nil && !f.Used(name) })
	console := newConsole(f, e.offered, made, operator.Options{Lost: lost, Damaged: f.Damaged, Rebuilt: f.Rebuilt})
	return console.Call, func() {
		closeAll(made)
		f.Close()
	}, nil
}
