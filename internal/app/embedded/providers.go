package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/operator/folder"
)

// A row describes a provider of the embedded broker.
type row struct {
	// build builds the provider, or an absent one.
	build func(e embedding) (wired.Provider, error)
	// help explains the provider's settings in the environment.
	help string
}

// An embedding is the input of the embedded broker for building a provider.
type embedding struct {
	dir     string // the provider's own folder
	folder  string // the data folder
	broker  string // the broker's identity
	used    bool   // the provider was used in that folder before
	offered *catalog.Catalog
	// offerings is the folder of the operator's own offerings; empty for none.
	offerings string
	log       *slog.Logger
	getenv    func(string) string
	now       func() time.Time
	wait      func(context.Context, time.Duration) error // waiting.For
	// serves is called with a server that is started in the data folder, and the folder of its programs.
	serves func(s backup.Server, programs string)
}

// rows returns all providers, by their names in offering files.
func rows() map[string]row {
	all := map[string]row{
		app.ProviderDemo: {
			build: func(e embedding) (wired.Provider, error) { return providers.Demo(e.getenv, e.now) },
			help:  app.EnvDemoDelay + "\n      how long the demo's asynchronous steps take, such as 500ms; 3s unless set",
		},
		app.ProviderCloudFormation: {cloudformationEmbedded, servicesSettings},
	}
	for name, s := range servers() {
		all[name] = row{s.build, s.settings()}
	}
	return all
}

// Help explains the providers' settings in the environment.
func Help() string {
	var all []string
	for _, r := range sorted.Map(rows()) {
		all = append(all, r.help)
	}
	return strings.Join(all, "\n  ")
}

// checkSettings checks the settings of all providers.
func checkSettings(getenv func(string) string) error {
	problems := []error{providers.CheckSettings(getenv)}
	for _, s := range sorted.Map(servers()) {
		_, _, err := s.access(getenv)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// wiredIn builds the known providers in a data folder, some of them absent; the caller closes them. It completes what
// each of them is built of.
func wiredIn(known map[string]row, f *folder.Folder, e embedding) (_ map[string]wired.Provider, err error) {
	if e.getenv == nil {
		e.getenv = func(string) string { return "" }
	}
	e.folder, e.broker, e.now, e.wait = f.Dir, f.Whose().Broker, f.Now, waiting.For
	all := map[string]wired.Provider{}
	defer func() {
		if err != nil {
			closeAll(all)
		}
	}()
	for name, r := range sorted.Map(known) {
		e.dir, e.used = f.Path(name), f.Used(name)
		w, err := r.build(e)
		if err != nil {
			return nil, fmt.Errorf("setting up the provider %s: %w", name, err)
		}
		w.CallTimeout = cmp.Or(w.CallTimeout, callTimeout)
		all[name] = w
		if w.Absent != nil || name == app.ProviderDemo { // the demo is never absent
			continue
		}
		if err := f.Use(name); err != nil {
			return nil, err
		}
	}
	return all, wired.Check(all, hardTimeout)
}

// closeAll closes the connections and servers that providers keep open.
func closeAll(providers map[string]wired.Provider) {
	for _, w := range providers {
		if w.Close != nil {
			w.Close()
		}
	}
}
