package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/shell"
)

// version is set when a release is built.
var version = ""

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which version this is",
		RunE: func(c *cobra.Command, _ []string) error {
			printf(c.OutOrStdout(), "longshore version %s\n", versionText())
			return nil
		},
	}
}

func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}

// A serveFlags is the flags of `longshore serve`.
type serveFlags struct {
	embedded.Settings
	operate         string // the address that answers monitoring; may be empty
	cert, key       string
	format, leastOf string // the format and the least level of the log
}

func newServe(getenv func(string) string) *cobra.Command {
	var s serveFlags
	c := &cobra.Command{
		Use: "serve", Short: "Run the broker in this process, with no cloud account",
		Long: `Run the broker in this process. It needs no cloud account, unless it is to offer
AWS services (--aws). It keeps everything in one folder; operations that run when it
ends go on at its next start.

Settings from the environment:

  LONGSHORE_USERNAME, LONGSHORE_PASSWORD
      what the platform logs in with: the first credential of a new folder,
      generated unless both are set. Later on the folder alone decides: leave
      both unset, or set them to the login that platform default has
  ` + embedded.Help() + `
  LONGSHORE_REAPER_DRY_RUN
      if true, the reaper only reports things without a record
  LONGSHORE_PLATFORM_RATE
      requests a second that each platform may send; more are answered 429.
      Unless it is set, as many as it likes
  LONGSHORE_MIN_RETRY_AFTER, LONGSHORE_MAX_RETRY_AFTER
      bounds of Retry-After; 1s and 1m unless set`,
		RunE: func(c *cobra.Command, _ []string) error {
			return serve(c.Context(), s, getenv, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&s.Listen, "listen", "127.0.0.1:8080", "where to listen, `HOST:PORT`")
	f.StringVar(&s.Origin, "origin", "", "`URL` at which browsers reach the broker, such as https://broker.example.com; "+
		"unless given, the address that it listens on")
	f.StringVar(&s.Data, "data", dataFolder, "`DIR` that holds everything: records, sealed secrets, what providers keep")
	f.StringVar(&s.Offerings, "offerings", "", "`DIR` of your own offerings, DIR/NAME/offering.yaml, beside the shipped ones")
	f.StringVar(&s.cert, "tls-cert", "", "`FILE` with the certificate and its chain, for HTTPS; "+
		"read again once it has changed")
	f.StringVar(&s.key, "tls-key", "", "`FILE` with the key of --tls-cert")
	f.StringVar(&s.operate, "operate", "", "answer monitoring at http://`HOST:PORT`/metrics, without a login")
	choose(c, &s.format, "log-format", "text", "`FORMAT` of the log: text or json", "text", "json")
	choose(c, &s.leastOf, "log-level", "info", "`LEVEL` of what is logged, and above: debug, info, warn or error",
		"debug", "info", "warn", "error")
	s.Flags = map[string]string{}
	providerFlags(c, s.Flags, "offer AWS services, where AWS_PROFILE, AWS_REGION and AWS_ENDPOINT_URL lead", "")
	return c
}

// providerFlags adds the flags that say whether AWS services are offered, and where the servers of providers are, each
// server with its own usage unless one is given. No message shows the servers, which may contain passwords.
func providerFlags(c *cobra.Command, given map[string]string, usageAWS, usage string) {
	c.Flags().BoolFunc("aws", usageAWS, func(text string) error {
		on, err := strconv.ParseBool(text)
		given[app.EnvAWS] = strconv.FormatBool(on)
		return err
	})
	for name, f := range embedded.Flags() {
		c.Flags().Func(name, cmp.Or(usage, f.Usage), func(url string) error {
			given[f.Env] = url
			return nil
		})
	}
}

// garbage is the size of the garbage, in percent of the live heap, at which the collector runs.
// With Go's default of 100, a broker of a few megabytes collects dozens of times a second while
// platforms poll; 200 costs 4 MB more while the broker is busy.
const garbage = 200

// serve runs the embedded broker until the context ends.
func serve(ctx context.Context, s serveFlags, getenv func(string) string, out, diagnostics io.Writer) error {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	settings, err := s.Complete(getenv)
	if err != nil {
		return err
	}
	all, err := offeringfiles.Load(s.Offerings)
	if err != nil {
		return err
	}
	log := newLog(diagnostics, s.format, s.leastOf)
	scheme, safe, err := safety(s.cert, s.key, log)
	if err != nil {
		return err
	}
	listener, err := listenOn(ctx, settings.Listen, "--listen")
	if err != nil {
		return err
	}
	// Hazard: systemd would keep a printed link or password in its journal, where others may read it.
	journal := journaled(getenv("JOURNAL_STREAM"))
	prints := !journal && (settings.Origin != "" || loopback(listener.Addr().String()))
	if settings.Origin == "" {
		settings.Origin = scheme + browsed(listener.Addr().String())
	}
	broker, err := embedded.Open(settings, all, log)
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer broker.Close()
	checking, stop := context.WithCancel(ctx)
	defer stop()
	if s.operate != "" {
		if err := operate(checking, s.operate, broker.Metrics, log); err != nil {
			_ = listener.Close()
			return err
		}
	}
	server := newHTTPServer(ctx, broker.Handler, log)
	server.TLSConfig = safe
	welcome(out, scheme+listener.Addr().String(), broker, settings, journal, consoleLink(ctx, broker, prints))
	ended := make(chan error, 1)
	go func() { ended <- serveOn(server, bounded(listener, maxConnections)) }()
	go broker.CheckRecords(checking)
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	log.Info("stopping; operations that are running go on at the next start")
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(shutdown); err != nil {
		return fmt.Errorf("stopping: %w", errors.Join(err, server.Close()))
	}
	return nil
}

// journaled reports whether the standard output is the stream into systemd's journal that JOURNAL_STREAM names. Other
// processes that a service has started have the variable, too, such as a shell in a terminal.
func journaled(stream string) bool {
	info, err := os.Stdout.Stat()
	if err != nil {
		return false
	}
	is, known := info.Sys().(*syscall.Stat_t)
	return known && stream == fmt.Sprintf("%d:%d", is.Dev, is.Ino)
}

// browsed returns the address as a browser on this machine should name it. Browsers trust localhost
// with cookies that need a secure connection, but not all of them trust an IP address.
func browsed(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip, parsed := netip.ParseAddr(host); err == nil && parsed == nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		address = net.JoinHostPort("localhost", port)
	}
	return address
}

// loopback reports whether an address can be reached from this machine only.
func loopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().IsLoopback()
}

