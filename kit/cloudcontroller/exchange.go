package cloudcontroller

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxAnswer bounds how much of an answer is read, in bytes.
const maxAnswer = 16 << 20

// An Exchange is a request and its outcome, for a transcript. It contains no credentials and no parameters.
type Exchange struct {
	Began  time.Time
	Took   time.Duration
	Method string
	Path   string // with its query
	Status int    // 0: no answer
	Said   string // the answer, or the reason why there is none
	// Decided is what the platform concludes.
	Decided string
}

// A request is a request to the broker.
type request struct {
	method string
	path   []string // segments
	query  url.Values
	body   map[string]any // nil for none
	user   bool           // it names the user
}

// A response is the broker's answer, or the lack of one.
type response struct {
	status      int
	header      http.Header
	body        map[string]any // nil if it is not a JSON object
	raw         []byte
	fault       string // why there is no answer
	unreachable bool   // there was no connection: the request has reached nobody
	told        Exchange
}

// text returns a member of the body; empty if it is not a string.
func (a response) text(name string) string {
	text, _ := a.body[name].(string)
	return text
}

// send makes one request. It ignores the end of the context and uses a timeout of its own: if the
// answer to a request were not awaited, nobody would know what the request has made.
func (c *Client) send(ctx context.Context, q request) response {
	a := response{told: Exchange{Began: c.Now(), Method: q.method, Path: q.target()}}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(c.Timeout, requestTimeout))
	defer cancel()
	hr, err := c.build(ctx, q)
	if err == nil {
		var response *http.Response
		if response, err = c.HTTP.Do(hr); err == nil {
			a.status, a.header = response.StatusCode, response.Header
			a.raw, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
			_ = response.Body.Close()
		}
	}
	if err != nil { // an answer that breaks off counts as none
		a.status = 0
		a.fault, a.unreachable = c.secrets.hide(cause(err)), unreachable(err)
	} else {
		a.body = object(a.raw)
		c.secrets.learn(a.body)
		for _, shown := range []string{"description", "error"} { // which users see
			if text, ok := a.body[shown].(string); ok {
				a.body[shown] = c.secrets.hide(text)
			}
		}
	}
	a.told.Took, a.told.Status = c.Now().Sub(a.told.Began), a.status
	a.told.Said = fmt.Sprintf("%.*s", maxSaid, c.secrets.hide(a.String())) // hidden first: half a secret is secret, too
	return a
}

// cause returns the error without the request that url.Error adds.
func cause(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err.Error()
}

// unreachable reports whether no connection was made.
func unreachable(err error) bool {
	var op *net.OpError
	var name *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout() || errors.As(err, &name)
}

func (q request) target() string {
	var b strings.Builder
	for _, segment := range q.path {
		b.WriteString("/" + url.PathEscape(segment))
	}
	if len(q.query) > 0 {
		b.WriteString("?" + q.query.Encode())
	}
	return b.String()
}

// build makes the HTTP request, with the headers that a platform sends (SIM-19).
func (c *Client) build(ctx context.Context, q request) (*http.Request, error) {
	var body io.Reader
	if q.body != nil {
		raw, err := json.Marshal(q.body)
		if err != nil {
			return nil, fmt.Errorf("encoding the request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	hr, err := http.NewRequestWithContext(ctx, q.method, strings.TrimSuffix(c.URL, "/")+q.target(), body)
	if err != nil {
		return nil, err
	}
	hr.SetBasicAuth(c.Credential.Username, c.Credential.Password)
	h := hr.Header
	h.Set("X-Broker-API-Version", "2."+strconv.Itoa(c.minor()))
	h.Set("X-Broker-API-Request-Identity", c.NewID())
	h.Set("Accept", "application/json")
	if q.body != nil {
		h.Set("Content-Type", "application/json")
	}
	if q.user && c.UserID != "" {
		user, _ := json.Marshal(map[string]string{"user_id": c.UserID})
		h.Set("X-Broker-API-Originating-Identity", platform+" "+base64.StdEncoding.EncodeToString(user))
	}
	c.secrets.add(c.Credential.Password)
	c.secrets.add(strings.TrimPrefix(h.Get("Authorization"), "Basic ")) // as the broker is told it
	return hr, nil
}

// tell passes an exchange, with the platform's decision, to Observe.
func (c *Client) tell(a response, format string, args ...any) {
	if c.Observe == nil {
		return
	}
	a.told.Decided = c.secrets.hide(fmt.Sprintf(format, args...))
	c.telling.Lock()
	defer c.telling.Unlock()
	c.Observe(a.told)
}

// retryAfter returns the pause that the broker asks for, in whole seconds; anything else counts as absent (POLL-03).
func (a response) retryAfter() time.Duration {
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, int(maxInterval/time.Second))) * time.Second
}

// maxSaid bounds how much of an answer is shown, in bytes.
const maxSaid = 400

// String formats the answer for people, without its secrets.
func (a response) String() string {
	switch {
	case a.fault != "":
		return a.fault
	case a.body == nil:
		return fmt.Sprintf("no JSON object: %q", a.raw)
	}
	return encode(redacted(a.body))
}

// HTTP returns a client that does not follow redirects: a broker's answer is the first one.
func HTTP(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
