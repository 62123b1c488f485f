package cloudcontroller_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing/iotest"
	"time"

	"github.com/longshore/longshore/internal/front/osb"
)

// A network stands between platform and broker, and is faulty where it is told
// to be. Exchanges are counted from 1; the catalog is not counted.
type network struct {
	broker http.Handler
	faults map[int]fault
	// outage is a time during which nothing gets through, from its first faulty exchange on.
	outage time.Duration

	mu      sync.Mutex
	seen    []parcel
	until   time.Time
	waiting []parcel // that were delayed until something was deleted
	busy    sync.WaitGroup
}

// A parcel is a request on its way.
type parcel struct {
	*http.Request
	body []byte
	sent time.Time // when it came to the edge
}

func (p parcel) is(methods ...string) bool {
	for _, m := range methods {
		if p.Method == m && !p.polls() {
			return true
		}
	}
	return false
}

func (p parcel) polls() bool { return strings.HasSuffix(p.URL.Path, "/last_operation") }

// RoundTrip makes a network an http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	p := parcel{Request: r, sent: now()}
	if r.Body != nil {
		var err error
		if p.body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	f := n.next(p)
	if f.act == nil {
		f.act = (*network).pass
	}
	response, err := f.act(n, p)
	if p.Method == http.MethodDelete {
		n.release()
	}
	return response, err
}

// next is what happens to the next exchange.
func (n *network) next(p parcel) fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.URL.Path == "/v2/catalog" {
		return fault{}
	}
	n.seen = append(n.seen, p)
	if now().Before(n.until) {
		return faults["NotDelivered"]
	}
	f, ok := n.faults[len(n.seen)]
	if !ok || f.only != nil && !f.only(p) {
		return fault{}
	}
	if n.outage > 0 && n.until.IsZero() {
		n.until = now().Add(n.outage)
	}
	return f
}

// serve lets the broker answer. It goes on when nobody waits any more.
func (n *network) serve(ctx context.Context, p parcel) *http.Response {
	r := httptest.NewRequestWithContext(osb.WithReceived(ctx, p.sent), p.Method, p.URL.RequestURI(), bytes.NewReader(p.body))
	r.Header = p.Header.Clone()
	out := httptest.NewRecorder()
	n.broker.ServeHTTP(out, r)
	return out.Result()
}

// alone serves without the platform: the answer comes to nobody else.
func (n *network) alone(ctx context.Context, p parcel) <-chan *http.Response {
	answer := make(chan *http.Response, 1)
	n.busy.Go(func() { answer <- n.serve(ctx, p) })
	return answer
}

// pass is a network without faults: a platform that does not wait any longer is gone for the broker, too.
func (n *network) pass(p parcel) (*http.Response, error) {
	select {
	case response := <-n.alone(p.Context(), p):
		return response, nil
	case <-p.Context().Done():
		return nil, p.Context().Err()
	}
}

// release delivers what was delayed until a deletion was answered.
func (n *network) release() {
	n.mu.Lock()
	waiting := n.waiting
	n.waiting = nil
	n.mu.Unlock()
	for _, p := range waiting {
		n.alone(context.Background(), p)
	}
}

// rest delivers what is still on its way, and waits for it.
func (n *network) rest() {
	n.release()
	n.busy.Wait()
}

// A fault is what becomes of one exchange.
type fault struct {
	reason string
	act    func(n *network, p parcel) (*http.Response, error)
	only   func(p parcel) bool // nil for every exchange
}

// silence is what a platform waits for in vain.
func silence(p parcel) (*http.Response, error) {
	<-p.Context().Done()
	return nil, p.Context().Err()
}

func said(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ProtoMajor: 1,
		ProtoMinor: 1}
}

const gatewayPage = "<html><h1>gateway</h1></html>"

// instead delivers the request and answers otherwise.
func instead(status int, body string) func(*network, parcel) (*http.Response, error) {
	return func(n *network, p parcel) (*http.Response, error) {
		_ = n.serve(context.WithoutCancel(p.Context()), p)
		return said(status, body), nil
	}
}

// unseen answers what the broker never sees.
func unseen(status int, body string) func(*network, parcel) (*http.Response, error) {
	return func(*network, parcel) (*http.Response, error) { return said(status, body), nil }
}

func changes(p parcel) bool { return p.Method != http.MethodGet }

func reads(p parcel) bool { return p.Method == http.MethodGet }

func polls(p parcel) bool { return p.polls() }

func creates(p parcel) bool { return p.is(http.MethodPut) }

