package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	counted "github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testserver"
)

// find waits until a pattern is found in what a program writes, and gives its group.
func find(t *testing.T, s *testserver.Output, pattern string) string {
	t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(s.String()); found != nil {
			return found[1]
		}
	}
	t.Fatalf("there is no %s in:\n%s", pattern, s)
	return ""
}

// serveWith runs `longshore serve` until the test ends or stop is called, which gives the exit status.
func serveWith(t *testing.T, args ...string) (out, log *testserver.Output, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, log = new(testserver.Output), new(testserver.Output)
	env := map[string]string{app.EnvUsername: checkUser, app.EnvPassword: checkPassword, app.EnvAWS: "what --aws stands before",
		"LONGSHORE_MARIADB_URL": "what --mariadb stands before, as nothing"}
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"serve", "--aws=false", "--mariadb", "", "--listen", "127.0.0.1:0", "--data",
			t.TempDir()}, args...), func(name string) string { return env[name] }, out, log)
	}()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { stop() })
	return out, log, stop
}

// asked sends a request on a connection of its own.
func asked(t *testing.T, method, url, body string, authority []byte) (status int, said string, _ http.Header, _ error) {
	t.Helper()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	r := expect.Get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	if strings.Contains(url, "/v2/") {
		r.SetBasicAuth(checkUser, checkPassword)
		r.Header.Set("X-Broker-API-Version", "2.17")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	resp, err := (&http.Client{Timeout: limit, Transport: transport}).Do(r)
	if err != nil {
		return 0, "", nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), resp.Header, err
}

func write(t *testing.T, path string, content []byte, mode os.FileMode, changed time.Time) {
	t.Helper()
	expect.OK(t, errors.Join(os.WriteFile(path, content, 0o600), os.Chmod(path, mode), os.Chtimes(path, changed, changed)))
}

// A certificate is renewed while the broker serves: one that cannot be used leaves the old one, and
// is logged once. Beside the API there is whether it lives, and for monitoring what it counts.
func TestServeForMonitoringAndOverTLS(t *testing.T) {
	first, errFirst := testserver.NewCertificates()
	second, errSecond := testserver.NewCertificates()
	expect.OK(t, errors.Join(errFirst, errSecond))
	dir, at := t.TempDir(), time.Now().Add(-time.Hour)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, cert, first.Server, 0o644, at)
	write(t, key, first.Key, 0o644, at)
	out, log, stop := serveWith(t, "--tls-cert", cert, "--tls-key", key, "--operate", "127.0.0.1:0", "--log-format", "json")
	url, monitoring := find(t, out, `URL +(https://\S+)`), find(t, log, `"operate":"(http://127[^"]+)"`)
	find(t, log, `(every user of this machine may read the key)`)

	must := func(want int, method, url, body string, authority []byte) (string, http.Header) {
		t.Helper()
		status, answer, header, err := asked(t, method, url, body, authority)
		if err != nil || status != want {
			t.Fatalf("%s %s: %d %s %v, want %d", method, url, status, answer, err, want)
		}
		return answer, header
	}
	healthy, _ := must(200, "GET", url+"/healthz", "", first.Authority)
	expect.Same(t, "it says", "ok\n", healthy)
	must(401, "POST", url+"/healthz", "", first.Authority)
	must(401, "GET", url+"/metrics", "", first.Authority)
	must(404, "GET", strings.Replace(monitoring, "/metrics", "/v2/catalog", 1), "", nil)
	offered, _ := must(200, "GET", url+"/v2/catalog", "", first.Authority)
	ids := regexp.MustCompile(`"id":"([^"]+)","name":"demo"[^§]*?"id":"([^"]+)","name":"sync"`).FindStringSubmatch(offered)
	if ids == nil {
		t.Fatal(offered)
	}
	must(201, "PUT", url+"/v2/service_instances/i", `{"service_id":"`+ids[1]+`","plan_id":"`+ids[2]+
		`","organization_guid":"o","space_guid":"s"}`, first.Authority)
	text, header := must(200, "GET", monitoring, "", nil)
	expect.Same(t, "metrics are", counted.ContentType, header.Get("Content-Type"))
	counts(t, text, map[string]float64{
		`longshore_accepted_total{"kind": "provision"}`:                                                 1,
		`longshore_settled_total{"kind": "provision", "result": "succeeded"}`:                           1,
		`longshore_duration_seconds_count{"kind": "provision", "result": "succeeded"}`:                  1,
		`longshore_duration_seconds_bucket{"kind": "provision", "le": "3600.0", "result": "succeeded"}`: 1,
		`longshore_answered_total{"class": "2xx"}`:                                                      2,
		`longshore_answered_total{"class": "4xx"}`:                                                      2,
	})

	write(t, cert, second.Server, 0o644, at.Add(time.Minute))
	for range 3 { // the key is not there yet
		must(200, "GET", url+"/healthz", "", first.Authority)
	}
	write(t, key, second.Key, 0o600, at.Add(time.Minute))
	must(200, "GET", url+"/healthz", "", second.Authority)
	if _, _, _, err := asked(t, "GET", url+"/healthz", "", first.Authority); err == nil {
		t.Error("the old certificate is served on")
	}
	if status := stop(); status != 0 || strings.Count(log.String(), "cannot be used: the previous one stays in use") != 1 {
		t.Errorf("exit status %d, and the log says:\n%s", status, log)
	}
	for _, line := range strings.Split(strings.TrimSpace(log.String()), "\n") {
		if strings.Contains(line, "\"level\"") && !json.Valid([]byte(line)) {
			t.Errorf("the log has %q", line)
		}
	}
}