// consoleLink returns a link to the console. Anybody who reads the link can use it, so it is
// printed but never logged.
func consoleLink(ctx context.Context, broker *embedded.Broker, prints bool) string {
	if prints {
		if link, err := broker.Watched(ctx); err == nil {
			return link
		}
	}
	return "(ask for one by the command below; where others reach the broker, give --origin first)"
}

// welcome prints where the broker is and how to try it. It prints the password only if the password was generated, and
// not into a journal.
func welcome(out io.Writer, url string, broker *embedded.Broker, s embedded.Settings, journal bool, link string) {
	p := broker.Default
	trial, asked, data := broker.Trial(), shell.Word(url), shell.Word(s.Data)
	username, password, login := p.Username, p.Password, shell.Word(p.Username+":"+p.Password)
	switch {
	case !p.Removed.IsZero():
		username, password, login = "(the first platform was removed: `longshore platform list`)", "-", "USER"
	case s.Username != "":
		password, login = "(from "+app.EnvPassword+")", `"$`+app.EnvUsername+`:$`+app.EnvPassword+`"`
	case p.Chosen:
		password, login = "(the one that was set)", shell.Word(p.Username)
	case journal:
		login = shell.Word(p.Username)
		password = fmt.Sprintf("(ask for another one: `longshore platform rotate %s --data %s`)", p.Name, data)
	}
	printf(out, `Longshore is ready.

  URL       %[1]s
  user      %[2]s
  password  %[3]s
  data      %[4]s

Try it:

  curl -s -u %[5]s -H 'X-Broker-API-Version: 2.17' %[10]s/v2/catalog

  curl -s -u %[5]s -H 'X-Broker-API-Version: 2.17' -X PUT %[10]s/v2/service_instances/trial \
    -d '{"service_id":"%[6]s","plan_id":"%[7]s","organization_guid":"o","space_guid":"s"}'

  %[8]s

See it in a browser. This link opens the console once, within 15 minutes:

  %[9]s

Links to the page of an instance, and to the console again:

  longshore dashboard trial --data %[11]s
  longshore console --data %[11]s

Stop it with Ctrl-C; what is running goes on at the next start.
`, url, username, password, s.Data, login, trial.ServiceID, trial.PlanID, binding(asked, login, trial), link, asked, data)
}

// binding returns the commands that get credentials for the trial instance and, for a database, connect with them.
func binding(url, login string, t embedded.Trial) string {
	bind := fmt.Sprintf(`curl -s -u %s -H 'X-Broker-API-Version: 2.17' \
    -X PUT %s/v2/service_instances/trial/service_bindings/trial \
    -d '{"service_id":"%s","plan_id":"%s"}'`, login, url, t.ServiceID, t.PlanID)
	if t.Psql == "" {
		return bind
	}
	return fmt.Sprintf(`%s "$(%s | sed 's/.*"uri":"\([^"]*\)".*/\1/')"`, shell.Word(t.Psql), bind)
}
