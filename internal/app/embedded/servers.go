package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/adapters"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/secret"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgserver"
)

// A server is a provider on shared servers, for which the broker may start a server of its own.
type server struct {
	providers.Server
	// start starts a server of the broker's own, in the provider's folder, if URLEmbedded asks
	// for it; nil if the broker has no such server. The returned stop is called last of all.
	start func(e embedding) (started, error)
	// help explains the settings of the broker's own server; empty for none.
	help string
}

// servers returns all providers on shared servers, by name.
func servers() map[string]server {
	all := map[string]server{}
	for name, s := range providers.Servers() {
		all[name] = server{Server: s}
	}
	all[app.ProviderPostgres] = server{all[app.ProviderPostgres].Server, startPostgres, postgresSettings}
	return all
}

// A started server is a server of the broker's own: how to reach it, where its programs are, and how to stop it.
type started struct {
	secret.Holder
	access   hosted.Access
	programs string
	stop     func()
}

// pool is how many connections the embedded broker keeps to a server.
const pool = 8

// URLEmbedded is given in place of a URL to ask for a server of the broker's own.
const URLEmbedded = "embedded"

// envURL and envPasswordFile name the server's settings in the environment.
func (s server) envURL() string          { return s.Env("URL") }
func (s server) envPasswordFile() string { return s.Env("PASSWORD_FILE") }

// flag returns the server's flag of `longshore serve`.
func (s server) flag() string { return "--" + s.Name }

// setting returns how messages name the setting that holds the server's address.
func (s server) setting() string { return fmt.Sprintf("%s (or %s)", s.flag(), s.envURL()) }

// settings explains the settings of the server.
func (s server) settings() string {
	return s.envURL() + ", " + s.envPasswordFile() + "\n" +
		"      what " + s.flag() + " says, hidden from other users of the machine, and the\n" +
		"      file that holds the password, if the URL has none" + s.help
}

// access reads how the server is reached. From is "" if the provider is not set up, and
// URLEmbedded if the broker is to start the server, whose address is not known yet.
func (s server) access(getenv func(string) string) (a hosted.Access, from string, err error) {
	from, file := getenv(s.envURL()), getenv(s.envPasswordFile())
	switch {
	case from == "" && file != "":
		return a, "", advice.For(s.envPasswordFile(), "is set, and no server", "give "+s.setting()+" too, or leave it out")
	case from == "":
		return a, "", nil
	case from == URLEmbedded && s.start == nil:
		return a, "", advice.For(s.setting(), "is "+URLEmbedded+", and the broker has no such server of its own",
			"give the URL of one, such as "+s.Form.Example)
	case from == URLEmbedded && file != "":
		return a, "", advice.For(s.envPasswordFile(), "is set beside "+URLEmbedded,
			"leave it out: the broker's own server needs none")
	case from == URLEmbedded:
		return a, from, nil
	}
	if a, err = hosted.ParseURL(s.setting(), from, s.Form); err != nil || file == "" {
		return a, from, err
	}
	if a.Password != "" {
		return a, "", advice.For(s.envPasswordFile(), "is set, and the URL has a password too", "leave it out of the URL")
	}
	text, err := os.ReadFile(file)
	a.Password = strings.TrimRight(string(text), "\r\n")
	if err == nil && a.Password == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return a, "", &advice.Error{Name: s.envPasswordFile(), What: "names a file without a password",
			Remedy: "name one that holds it alone, and that the broker may read", Cause: err}
	}
	return a, from, nil
}

// build wires the provider if it is set up.
func (s server) build(e embedding) (wired.Provider, error) {
	access, from, err := s.access(e.getenv)
	if err == nil && from != "" {
		err = s.checkTargets(e.offered)
	}
	if err != nil {
		return wired.Provider{}, err
	}
	own := started{access: access, programs: e.getenv(pgserver.EnvBin), stop: func() {}}
	switch from {
	case "":
		return wired.Absent(advice.For(s.flag(), "is not given", "give it, or "+s.envURL())), nil
	case URLEmbedded:
		if own, err = s.start(e); err != nil {
			return wired.Absent(err), nil
		}
	}
	accesses := hosted.Accesses{hosted.DefaultTarget: own.access}
	w := adapters.Open(s.Name, adapters.Options{
		Options: hosted.Options{Broker: e.broker, Accesses: accesses, Now: e.now, Log: e.log, Pool: pool},
		Copies:  true, Programs: own.programs,
	})
	disconnect := w.Close
	w.Targets = accesses.Targets
	w.Close = func() {
		disconnect()
		own.stop()
	}
	if from != URLEmbedded { // the broker's own server has answered already
		s.greet(w, e.log)
	}
	return w, nil
}

// checkTargets refuses a plan of another server than the only one that this broker has: its orders would wait for ever.
func (s server) checkTargets(offered *catalog.Catalog) error {
	for _, o := range offered.Offerings() {
		for _, p := range o.Plans {
			if target := hosted.TargetOf(p.Settings); o.Provider == s.Name && target != hosted.DefaultTarget {
				return advice.For("plan "+p.Name+" of offering "+o.Name, fmt.Sprintf("names the server %q", target),
					"leave its setting target out: on one machine there is one "+s.Title+" server")
			}
		}
	}
	return nil
}

// greetTimeout is how long a server may delay the start of the embedded broker.
const greetTimeout = 5 * time.Second

// greet reports a fault of a server at the start, rather than at the first operation. The
// broker starts all the same, and operations wait for the server.
func (s server) greet(made wired.Provider, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), greetTimeout)
	defer cancel()
	if _, _, err := made.Reconciler.Survey(ctx, hosted.DefaultTarget); err != nil {
		log.Error("the "+s.Title+" server cannot be used: its operations wait until this is mended",
			"provider", s.Name, "error", err)
	}
}

// A Flag is a flag of `longshore serve` that stands before a variable of the environment.
type Flag struct{ Env, Usage string }

// Flags returns the flags for the addresses of providers' servers, by name.
func Flags() map[string]Flag {
	all := map[string]Flag{}
	for name, s := range servers() {
		f := Flag{s.envURL(), fmt.Sprintf("`URL` of the %s server to make instances on, %s; without it, the broker offers none",
			s.Title, s.Form.Example)}
		if s.start != nil {
			f.Usage += ", and with " + URLEmbedded + " the broker starts one"
		}
		all[name] = f
	}
	return all
}

// WithFlags returns the environment, in which the value of a given flag, even an empty one, replaces that of its variable.
func WithFlags(given map[string]string, getenv func(string) string) func(string) string {
	return func(name string) string {
		if value, ok := given[name]; ok {
			return value
		}
		return getenv(name)
	}
}

// warnOfShown warns of passwords on the command line.
func warnOfShown(flags map[string]string, log *slog.Logger) {
	for _, s := range sorted.Map(servers()) {
		if u, err := url.Parse(flags[s.envURL()]); err == nil {
			if _, has := u.User.Password(); has {
				log.Warn(fmt.Sprintf("every user of this machine can read the password that %s has: give the URL in %s, "+
					"or the password in the file that %s names", s.flag(), s.envURL(), s.envPasswordFile()))
			}
		}
	}
}
