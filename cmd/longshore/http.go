package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/front/logins"
	"github.com/longshore/longshore/internal/front/osb"
)

// Bounds of the HTTP server. A client that has not logged in can hold a connection for
// headerTimeout, and then for as long as a failed login waits.
const (
	headerTimeout  = 10 * time.Second
	readTimeout    = time.Minute
	writeTimeout   = time.Minute
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	// shutdownTimeout lets requests finish that wait for their work: a client that gets no answer
	// would take what was made for lost.
	shutdownTimeout = embedded.LongestRequest
	// maxConnections bounds memory and open files; further connections wait in the system's queue until one ends.
	maxConnections = 1024
)

// newHTTPServer makes a server for the broker that slows down failed logins and answers health checks.
func newHTTPServer(ctx context.Context, broker http.Handler, log *slog.Logger) *http.Server {
	guarded := logins.New(broker, logins.Options{
		Now: time.Now, Log: log,
		Sleep: func(asked context.Context, d time.Duration) {
			asked, cancel := context.WithTimeout(asked, d)
			defer cancel()
			select {
			case <-asked.Done():
			case <-ctx.Done(): // the broker stops, and waits until all requests are answered
			}
		},
	})
	return &http.Server{
		Handler: healthy(guarded), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, DisableGeneralOptionsHandler: true,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// listenOn listens on the address that a flag gives.
func listenOn(ctx context.Context, address, flag string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the broker cannot listen on %s: stop what listens there, or choose another address with %s (%w)",
			address, flag, err)
	}
	return l, nil
}

// bounded limits a listener to a number of connections at a time.
func bounded(l net.Listener, most int) net.Listener {
	return netutil.LimitListener(osb.Listener(l), most)
}