// counts requires that a reader of OpenMetrics, which is strict, finds these samples and some of the process.
func counts(t *testing.T, text string, want map[string]float64) {
	t.Helper()
	python := repository + "/.tools/clients-2/python/bin/python3"
	expect.Get(os.Stat(python))(t, "the reader of metrics is not installed: run make clients:")
	read := exec.Command(python, "-c", `
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
print(json.dumps({s.name + (json.dumps(s.labels, sort_keys=True) if s.labels else ""): s.value
                  for family in read(sys.stdin.read()) for s in family.samples}))`)
	read.Stdin = strings.NewReader(text)
	raw, err := read.CombinedOutput()
	var got map[string]float64
	if err := errors.Join(err, json.Unmarshal(raw, &got)); err != nil {
		t.Fatalf("%v: %s\n%s", err, raw, text)
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s is %v, want %v:\n%s", name, got[name], n, text)
		}
	}
	for _, name := range []string{"process_cpu_seconds_total", "process_open_fds", "process_start_time_seconds", "go_goroutines",
		"go_memstats_heap_alloc_bytes", "process_resident_memory_bytes"} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}

// A level leaves out what is below it, and an address that others reach is warned of.
func TestServeLogs(t *testing.T) {
	out, log, stop := serveWith(t, "--operate", "0.0.0.0:0", "--log-level", "warn")
	find(t, out, `(Longshore is ready)`)
	if status := stop(); status != 0 || strings.Contains(log.String(), "level=INFO") {
		t.Errorf("exit status %d:\n%s", status, log)
	}
	has(t, log.String(), "level=WARN", "let only your monitoring reach it")
}

func TestServeRefuses(t *testing.T) {
	taken := httpOf(t, http.NotFoundHandler(), 1, nil)
	none := filepath.Join(t.TempDir(), "none.pem")
	for args, want := range map[string]string{
		"--log-level loud":                          `--log-level does not take "loud": give debug, info, warn or error`,
		"--aws=perhaps":                             `--aws does not take "perhaps": give true or false`,
		"--log-format xml":                          `--log-format does not take "xml": give text or json`,
		"--tls-cert " + none:                        "give both, or neither",
		"--tls-cert " + none + " --tls-key " + none: "give PEM files that belong together",
		"--operate " + taken:                        "choose another address with --operate",
	} {
		_, log, stop := serveWith(t, strings.Fields(args)...)
		find(t, log, `(longshore: )`)
		expect.Same(t, args+": exit status 0", false, stop() == 0)
		has(t, log.String(), want)
	}
}

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

// The broker answers a client that has not logged in before its body is there, reads no more of it, and closes the connection.
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
				expect.Get(io.Copy(io.Discard, in))(t, "after the answer the server waits for the body:")
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
	expect.Never(t, "the log, with a generated one", mustStart(t, dir, "", "").log.String(), "characters")
}

// Ctrl-C cuts off no request, however long its provider may make it wait.
func TestStoppingWaitsForTheLongestRequest(t *testing.T) {
	if shutdownTimeout <= wired.MaxWait || shutdownTimeout >= writeTimeout {
		t.Errorf("a request may wait %v, and is given %v of %v to end", wired.MaxWait, shutdownTimeout, writeTimeout)
	}
}