// faults by name. Those that answer for the broker say nothing that is wrong
// about what the broker has done: against a lie nobody can help.
var faults = map[string]fault{
	"Refused": {reason: "no connection", act: func(*network, parcel) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}},
	"NotDelivered": {reason: "the request is lost",
		act: func(_ *network, p parcel) (*http.Response, error) { return silence(p) }},
	"AnswerLost": {reason: "the broker has done it, and nobody hears", act: func(n *network, p parcel) (*http.Response, error) {
		n.alone(context.Background(), p)
		return silence(p)
	}},
	"HungUp": {reason: "the connection breaks at once, and the broker notices while it works",
		act: func(n *network, p parcel) (*http.Response, error) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			time.AfterFunc(time.Minute, cancel)
			n.alone(ctx, p)
			return nil, errNetwork
		}},
	"Reset": {reason: "the connection breaks at once, and the broker does not notice",
		act: func(n *network, p parcel) (*http.Response, error) {
			n.alone(context.Background(), p)
			return nil, errNetwork
		}},
	"Late": {reason: "it is held up at the edge until a later deletion is answered", only: changes,
		act: func(n *network, p parcel) (*http.Response, error) {
			n.mu.Lock()
			n.waiting = append(n.waiting, p)
			n.mu.Unlock()
			return silence(p)
		}},
	"HeldUp": {reason: "it is held up at the edge for longer than the platform waits", only: changes,
		act: func(n *network, p parcel) (*http.Response, error) {
			n.busy.Go(func() { // from now on: rest waits for what is held up, too
				time.Sleep(61 * time.Second)
				n.serve(context.Background(), p)
			})
			return silence(p)
		}},
	"Twice": {reason: "a proxy repeats it", act: func(n *network, p parcel) (*http.Response, error) {
		n.alone(context.Background(), p)
		return n.pass(p)
	}},
	"Gateway504": {reason: "the gateway gives up, and the broker goes on",
		act: func(n *network, p parcel) (*http.Response, error) {
			select {
			case response := <-n.alone(context.Background(), p):
				return response, nil
			case <-time.After(5 * time.Second):
				return said(http.StatusGatewayTimeout, gatewayPage), nil
			}
		}},
	"Gateway504Later":  {reason: "the gateway gives up when all is done", act: instead(http.StatusGatewayTimeout, gatewayPage)},
	"Gateway504Unseen": {reason: "the gateway finds no broker", act: unseen(http.StatusGatewayTimeout, gatewayPage)},
	"Gateway502": {reason: "the broker crashes after its work",
		act: instead(http.StatusBadGateway, `{"message": "Internal server error"}`)},
	"Unavailable": {reason: "the gateway is overloaded", act: unseen(http.StatusServiceUnavailable, `{"description":"later"}`)},
	"Throttled":   {reason: "a request too many", act: unseen(http.StatusTooManyRequests, `{"message":"Too Many Requests"}`)},
	"Error500":    {reason: "done, and called a failure", act: instead(http.StatusInternalServerError, `{"description":"oops"}`)},
	"NoContent":   {reason: "done, and called something that the API has no word for", act: instead(http.StatusNoContent, "")},
	"Broken": {reason: "the answer is no JSON", act: func(n *network, p parcel) (*http.Response, error) {
		response := n.serve(context.WithoutCancel(p.Context()), p)
		return said(response.StatusCode, `{"operation": "`), nil
	}},
	"BrokenOff": {reason: "the connection breaks within the answer", act: func(n *network, p parcel) (*http.Response, error) {
		response := n.serve(context.WithoutCancel(p.Context()), p)
		response.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"oper`), iotest.ErrReader(io.ErrUnexpectedEOF)))
		return response, nil
	}},
	"WrongMember":    {reason: "the token is no text", only: creates, act: instead(http.StatusAccepted, `{"operation": 7}`)},
	"Poll410":        {reason: "a poll finds it gone, wrongly", only: polls, act: unseen(http.StatusGone, `{}`)},
	"Poll404":        {reason: "a poll finds nothing", only: polls, act: unseen(http.StatusNotFound, `{}`)},
	"Poll400":        {reason: "a poll is refused", only: polls, act: unseen(http.StatusBadRequest, `{"description":"bad"}`)},
	"Poll401":        {reason: "a password is about to change", only: reads, act: unseen(http.StatusUnauthorized, `{}`)},
	"PollUnderscore": {reason: "the state of old drafts", only: polls, act: unseen(http.StatusOK, `{"state":"in_progress"}`)},
	"PollFailed": {reason: "the operation is said to have failed, and goes on", only: polls,
		act: unseen(http.StatusOK, `{"state":"failed"}`)},
	"Redirected": {reason: "a login page", act: unseen(http.StatusFound, "")},
	"Concurrency": {reason: "the broker is busy", only: changes,
		act: unseen(http.StatusUnprocessableEntity, `{"error":"ConcurrencyError"}`)},
}
