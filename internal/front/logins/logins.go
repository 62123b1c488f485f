// Package logins slows down the guessing of passwords, per client address. It wraps a handler that
// answers a failed login with 401, and leaves to that handler who may log in. A login that succeeds
// is never held up, even while others from its address fail: the address may be a proxy's.
package logins

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// burst is the number of failed logins per address that are answered at once: setting up a
	// platform takes some.
	burst = 10
	// every is the interval between the answers to later failed logins.
	every = 5 * time.Second
	// maxDelay is the longest time that an answer is held up: clients wait longer.
	maxDelay = 10 * time.Second
	// maxWaiting is the number of answers that may wait at a time, each with its connection.
	maxWaiting = 256
	// maxAddresses is the number of addresses that are remembered at a time, at some 200 bytes
	// each. All others share one allowance, which does not slow down logins that succeed.
	maxAddresses = 10_000
	// smallBody is the largest body that is still read after a refusal, for at most smallBodyTime,
	// so that the connection ends in good order.
	smallBody, smallBodyTime = 16 << 10, time.Second
)

// Options configure a Guard. All are required.
type Options struct {
	Now func() time.Time
	// Sleep returns when the time is over, or sooner when the context ends.
	Sleep func(ctx context.Context, d time.Duration)
	Log   *slog.Logger
}

// A Guard wraps a handler and delays its answers to failed logins.
type Guard struct {
	Options
	next   http.Handler
	places chan struct{} // a place is taken by each answer that waits

	mu        sync.Mutex
	addresses map[netip.Prefix]*rate.Limiter
	others    *rate.Limiter
	cleaned   time.Time // when addresses were last forgotten
	said      time.Time // when the log was last told
}

// New makes a Guard.
func New(next http.Handler, o Options) *Guard {
	return &Guard{
		Options: o, next: next, places: make(chan struct{}, maxWaiting),
		addresses: map[netip.Prefix]*rate.Limiter{}, others: allowance(),
	}
}

func allowance() *rate.Limiter { return rate.NewLimiter(rate.Every(every), burst) }

// ServeHTTP implements http.Handler.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.next.ServeHTTP(&responseWriter{ResponseWriter: w, guard: g, request: r}, r)
}

// A responseWriter holds up the response to a failed login.
type responseWriter struct {
	http.ResponseWriter
	guard    *Guard
	request  *http.Request
	replaced bool
}

// Unwrap serves http.ResponseController.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader holds up a 401. The rest of the request is not read, and the connection is closed: a
// client that has not logged in keeps no connection.
func (w *responseWriter) WriteHeader(status int) {
	if status != http.StatusUnauthorized {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.stopReading()
	w.Header().Set("Connection", "close")
	// A request without a password guesses nothing.
	if _, guess, _ := w.request.BasicAuth(); guess != "" && !w.guard.delay(w.request) {
		w.refuse()
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *responseWriter) Write(p []byte) (int, error) {
	if w.replaced {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// stopReading keeps net/http from waiting for the body after the answer: net/http would read up to
// 256 KiB.
func (w *responseWriter) stopReading() {
	n, until := w.request.ContentLength, w.guard.Now()
	if n == 0 {
		return
	}
	if n > 0 && n <= smallBody {
		until = until.Add(smallBodyTime)
	}
	_ = http.NewResponseController(w.ResponseWriter).SetReadDeadline(until) // a test's recorder has no deadline
}

// refuse answers 429 in place of the 401: too many failed logins wait, and no place is left.
func (w *responseWriter) refuse() {
	w.replaced = true
	const body = `{"error":"TooManyFailedLogins",` +
		`"description":"Too many logins fail. Wait, and check the user name and the password."}` + "\n"
	h := w.Header()
	h.Del("WWW-Authenticate")
	h.Set("Retry-After", strconv.Itoa(int(maxDelay.Seconds())))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.ResponseWriter.WriteHeader(http.StatusTooManyRequests)
	_, _ = fmt.Fprint(w.ResponseWriter, body) // the client may be gone
}

// delay holds up the answer to a failed login. It reports false, without waiting, if no place is
// left to wait.
func (g *Guard) delay(r *http.Request) bool {
	d := g.charge(address(r.RemoteAddr))
	if d <= 0 {
		return true
	}
	select {
	case g.places <- struct{}{}:
	default:
		return false
	}
	defer func() { <-g.places }()
	g.Sleep(r.Context(), d)
	return true
}

// charge counts a failed login against its address, and returns how long the answer has to wait.
func (g *Guard) charge(from netip.Prefix) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Now()
	taken := g.limiter(from, now).ReserveN(now, 1)
	d := taken.DelayFrom(now)
	if d > maxDelay { // no address may run up a debt that holds it up for hours
		taken.CancelAt(now)
		d = maxDelay
	}
	if d > 0 && !now.Before(g.said.Add(time.Minute)) {
		g.said = now
		g.Log.Warn("failed logins are slowed down", "address", from)
	}
	return d
}

// limiter returns the allowance of an address. Addresses whose allowance is full again are
// forgotten.
func (g *Guard) limiter(from netip.Prefix, now time.Time) *rate.Limiter {
	if l := g.addresses[from]; l != nil {
		return l
	}
	if len(g.addresses) >= maxAddresses && !now.Before(g.cleaned.Add(every)) {
		g.cleaned = now
		for p, l := range g.addresses {
			if l.TokensAt(now) >= burst {
				delete(g.addresses, p)
			}
		}
	}
	if len(g.addresses) >= maxAddresses {
		return g.others
	}
	g.addresses[from] = allowance()
	return g.addresses[from]
}

// address returns the range that belongs to one client: an IPv4 address, or the first 64 bits of an
// IPv6 address, which is the least that a subscriber gets. All texts that are no TCP address share one
// range, the zero one.
func address(remote string) netip.Prefix {
	a, _ := netip.ParseAddrPort(remote)
	ip, bits := a.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits) // fits in each case
	return p
}
