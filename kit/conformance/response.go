package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Headers of the API.
const (
	versionHeader  = "X-Broker-API-Version"
	identityHeader = "X-Broker-API-Originating-Identity"
	requestHeader  = "X-Broker-API-Request-Identity"
)

// sentEmpty is the value of a header that is sent without a value.
const sentEmpty = "(empty)"

// A response is the broker's answer to one request.
type response struct {
	method, path string // without the base path
	query        url.Values
	minor        int    // 0 if the version header was not the default one
	identity     string // the request identity, as it was sent
	content      object // the request's body, if it was an object
	request      string // the request, as failures show it
	running      string // the token of the operation that was accepted last before

	fault  string // why there is no answer from the broker
	slow   bool   // it took too long
	status int
	header http.Header
	raw    []byte
	body   object // nil if the body is not a JSON object

	secrets *secrets // the ones that String leaves out
}

// String formats the answer for failures, without credentials. It hides secrets before it clips the text: half a
// secret is secret, too.
func (a response) String() string {
	if a.body == nil {
		return fmt.Sprintf("%d %.200q", a.status, a.secrets.hide(string(a.raw)))
	}
	return fmt.Sprintf("%d %.300s", a.status, encode(a.secrets.redacted(a.body)))
}

func (a response) ofBinding() bool { return strings.Contains(a.path, "/service_bindings/") }

// gone reports whether the broker says that something does not exist. A router in front of the
// broker also answers 404, for everything that it does not reach, but without a JSON object. Since
// version 2.14, a 410 needs no body.
func (a response) gone() bool {
	return a.body != nil && a.status == http.StatusNotFound || a.status == http.StatusGone && (a.body != nil || len(a.raw) == 0)
}

// unserved reports whether an answer means that the broker does not serve the path or the method.
func (a response) unserved() bool {
	return a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotImplemented
}

// unmade reports whether a creation was refused, so that nothing can have been made.
func (a response) unmade() bool { return a.fault == "" && (a.status/100 == 3 || a.status/100 == 4) }

// routerHeader is set by Cloud Foundry's router on its own answers.
const routerHeader = "X-Cf-Routererror"

// ofRouter reports whether an answer comes from a router or a gateway that got no answer from the broker.
func (a response) ofRouter() bool {
	switch a.status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return a.header.Get(routerHeader) != ""
}

// stray reports whether an answer is a 404 page at a path that the broker serves: the broker's own
// answer for an unknown path is not a page.
func (r *runner) stray(a response) bool {
	return r.unpaged.Load() && a.page() && (a.path == catalog || usual.MatchString(a.path))
}

// page reports whether an answer is a 404 in HTML.
func (a response) page() bool {
	return a.status == http.StatusNotFound && a.body == nil && strings.HasPrefix(a.header.Get("Content-Type"), "text/html")
}

func (a response) ofLastOperation() bool { return strings.HasSuffix(a.path, "/last_operation") }

// mayWait reports whether the request permitted a 202.
func (a response) mayWait() bool {
	return a.query.Has("accepts_incomplete") || a.content["accepts_incomplete"] != nil
}

// maxAnswer bounds how much of an answer is read, in bytes.
const maxAnswer = 16 << 20

// exchange sends one request. It returns false if no answer from the broker came, or only a part.
// It does not give up a request in flight when the run is interrupted: what the request makes could
// not be removed with certainty.
func (s *scene) exchange(q request) (response, bool) {
	a := response{method: q.method, secrets: &s.secrets}
	if q.minor == 0 {
		q.minor = s.Minor
	}
	hr, err := s.build(q, &a)
	if err == nil {
		err = s.ctx.Err()
	}
	if err != nil {
		a.fault = err.Error()
		return a, false
	}
	s.register(a)
	a.running, _ = s.known("operation")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), requestLimit)
	defer cancel()
	response, err := s.whenAllowed(hr.WithContext(ctx))
	if err == nil {
		a.status, a.header = response.StatusCode, response.Header
		a.raw, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		_ = response.Body.Close()
	}
	if v, err := decode(a.raw); err == nil {
		a.body, _ = v.(object)
	}
	switch {
	case err != nil:
		a.fault, a.slow = s.secrets.hide(err.Error()), errors.Is(err, context.DeadlineExceeded)
	case a.ofRouter() || s.stray(a):
		a.fault = s.secrets.hide(a.String())
	}
	s.follow(a)
	if a.fault != "" {
		return a, false
	}
	if !q.quiet {
		s.watch.see(s.runner, a)
	}
	s.secrets.learn(a)
	s.note(a)
	return a, true
}

