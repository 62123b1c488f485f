package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/test/expect"
)

// limit ends a test that hangs. It is shorter than the time after which the server gives up a body by itself.
const limit = 30 * time.Second

// httpOf serves a handler as the embedded broker is served.
func httpOf(t *testing.T, handler http.Handler, most int, seen func(net.Conn, http.ConnState)) (address string) {
	t.Helper()
	l := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := newHTTPServer(t.Context(), handler, slog.New(slog.DiscardHandler))
	server.ConnState = seen
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(bounded(l, most)) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return l.Addr().String()
}

// The broker answers a client that has not logged in before its body is there, reads no
// more of it, and closes the connection.
func TestBodiesAreNotReadBeforeTheLogin(t *testing.T) {
	s := mustStart(t, t.TempDir(), "cf", first)
	address := httpOf(t, s.broker.Handler, maxConnections, nil)
	for name, head := range map[string]string{
		"Counted":  "Content-Length: 200000\r\n",
		"TooLarge": "Content-Length: 99999999\r\n",
		"Chunked":  "Transfer-Encoding: chunked\r\n",
		"Expected": "Content-Length: 200000\r\nExpect: 100-continue\r\n",
	} {
		for who, credentials := range map[string]string{"Nobody": "", "Guesser": "Authorization: Basic Y2Y6d3Jvbmc=\r\n"} {
			t.Run(name+who, func(t *testing.T) {
				c := expect.Get(net.Dial("tcp", address))(t)
				defer func() { _ = c.Close() }()
				_ = c.SetDeadline(time.Now().Add(limit))
				expect.Get(fmt.Fprintf(c, "PUT /v2/service_instances/i HTTP/1.1\r\nHost: b\r\n"+
					"X-Broker-API-Version: 2.17\r\n%s%s\r\n", head, credentials))(t)
				in := bufio.NewReader(c)
				answer := expect.Get(http.ReadResponse(in, nil))(t)
				if answer.StatusCode != 401 || !answer.Close {
					t.Errorf("it is answered %d, with the connection closed: %v", answer.StatusCode, answer.Close)
				}
				if _, err := io.Copy(io.Discard, in); err != nil {
					t.Errorf("after the answer the server waits for the body: %v", err)
				}
			})
		}
	}
}

// No more connections than the bound are open at a time, and whoever waits gets his turn.
func TestConnectionsAreBounded(t *testing.T) {
	const most, clients = 3, 24
	var mu sync.Mutex
	open, highest := 0, 0
	together := make(chan struct{}, clients)
	address := httpOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		together <- struct{}{}
		w.Header().Set("Connection", "close")
	}), most, func(_ net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			open++
			highest = max(highest, open)
		case http.StateClosed, http.StateHijacked:
			open--
		}
	})
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			r, err := (&http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address)
			if err != nil {
				t.Error(err)
				return
			}
			_ = r.Body.Close()
		})
	}
	all.Wait()
	if len(together) != clients || highest > most || highest == 0 {
		t.Errorf("%d were served, with up to %d connections at a time", len(together), highest)
	}
}

// A short password is warned of at the start, and not told.
func TestShortPasswordsAreWarnedOf(t *testing.T) {
	dir := t.TempDir()
	s := mustStart(t, dir, "cf", "elevenchars")
	has(t, s.log.String(), "level=WARN", "fewer than 12 characters", "platform=default", "longshore platform rotate default")
	expect.Never(t, "the log", s.log.String(), "elevenchars")
	s.stop()
	say(t, dir, "password", "add", "korifi")
	say(t, dir, ": ", "rotate", "default", "--now", "--overlap", "0s")
	if s = mustStart(t, dir, "", ""); strings.Contains(s.log.String(), "characters") {
		t.Errorf("a generated one is warned of:\n%s", s.log)
	}
}

// Ctrl-C cuts off no request, however long its provider may make it wait.
func TestStoppingWaitsForTheLongestRequest(t *testing.T) {
	if shutdownTimeout <= wired.MaxWait || shutdownTimeout >= writeTimeout {
		t.Errorf("a request may wait %v, and is given %v of %v to end", wired.MaxWait, shutdownTimeout, writeTimeout)
	}
}
