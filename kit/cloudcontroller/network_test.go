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

// A network between platform and broker is faulty where it is told. Exchanges are counted from 1, without the catalog.
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
	r := httptest.NewRequestWithContext(osb.WithArrival(ctx, osb.Arrival{Received: p.sent}), p.Method, p.URL.RequestURI(),
		bytes.NewReader(p.body))
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
	only   func(p parcel) bool // nil for every exchange
	act    act
}

type act = func(n *network, p parcel) (*http.Response, error)

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
func instead(status int, body string) act {
	return func(n *network, p parcel) (*http.Response, error) {
		_ = n.serve(context.WithoutCancel(p.Context()), p)
		return said(status, body), nil
	}
}

// unseen answers what the broker never sees.
func unseen(status int, body string) act {
	return func(*network, parcel) (*http.Response, error) { return said(status, body), nil }
}

func changes(p parcel) bool { return p.Method != http.MethodGet }
func reads(p parcel) bool   { return p.Method == http.MethodGet }
func polls(p parcel) bool   { return p.polls() }
func creates(p parcel) bool { return p.Method == http.MethodPut && !p.polls() }

// faults by name. None says anything wrong about what the broker has done: against a lie nobody can help.
var faults = map[string]fault{
	"Refused": {"no connection", nil, func(*network, parcel) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}},
	"NotDelivered": {"the request is lost", nil, func(_ *network, p parcel) (*http.Response, error) { return silence(p) }},
	"AnswerLost": {"the broker has done it, and nobody hears", nil, func(n *network, p parcel) (*http.Response, error) {
		n.alone(context.Background(), p)
		return silence(p)
	}},
	"HungUp": {"the connection breaks at once, and the broker notices while it works", nil,
		func(n *network, p parcel) (*http.Response, error) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			time.AfterFunc(time.Minute, cancel)
			n.alone(ctx, p)
			return nil, errNetwork
		}},
	"Reset": {"the connection breaks at once, and the broker does not notice", nil,
		func(n *network, p parcel) (*http.Response, error) {
			n.alone(context.Background(), p)
			return nil, errNetwork
		}},
	"Late": {"it is held up at the edge until a later deletion is answered", changes,
		func(n *network, p parcel) (*http.Response, error) {
			n.mu.Lock()
			n.waiting = append(n.waiting, p)
			n.mu.Unlock()
			return silence(p)
		}},
	"HeldUp": {"it is held up at the edge for longer than the platform waits", changes,
		func(n *network, p parcel) (*http.Response, error) {
			n.busy.Go(func() { // from now on: rest waits for what is held up, too
				time.Sleep(61 * time.Second)
				n.serve(context.Background(), p)
			})
			return silence(p)
		}},
	"Twice": {"a proxy repeats it", nil, func(n *network, p parcel) (*http.Response, error) {
		n.alone(context.Background(), p)
		return n.pass(p)
	}},
	"Gateway504": {"the gateway gives up, and the broker goes on", nil, func(n *network, p parcel) (*http.Response, error) {
		select {
		case response := <-n.alone(context.Background(), p):
			return response, nil
		case <-time.After(5 * time.Second):
			return said(http.StatusGatewayTimeout, gatewayPage), nil
		}
	}},
	"Gateway504Later":  {"the gateway gives up when all is done", nil, instead(http.StatusGatewayTimeout, gatewayPage)},
	"Gateway504Unseen": {"the gateway finds no broker", nil, unseen(http.StatusGatewayTimeout, gatewayPage)},
	"Gateway502": {"the broker crashes after its work", nil,
		instead(http.StatusBadGateway, `{"message": "Internal server error"}`)},
	"Unavailable": {"the gateway is overloaded", nil, unseen(http.StatusServiceUnavailable, `{"description":"later"}`)},
	"Throttled":   {"a request too many", nil, unseen(http.StatusTooManyRequests, `{"message":"Too Many Requests"}`)},
	"Error500":    {"done, and called a failure", nil, instead(http.StatusInternalServerError, `{"description":"oops"}`)},
	"NoContent":   {"done, and called something that the API has no word for", nil, instead(http.StatusNoContent, "")},
	"Broken": {"the answer is no JSON", nil, func(n *network, p parcel) (*http.Response, error) {
		response := n.serve(context.WithoutCancel(p.Context()), p)
		return said(response.StatusCode, `{"operation": "`), nil
	}},
	"BrokenOff": {"the connection breaks within the answer", nil, func(n *network, p parcel) (*http.Response, error) {
		response := n.serve(context.WithoutCancel(p.Context()), p)
		response.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"oper`), iotest.ErrReader(io.ErrUnexpectedEOF)))
		return response, nil
	}},
	"WrongMember":    {"the token is no text", creates, instead(http.StatusAccepted, `{"operation": 7}`)},
	"Poll410":        {"a poll finds it gone, wrongly", polls, unseen(http.StatusGone, `{}`)},
	"Poll404":        {"a poll finds nothing", polls, unseen(http.StatusNotFound, `{}`)},
	"Poll400":        {"a poll is refused", polls, unseen(http.StatusBadRequest, `{"description":"bad"}`)},
	"Poll401":        {"a password is about to change", reads, unseen(http.StatusUnauthorized, `{}`)},
	"PollUnderscore": {"the state of old drafts", polls, unseen(http.StatusOK, `{"state":"in_progress"}`)},
	"PollFailed":     {"the operation is said to have failed, and goes on", polls, unseen(http.StatusOK, `{"state":"failed"}`)},
	"Redirected":     {"a login page", nil, unseen(http.StatusFound, "")},
	"Concurrency":    {"the broker is busy", changes, unseen(http.StatusUnprocessableEntity, `{"error":"ConcurrencyError"}`)},
}