// whenAllowed sends a request, and repeats it while the answer is 429: that comes from something in
// front of the broker, which has not seen the request.
func (s *scene) whenAllowed(hr *http.Request) (*http.Response, error) {
	// A server may close a kept connection just as a request goes out on it, which says nothing
	// about the broker. With this header, the client then sends the request once more on a new
	// connection, as it does each GET. The header has no value, so it is not sent.
	hr.Header["X-Idempotency-Key"] = []string{}
	for try := 0; ; try++ {
		response, err := s.client.Do(hr)
		if err != nil || response.StatusCode != http.StatusTooManyRequests || try == maxRefusals {
			return response, err
		}
		_ = response.Body.Close()
		if !sleep(hr.Context(), firstRefusal<<try) {
			return nil, hr.Context().Err()
		}
		if hr.GetBody != nil {
			if hr.Body, err = hr.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// The number of times that a request is repeated after a 429, and the first pause before that,
// which doubles each time.
const (
	maxRefusals  = 6
	firstRefusal = 200 * time.Millisecond
)

func (s *scene) build(q request, a *response) (*http.Request, error) {
	var content io.Reader
	switch c := q.content.(type) {
	case nil:
	case raw:
		content = strings.NewReader(s.text(string(c)))
	case body:
		a.content = c(s)
	case object:
		a.content = normal(s.fill(c)).(object)
	default:
		return nil, fmt.Errorf("a body of type %T", c)
	}
	if a.content != nil {
		content = strings.NewReader(encode(a.content))
	}
	u, err := s.resolve(s.address(q.path))
	if err != nil {
		return nil, err
	}
	hr, err := http.NewRequest(q.method, s.base.String(), content)
	if err != nil {
		return nil, err
	}
	hr.URL, hr.Host = u, u.Host
	hr.SetBasicAuth(s.target.Username, s.target.Password)
	usual := map[string]string{versionHeader: fmt.Sprintf("2.%d", q.minor), requestHeader: newID(),
		"User-Agent": "longshore-check"}
	if content != nil {
		usual["Content-Type"] = "application/json"
	}
	for name, value := range usual {
		hr.Header[name] = []string{value} // in exactly this spelling
	}
	a.minor = q.minor
	for name, value := range q.header {
		maps.DeleteFunc(hr.Header, func(n string, _ []string) bool { return strings.EqualFold(n, name) })
		if strings.EqualFold(name, versionHeader) {
			a.minor = 0
		}
		switch {
		case value == sentEmpty || name == "User-Agent" && value == "":
			hr.Header[name] = []string{""}
		case value != "":
			hr.Header[name] = []string{s.text(value)}
		}
	}
	a.path = strings.TrimPrefix(u.EscapedPath(), s.base.EscapedPath())
	a.query = u.Query()
	for name, values := range hr.Header {
		if strings.EqualFold(name, requestHeader) {
			a.identity = strings.Join(values, "")
		}
	}
	spoken := fmt.Sprintf(" as 2.%d", q.minor)
	if a.minor == 0 {
		spoken = ""
	}
	shown := a.path
	if u.RawQuery != "" {
		shown += "?" + u.RawQuery
	}
	a.request = fmt.Sprintf("%s %.200s%s", q.method, shown, spoken)
	return hr, nil
}

// resolve makes a URL from a path below the base, or from the value of a Location header. It
// refuses any host but the broker's.
func (s *scene) resolve(path string) (*url.URL, error) {
	if path == "" {
		return nil, errors.New("there is no Location")
	}
	if strings.HasPrefix(path, "/v2") && !strings.HasPrefix(path, s.base.EscapedPath()+"/v2") {
		path = s.base.EscapedPath() + path
	}
	u, err := s.base.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("%q is no URL", path)
	}
	if u.Host != s.base.Host || u.Scheme != s.base.Scheme {
		return nil, fmt.Errorf("%q is on another host than the broker, and is not asked", path)
	}
	return u, nil
}

// note remembers values of an answer for later requests.
func (s *scene) note(a response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.status == http.StatusAccepted && a.method != http.MethodGet {
		delete(s.values, "operation")
		if token, ok := a.body["operation"].(string); ok && token != "" {
			s.values["operation"] = token
		}
		s.values["location"] = a.header.Get("Location")
	}
	if tag := a.header.Get("Etag"); tag != "" {
		s.values["etag"] = tag
	}
	if a.ofBinding() && s.grant == nil && (a.status == http.StatusOK || a.status == http.StatusCreated) {
		for _, member := range grantMembers {
			if a.body[member] != nil {
				s.grant = a.body
			}
		}
	}
}
