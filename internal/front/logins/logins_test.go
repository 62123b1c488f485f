package logins

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
)

// handler lets one login in, and answers as the broker does.
var handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	status, body := http.StatusOK, "{}"
	if user, password, _ := r.BasicAuth(); user != "u" || password != "right" {
		w.Header().Set("WWW-Authenticate", "Basic")
		status, body = http.StatusUnauthorized, `{"description":"wrong"}`
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
})

// A world has a clock that sleeping moves.
type world struct {
	*Guard
	mu    sync.Mutex
	now   time.Time
	slept time.Duration
	log   bytes.Buffer
}

func newWorld() *world {
	w := &world{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.Guard = New(handler, Options{
		Now: func() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.now },
		Sleep: func(_ context.Context, d time.Duration) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.now, w.slept = w.now.Add(d), w.slept+d
		},
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	return w
}

func (w *world) login(from, password string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/v2/catalog", nil)
	r.RemoteAddr = from
	if password != "" {
		r.SetBasicAuth("u", password)
	}
	out := httptest.NewRecorder()
	w.ServeHTTP(out, r)
	return out
}

const here, elsewhere = "192.0.2.1:1234", "192.0.2.2:1234"

// AUTH-02: an address has a few failed logins free, then one in five seconds. Good logins, and others', are never held up.
func TestFailedLoginsAreSlowedDown(t *testing.T) {
	w := newWorld()
	for n := range 100 {
		if got := w.login(here, fmt.Sprint("wrong", n)); got.Code != 401 || got.Header().Get("Connection") != "close" ||
			got.Header().Get("WWW-Authenticate") == "" {
			t.Fatalf("guess %d: %d %v", n, got.Code, got.Header())
		}
		if want := max(0, n+1-burst) * int(every); w.slept != time.Duration(want) {
			t.Fatalf("after %d guesses they took %v, want %v", n+1, w.slept, time.Duration(want))
		}
		before := w.slept
		if got := w.login(here, "right"); got.Code != 200 || got.Header().Get("Connection") != "" {
			t.Fatalf("the right password is answered %d", got.Code)
		}
		if n < burst && w.login(elsewhere, "wrong").Code != 401 || w.login(here, "").Code != 401 {
			t.Fatal("others, or a request without credentials, are not answered 401")
		}
		if w.slept != before {
			t.Fatalf("after %d guesses a good login, another address, or a request without credentials waited %v", n+1,
				w.slept-before)
		}
	}
	if lines := strings.Count(w.log.String(), "failed logins are slowed down"); lines < 2 || lines > 9 ||
		!strings.Contains(w.log.String(), "192.0.2.1") || strings.Contains(w.log.String(), "wrong") {
		t.Errorf("the log has %d lines in %v:\n%s", lines, w.slept, &w.log)
	}
	w.now = w.now.Add(burst * every)
	before := w.slept
	for range burst {
		w.login(here, "wrong")
	}
	expect.Same(t, "after a while they have slept", before, w.slept)
}

// Many guesses wait in a bounded number of places; a good login from their address is answered meanwhile, and no debt stays.
func TestGuessesAtOnceAreBounded(t *testing.T) {
	w := newWorld()
	asleep, wake := make(chan time.Duration), make(chan struct{})
	w.Sleep = func(_ context.Context, d time.Duration) { asleep <- d; <-wake }
	for range burst {
		w.login(here, "wrong")
	}
	var waiting sync.WaitGroup
	for range maxWaiting {
		waiting.Go(func() { expect.Same(t, "after its wait a guess is answered", 401, w.login(here, "wrong").Code) })
		if d := <-asleep; d <= 0 || d > maxDelay {
			t.Errorf("it waits %v", d)
		}
	}
	got := w.login(here, "wrong")
	var body struct{ Error, Description string }
	expect.OK(t, json.Unmarshal(got.Body.Bytes(), &body))
	if h := got.Header(); got.Code != 429 || body.Error == "" || h.Get("Retry-After") != "10" ||
		h.Get("Content-Length") != fmt.Sprint(got.Body.Len()) || h.Get("Connection") != "close" {
		t.Errorf("one too many is answered %d %v %q", got.Code, h, got.Body)
	}
	expect.Same(t, "while they wait, the right password is answered", 200, w.login(here, "right").Code)
	close(wake)
	waiting.Wait()
	expect.Same(t, "places that stay taken", 0, len(w.places))
	w.now = w.now.Add(maxDelay + burst*every)
	w.Sleep = func(_ context.Context, d time.Duration) { t.Errorf("a minute later a failed login waits %v", d) }
	w.login(here, "wrong")
}

// A client that goes away gives its place free.
func TestWaitsEndWithTheirClients(t *testing.T) {
	w := newWorld()
	ctx, leave := context.WithCancel(t.Context())
	w.Sleep = func(ctx context.Context, _ time.Duration) { leave(); <-ctx.Done() }
	for range burst + 1 {
		r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
		r.SetBasicAuth("u", "wrong")
		w.ServeHTTP(httptest.NewRecorder(), r)
	}
	expect.Same(t, "places that are taken", 0, len(w.places))
	expect.Fails(t, "the client", context.Canceled, ctx.Err())
}

// The memory that an attacker with many addresses takes is bounded, and freed again.
func TestAddressesAreBounded(t *testing.T) {
	w := newWorld()
	for n := range 3 * maxAddresses {
		if n == 2*maxAddresses {
			w.Sleep = func(context.Context, time.Duration) {}
		}
		w.login(fmt.Sprintf("[2001:db8:%x:%x::1]:1", n/65536, n%65536), "wrong")
	}
	expect.Same(t, "addresses that are known", maxAddresses, len(w.addresses))
	if w.slept == 0 {
		t.Error("those that are not known are not slowed down")
	}
	before := w.slept
	if w.login("[2001:db8:ffff::1]:1", "right").Code != 200 || w.slept != before {
		t.Error("a good login from an address that is not known waits")
	}
	w.now = w.now.Add(burst * every)
	w.login(here, "wrong")
	expect.Same(t, "addresses that are known when all have recovered", 1, len(w.addresses))
}

func TestAddresses(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1/32", "[::ffff:192.0.2.1]:80": "192.0.2.1/32",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64",
		"@": "invalid Prefix", "": "invalid Prefix",
	} {
		expect.Same(t, fmt.Sprintf("%q", remote), want, address(remote).String())
	}
}
