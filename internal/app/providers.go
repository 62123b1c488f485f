package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/provider/demo"
	calls "github.com/longshore/longshore/internal/provider/remote"
)

// A row is a provider: all that the programs know of it. A row of the same name in
// infra has what its function may do on AWS. A new provider is a row here, a row there,
// and a folder of its own.
type row struct {
	// check checks each plan when the catalog is compiled; nil for no check.
	check check.Func
	// onRequest says that a stack offers it only if the operator asks for it.
	onRequest bool
	// settings checks its own settings in the environment; help explains them to
	// whoever starts the embedded broker.
	settings func(getenv func(string) string) error
	help     string
	// deployed builds it in a function. From outside, an operator's command is
	// given what the stack of that name has set, as far as its outputs say; nil if
	// the stack does not have it.
	deployed func(d Deployed) (wired.Provider, error)
	outside  func(stack string, said map[string]string) map[string]string
	// names are those that a thing with these tags has where it was made. Of is what the
	// names of AWS services begin with: the stack, or the identity of an embedded broker.
	names func(of string, t provider.Tags) []string
	// inside makes it in the function inside a VPC, from that function's settings; nil if it
	// is never called there. Reach looks up, outside the VPC, what is needed to reach its
	// targets; nil if nothing is.
	inside func(d Deployed) calls.Open
	reach  func(d Deployed) (calls.Reach, error)
}

// An embedding is what the embedded broker builds a provider with.
type embedding struct {
	dir     string // the provider's own
	folder  string // the data folder
	broker  string // the broker's identity
	used    bool   // the provider was used in that folder before
	offered *catalog.Catalog
	log     *slog.Logger
	getenv  func(string) string
	now     func() time.Time
	wait    func(context.Context, time.Duration) error // waiting.For
	// serves is called with a server that is started in the data folder.
	serves func(backup.Server)
}

// ProviderDemo is the name of the demo in offering files.
const ProviderDemo = "demo"

// rows are all providers, by their names in offering files. It is a function and not a
// variable, since a variable would link all providers into every program: the API's
// function calls none, and each of its cold starts would load them.
func rows() map[string]row {
	all := map[string]row{ProviderDemo: demoRow(), ProviderCloudFormation: cloudformationRow()}
	for name, h := range hostedRows() {
		all[name] = h.row()
	}
	return all
}

func demoRow() row {
	return row{
		check: demo.Check, onRequest: true,
		settings: func(getenv func(string) string) error {
			_, err := demoDelay(getenv)
			return err
		},
		names:    func(_ string, t provider.Tags) []string { return demo.Names(t) },
		help:     EnvDemoDelay + "\n      how long the demo's asynchronous steps take, such as 500ms; 3s unless set",
		deployed: func(d Deployed) (wired.Provider, error) { return demoWired(d.Getenv, now) },
		outside:  func(string, map[string]string) map[string]string { return nil }, // it holds nothing
		inside:   demoInside,
	}
}

// Providers are the names of all providers, in order.
func Providers() []string { return slices.Sorted(maps.Keys(rows())) }

// OnRequest reports whether a stack offers a provider only where the operator
// asks for it.
func OnRequest(name string) bool { return rows()[name].onRequest }

// Checks are the checks of plans in offering files, by the names of the providers; nil
// for no check.
func Checks() map[string]check.Func {
	all := map[string]check.Func{}
	for name, r := range rows() {
		all[name] = r.check
	}
	return all
}

// namesOf are the names that things have where they were made, by their providers.
func namesOf(of string) map[string]func(provider.Tags) []string {
	all := map[string]func(provider.Tags) []string{}
	for name, r := range rows() {
		all[name] = func(t provider.Tags) []string { return r.names(of, t) }
	}
	return all
}

// waits are how long a request waits for the work of providers whose Wired has a wait
// of its own. They are not in the rows because the API's function knows providers by
// name only.
var waits = map[string]time.Duration{
	ProviderCloudFormation: wired.MaxWait, // AWS needs seconds until a new key works
}

// ProviderSettings explains the settings of providers in the environment.
func ProviderSettings() string {
	var all []string
	known := rows()
	for _, name := range Providers() {
		all = append(all, known[name].help)
	}
	return strings.Join(all, "\n  ")
}

