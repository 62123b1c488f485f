package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/secret"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgserver"
)

// A hostedRow is a provider on shared servers: it has what differs between such
// providers, and their rows derive from it.
type hostedRow struct {
	name   string // in offering files, flags, context values and, in capitals, the environment
	title  string // as people write it
	engine hosted.AddressForm
	check  check.Func
	// names are those that a thing with these tags has on its server.
	names func(t provider.Tags) []string
	// open makes it over servers, whose connections Close ends. It calls none.
	open func(o hostedOptions) wired.Provider
	// start starts a server of the broker's own, in the provider's folder; nil if there is
	// none to start. URLEmbedded asks for it. Its stop is called last of all.
	start func(e embedding) (started, error)
	// help explains the settings of that server; empty for none.
	help string
}

// hostedOptions are what a provider on shared servers is opened with.
type hostedOptions struct {
	Broker   string
	Accesses hosted.Accesses
	Now      func() time.Time
	Log      *slog.Logger
	// Pool is how many connections it may keep for later steps; 0 for none, as in a
	// function, which may be frozen after each step.
	Pool int
	// Copies says that it may copy databases with the engine's own programs. These are in
	// the folder Programs, or on the PATH.
	Copies   bool
	Programs string
}

// A started server is one of the broker's own: how to reach it, where its programs are,
// and how to stop it.
type started struct {
	secret.Holder
	access   hosted.Access
	programs string
	stop     func()
}

// pool is how many connections the embedded broker keeps to a server.
const pool = 8

// URLEmbedded is given instead of a URL for a server of the broker's own.
const URLEmbedded = "embedded"

// hostedRows are all of them, by their names.
func hostedRows() map[string]hostedRow { return byName(mariadbRow(), postgresRow(), valkeyRow()) }

func byName(all ...hostedRow) map[string]hostedRow {
	of := map[string]hostedRow{}
	for _, h := range all {
		of[h.name] = h
	}
	return of
}

// The names of its settings in the environment.
func (h hostedRow) envURL() string { return "LONGSHORE_" + strings.ToUpper(h.name) + "_URL" }
func (h hostedRow) envPasswordFile() string {
	return "LONGSHORE_" + strings.ToUpper(h.name) + "_PASSWORD_FILE"
}

// flag is its flag of `longshore serve`.
func (h hostedRow) flag() string { return "--" + h.name }

// setting is how messages name the setting that says where the server is.
func (h hostedRow) setting() string { return fmt.Sprintf("%s (or %s)", h.flag(), h.envURL()) }

// row is the provider's row.
func (h hostedRow) row() row {
	return row{
		check: h.check, onRequest: true,
		settings: func(getenv func(string) string) error {
			_, _, err := h.access(getenv)
			_, err2 := h.secretsIn(getenv)
			return errors.Join(err, err2)
		},
		help: h.envURL() + ", " + h.envPasswordFile() + "\n" +
			"      what " + h.flag() + " says, where other users of the machine do not see it, and the\n" +
			"      file that holds the password, if the URL has none" + h.help,
		names:    func(_ string, t provider.Tags) []string { return h.names(t) },
		deployed: h.deployed,
		outside: func(_ string, said map[string]string) map[string]string {
			if all := said[outputs.Secrets(h.name)]; all != "" {
				return map[string]string{h.envSecrets(): all}
			}
			return nil
		},
		inside: h.inside, reach: h.reach,
	}
}

// access reads where the server is; from is "" if the provider is not set up, and
// URLEmbedded if a server is to be started, of which nothing is known yet.
func (h hostedRow) access(getenv func(string) string) (a hosted.Access, from string, err error) {
	from, file := getenv(h.envURL()), getenv(h.envPasswordFile())
	switch {
	case from == "" && file != "":
		return a, "", advice.For(h.envPasswordFile(), "is set, and no server", "give "+h.setting()+" too, or leave it out")
	case from == "":
		return a, "", nil
	case from == URLEmbedded && h.start == nil:
		return a, "", advice.For(h.setting(), "is "+URLEmbedded+", and the broker has no such server of its own",
			"give the URL of one, such as "+h.engine.Example)
	case from == URLEmbedded && file != "":
		return a, "", advice.For(h.envPasswordFile(), "is set beside "+URLEmbedded,
			"leave it out: the broker's own server needs none")
	case from == URLEmbedded:
		return a, from, nil
	}
	if a, err = hosted.ParseURL(h.setting(), from, h.engine); err != nil || file == "" {
		return a, from, err
	}
	if a.Password != "" {
		return a, "", advice.For(h.envPasswordFile(), "is set, and the URL has a password too", "leave it out of the URL")
	}
	text, err := os.ReadFile(file)
	if err == nil && strings.TrimRight(string(text), "\r\n") == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return a, "", &advice.Error{Name: h.envPasswordFile(), What: "names a file without a password",
			Remedy: "name one that holds it alone, and that the broker may read", Cause: err}
	}
	a.Password = strings.TrimRight(string(text), "\r\n")
	return a, from, nil
}

