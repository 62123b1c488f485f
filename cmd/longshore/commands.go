package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/logs"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/osb"
)

// version is set when a release is built.
var version = ""

// A usageError says that the command line cannot be understood.
type usageError struct{ what string }

func (e *usageError) Error() string { return e.what }

func dispatch(ctx context.Context, args []string, getenv func(string) string, out, diagnostics io.Writer) error {
	if len(args) == 0 {
		return &usageError{"say what to do"}
	}
	switch args[0] {
	case "serve":
		return serve(ctx, args[1:], getenv, out, diagnostics)
	case "catalog":
		return validate(args[1:], out)
	case "platform":
		return platform(ctx, args[1:], out, diagnostics)
	case "instances", "bindings", "operations":
		return listing(ctx, operator.What(args[0]), args[1:], out, diagnostics)
	case "retry":
		return retry(ctx, args[1:], out)
	case "settle":
		return settle(ctx, args[1:], out)
	case "reaper":
		return reaperCommand(ctx, args[1:], out)
	case "rebuild":
		return rebuild(ctx, args[1:], out)
	case "check":
		return check(ctx, args[1:], getenv, out, diagnostics)
	case "try":
		return try(ctx, args[1:], getenv, out, diagnostics)
	case "version":
		_, err := fmt.Fprintln(out, "longshore", versionText())
		return err
	case "help", "-h", "-help", "--help":
		_, err := fmt.Fprint(out, usage)
		return err
	default:
		return &usageError{fmt.Sprintf("unknown command %q", args[0])}
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

// validate checks offering files. Broken ones are listed with file, line and
// remedy, all of them at once.
func validate(args []string, out io.Writer) error {
	if len(args) == 0 || args[0] != "validate" || len(args) > 2 {
		return &usageError{"catalog knows one command: catalog validate [DIR]"}
	}
	dir := ""
	if len(args) == 2 {
		dir = args[1]
	}
	offered, err := app.LoadCatalog(dir)
	if err != nil {
		return err
	}
	for _, o := range offered.Offerings() {
		if _, err := fmt.Fprintf(out, "%s: %d plans\n", o.Name, len(o.Plans)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, "the catalog is valid")
	return err
}

// Times of the HTTP server. The longest answer is a synchronous one of 15 s.
const (
	headerTimeout   = 10 * time.Second
	readTimeout     = time.Minute
	writeTimeout    = time.Minute
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 20 * time.Second
	maxHeaderBytes  = 64 << 10
)

// serve runs the embedded broker until the context ends.
func serve(ctx context.Context, args []string, getenv func(string) string, out, diagnostics io.Writer) error {
	settings := app.Settings{}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&settings.Listen, "listen", "127.0.0.1:8080", "")
	flags.StringVar(&settings.Data, "data", ".longshore", "")
	flags.StringVar(&settings.Offerings, "offerings", "", "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return &usageError{err.Error()}
	case flags.NArg() > 0:
		return &usageError{fmt.Sprintf("serve does not take %q", flags.Arg(0))}
	}
	settings, err := settings.Complete(getenv)
	if err != nil {
		return err
	}
	log := slog.New(logs.Handler{Handler: slog.NewTextHandler(diagnostics, nil)})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", settings.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w: choose another address with --listen", err)
	}
	embedded, err := app.OpenEmbedded(settings, log)
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer embedded.Close()
	server := &http.Server{
		Handler: embedded.Handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, DisableGeneralOptionsHandler: true, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	welcome(out, listener.Addr().String(), embedded, settings)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(osb.Listener(listener)) }()
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

// welcome says where the broker is and how to try it. The password is printed
// only if it was generated here: one that was set is known already.
func welcome(out io.Writer, address string, embedded *app.Embedded, s app.Settings) {
	url, c := "http://"+address, embedded.Credential
	service, plan := embedded.Trial()
	password, login := c.Password, c.Username+":"+c.Password
	if s.Username != "" {
		password, login = "(from "+app.EnvPassword+")", `"$`+app.EnvUsername+`:$`+app.EnvPassword+`"`
	}
	_, _ = fmt.Fprintf(out, `Longshore is ready.

  URL       %[1]s
  user      %[2]s
  password  %[3]s
  data      %[4]s

Try it:

  curl -s -u %[5]s -H 'X-Broker-API-Version: 2.17' %[1]s/v2/catalog

  curl -s -u %[5]s -H 'X-Broker-API-Version: 2.17' -X PUT '%[1]s/v2/service_instances/my-first?accepts_incomplete=true' \
    -d '{"service_id":"%[6]s","plan_id":"%[7]s","organization_guid":"o","space_guid":"s"}'

  curl -s -u %[5]s -H 'X-Broker-API-Version: 2.17' %[1]s/v2/service_instances/my-first/last_operation

Stop it with Ctrl-C; what is running goes on at the next start.
`, url, c.Username, password, s.Data, login, service, plan)
}