// checkProviders checks the settings of all providers.
func checkProviders(getenv func(string) string) error {
	var problems []error
	known := rows()
	for _, name := range Providers() {
		problems = append(problems, known[name].settings(getenv))
	}
	return errors.Join(problems...)
}

// A builder builds a provider for the embedded broker.
type builder func(e embedding) (wired.Provider, error)

// builders are those of all providers, by their names. They stand apart from the rows so
// that functions link neither what starts servers nor what reads the AWS CLI's files.
func builders() map[string]builder {
	all := map[string]builder{
		ProviderDemo:           func(e embedding) (wired.Provider, error) { return demoWired(e.getenv, e.now) },
		ProviderCloudFormation: cloudformationEmbedded,
	}
	for name, h := range hostedRows() {
		all[name] = h.embedded
	}
	return all
}

// wiredIn builds the known providers for the embedded broker, in its data folder. It
// also returns those that are left out, and why. The wired ones are to be closed.
func wiredIn(
	known map[string]builder, f *folder, offered *catalog.Catalog, getenv func(string) string, log *slog.Logger,
) (providers map[string]wired.Provider, left map[string]error, err error) {
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	all := map[string]wired.Provider{}
	defer func() {
		if err != nil {
			closeAll(all)
		}
	}()
	left = map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		w, err := known[name](embedding{
			dir: f.path(name), folder: f.dir, broker: f.mark.Broker,
			used: slices.Contains(f.mark.Providers, name), offered: offered,
			getenv: getenv, now: f.clock.Now, wait: waiting.For, log: log,
			serves: func(s backup.Server) { f.server = &s },
		})
		if why, leaves := errors.AsType[unavailable](err); leaves {
			left[name] = why.error
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("opening the folder of the provider %s: %w", name, err)
		}
		if w.CallTimeout == 0 {
			w.CallTimeout = callTimeout
		}
		all[name] = w
		if err := f.used(name); err != nil {
			return nil, nil, err
		}
	}
	return all, left, wired.Check(all, hardTimeout)
}

// closeAll closes what providers keep open.
func closeAll(providers map[string]wired.Provider) {
	for _, w := range providers {
		if w.Close != nil {
			w.Close()
		}
	}
}

// wired builds the providers that the stack has, and has those called inside the VPC
// that need it.
func (d Deployed) wired() (providers map[string]wired.Provider, err error) {
	providers = map[string]wired.Provider{}
	all := rows()
	for name := range strings.SplitSeq(d.Getenv(EnvProviders), ",") {
		r, known := all[name]
		if name == "" {
			continue
		}
		if !known {
			return nil, advice.For(EnvProviders, fmt.Sprintf("names an unknown provider %q", name),
				"deploy all functions of one version")
		}
		w, err := r.deployed(d)
		if err != nil {
			return nil, err
		}
		providers[name] = w
	}
	if providers, err = d.throughVPC(providers); err != nil {
		return nil, err
	}
	return providers, wired.Check(providers, ProvisionerTimeout)
}

// fromOutside is the environment of a stack's functions, as far as providers need it
// for an operator's command; said are the stack's outputs.
func fromOutside(stack string, said map[string]string) map[string]string {
	set := map[string]string{
		EnvStack: stack, EnvBroker: said[outputs.Broker], EnvCalls: said[outputs.Calls], EnvInVPC: said[outputs.InVPC],
	}
	var has []string
	known := rows()
	for _, name := range Providers() {
		if its := known[name].outside(stack, said); its != nil {
			has = append(has, name)
			maps.Copy(set, its)
		}
	}
	set[EnvProviders] = strings.Join(has, ",")
	return set
}

// EnvDemoDelay is how long the demo's asynchronous steps take.
const EnvDemoDelay = "LONGSHORE_DEMO_DELAY"

// DefaultDemoDelay is the demo's delay unless it is set.
const DefaultDemoDelay = 3 * time.Second

func demoDelay(getenv func(string) string) (time.Duration, error) {
	return durationIn(getenv, EnvDemoDelay, DefaultDemoDelay, 0, 24*time.Hour)
}

func demoWired(getenv func(string) string, now func() time.Time) (wired.Provider, error) {
	delay, err := demoDelay(getenv)
	return wired.Provider{Provider: demo.New(delay, now)}, err
}

// demoInside is the demo inside a VPC, for tests of such calls.
func demoInside(d Deployed) calls.Open {
	return func(json.RawMessage) (wired.Provider, error) { return demoWired(d.Getenv, now) }
}