// An unavailable error says why the embedded broker goes on without a provider.
type unavailable struct{ error }

func (u unavailable) Unwrap() error { return u.error }

// embedded wires it in the embedded broker, if it is set up.
func (h hostedRow) embedded(e embedding) (wired.Provider, error) {
	access, from, err := h.access(e.getenv)
	if err != nil {
		return wired.Provider{}, err
	}
	own := started{access: access, programs: e.getenv(pgserver.EnvBin), stop: func() {}}
	switch from {
	case "":
		return wired.Provider{}, unavailable{advice.For(h.flag(), "is not given", "give it, or "+h.envURL())}
	case URLEmbedded:
		if own, err = h.start(e); err != nil {
			return wired.Provider{}, unavailable{err}
		}
	}
	accesses := hosted.Accesses{hosted.DefaultTarget: own.access}
	w := h.open(hostedOptions{
		Broker: e.broker, Accesses: accesses, Now: e.now, Log: e.log, Pool: pool, Copies: true, Programs: own.programs,
	})
	disconnect := w.Close
	w.Targets = accesses.Targets
	w.Close = func() {
		disconnect()
		own.stop()
	}
	if from != URLEmbedded { // that one has answered
		h.greet(w, e.log)
	}
	return w, nil
}

// greetTimeout is how long a server may delay the start of the embedded broker.
const greetTimeout = 5 * time.Second

// greet tells the operator at the start, rather than at the first operation, what is
// wrong with a server. The broker goes on: its operations wait until that is mended.
func (h hostedRow) greet(made wired.Provider, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), greetTimeout)
	defer cancel()
	if _, _, err := made.Reconciler.Survey(ctx, hosted.DefaultTarget); err != nil {
		log.Error("the "+h.title+" server cannot be used: what is asked of it waits until this is mended",
			"provider", h.name, "error", err)
	}
}

// A HostedFlag is a flag that says where a provider's server is.
type HostedFlag struct{ Name, Usage string }

// HostedFlags are those of `longshore serve`, in the order of their names.
func HostedFlags() (all []HostedFlag) {
	for _, name := range HostedProviders() {
		h := hostedRows()[name]
		usage := fmt.Sprintf("`URL` of the %s server to make instances on, %s; without it there are none",
			h.title, h.engine.Example)
		if h.start != nil {
			usage += ", and with " + URLEmbedded + " the broker starts one"
		}
		all = append(all, HostedFlag{name, usage})
	}
	return all
}

// HostedProviders are the names of the providers on shared servers, in order.
func HostedProviders() []string { return slices.Sorted(maps.Keys(hostedRows())) }

// EnvSecrets is what tells the functions where the secrets of such a provider's
// servers are.
func EnvSecrets(name string) string { return hostedRows()[name].envSecrets() }

// WithFlags is the environment, in which flags take precedence over variables.
func WithFlags(servers map[string]string, aws bool, getenv func(string) string) func(string) string {
	given := map[string]string{}
	if aws {
		given[EnvAWS] = "true"
	}
	for name, server := range servers {
		if server != "" {
			given[hostedRows()[name].envURL()] = server
		}
	}
	return func(name string) string {
		if value, ok := given[name]; ok {
			return value
		}
		return getenv(name)
	}
}

// warnOfShown warns of passwords on the command line.
func warnOfShown(servers map[string]string, log *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		h := hostedRows()[name]
		if u, err := url.Parse(servers[name]); err == nil && u.User != nil {
			if _, has := u.User.Password(); has {
				log.Warn(fmt.Sprintf("every user of this machine can read the password that %s has: give the URL in %s, "+
					"or the password in the file that %s names", h.flag(), h.envURL(), h.envPasswordFile()))
			}
		}
	}
}
