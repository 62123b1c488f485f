// Package osb is the HTTP front: the routes of the Open Service Broker API, its headers and
// versions, JSON bodies, status codes and error bodies, and the status façade under /operations. It
// needs a Broker that decides, and knows neither how records are kept nor who makes things.
package osb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/front/rates"
	"github.com/longshore/longshore/internal/lifecycle"
)

// A Broker decides what the routes answer; package broker documents the methods. An error is a
// *lifecycle.Refusal if the client is to learn the reason; any other is answered as an internal
// error.
type Broker interface {
	Provision(ctx context.Context, q broker.ProvisionRequest) (broker.Result, error)
	Update(ctx context.Context, q broker.UpdateRequest) (broker.Result, error)
	Delete(ctx context.Context, q broker.DeleteRequest) (broker.Result, error)
	Bind(ctx context.Context, q broker.BindRequest) (broker.Result, error)
	View(ctx context.Context, c broker.Caller, instance, binding string) (broker.View, error)
	LastOperation(ctx context.Context, key lifecycle.Key, token string) (broker.Poll, error)
	Operation(ctx context.Context, c broker.Caller, token string) (broker.Poll, error)
	Cancel(ctx context.Context, c broker.Caller, token string) (cancelled broker.Poll, deletion *broker.Poll, err error)
}

// An Authenticator knows the platforms. It compares credentials in constant time.
type Authenticator interface {
	// Authenticate returns the platform with these credentials, and reports whether there is one.
	Authenticate(username, password string) (platforms.Identity, bool)
}

// Options configure a Server.
type Options struct {
	Broker    Broker
	Platforms Authenticator
	Throttle  *rates.Limiter
	// Offerings returns the same offerings each time. It is first called by the first request that
	// shows the catalog.
	Offerings func() []catalog.Offering
	// Callback returns the address to which a platform's sign-on sends people back, and Located is
	// told where the platform's API is. Both are needed only for platforms that have a sign-on.
	Callback func(context.Context) string
	Located  func(ctx context.Context, platform platforms.Identity, location string)
	Now      func() time.Time
	NewID    func() string // names an internal error in the answer and the log
	Log      *slog.Logger
	Metrics  *metrics.Metrics
}

// A Server is the http.Handler of the broker.
type Server struct {
	Options
	parts sync.Map // holds *shown, by the values that distinguish them
}

// A shown is the part of the catalog that a platform may see.
type shown struct {
	view catalog.View
	// answers are made once: for clients that know binding_rotatable, and for others.
	answers map[bool]func() (response, error)
}

// New makes a server.
func New(o Options) *Server { return &Server{Options: o} }

// shownTo returns the part of the catalog that a platform may see, computed once. If an offering
// named for the platform has left the catalog, that name shows nothing.
func (s *Server) shownTo(ctx context.Context, p platforms.Identity) *shown {
	key := strings.Join(p.Offerings, "\n") // empty for everything
	clients, back := p.SignOn, ""
	if clients != nil && clients.Client == "" {
		back = s.Callback(ctx)
	}
	if back != "" {
		id, _ := clients.ClientOf("")
		key += "\n\n" + id + back
	}
	if found, ok := s.parts.Load(key); ok {
		return found.(*shown)
	}
	var view catalog.View
	if len(p.Offerings) > 0 {
		var err error
		if view, err = catalog.NewView(s.Offerings(), p.Offerings); err != nil {
			s.Log.Warn("the visible offerings of a platform name some that do not exist", "platform", p.ID, "error", err)
		}
	}
	encode := func(rotation bool) func() (response, error) {
		return sync.OnceValues(func() (response, error) {
			body, err := json.Marshal(map[string]any{"services": emitted(view.Of(s.Offerings()), rotation, clients, back)})
			if err != nil {
				return response{}, fmt.Errorf("encoding the catalog: %w", err)
			}
			sum := sha256.Sum256(body)
			// Clients may reuse a stored catalog after they have validated its tag; no-store would make
			// them throw it away (CAT-30).
			return response{status: http.StatusOK, raw: body, header: []header{
				{"ETag", `"` + hex.EncodeToString(sum[:16]) + `"`}, {"Vary", headerVersion}, {"Cache-Control", "no-cache"}}}, nil
		})
	}
	made := &shown{view, map[bool]func() (response, error){false: encode(false), true: encode(true)}}
	found, _ := s.parts.LoadOrStore(key, made)
	return found.(*shown)
}

// emitted returns the catalog as clients get it: only binding_rotatable depends on the version
// (CAT-25, CAT-31). Each plan says whether it is bindable, since some platforms treat a plan that
// does not say so as not bindable (CAT-15). Each offering whose pages are this broker's own gets a
// client at the platform's login, which redirects to the address back; none does if that is empty.
func emitted(offerings []catalog.Offering, rotation bool, clients *platforms.SignOn, back string) []catalog.Offering {
	out := make([]catalog.Offering, len(offerings)) // an empty array, never null (CAT-01)
	for i, o := range offerings {
		plans := make([]catalog.Plan, len(o.Plans))
		for j, p := range o.Plans {
			p.Bindable = new(o.PlanBindable(p))
			if !rotation {
				p.BindingRotatable = nil
			}
			plans[j] = p
		}
		o.Plans = plans
		if back != "" && o.DashboardClient == nil && o.DashboardURL == "" {
			id, password := clients.ClientOf(o.ID)
			o.DashboardClient = &catalog.DashboardClient{ID: id, Secret: password, RedirectURI: back}
		}
		out[i] = o
	}
	return out
}

// An Arrival is what an API gateway knows of a request.
type Arrival struct {
	// Received is when the gateway received the request. If it is zero, the request counts as received when it
	// is served. A PUT that was received before a DELETE of the same id starts nothing after that DELETE (ORB-03).
	Received time.Time
	// Origin is where browsers reach the broker: scheme, host, and the path before the broker's own.
	Origin string
}

type arrivalKey struct{}

// WithArrival adds an arrival to the context of its request.
func WithArrival(ctx context.Context, a Arrival) context.Context {
	return context.WithValue(ctx, arrivalKey{}, a)
}

// ArrivalIn returns the arrival in a request's context; an empty one without a gateway.
func ArrivalIn(ctx context.Context) Arrival {
	a, _ := ctx.Value(arrivalKey{}).(Arrival)
	return a
}

// A response is the answer of a handler. A nil body is sent as {}: every body is a JSON object
// (ERR-01).
type response struct {
	status int
	header []header // besides the headers that every answer has
	body   any
	// raw is sent unchanged, in place of body.
	raw []byte
}

// A header is one header line of an answer.
type header struct{ name, value string }

// A call is one request on its way through the checks.
type call struct {
	*Server
	*http.Request
	broker.Caller
	at      route
	path    []string // the escaped segments of the path, after the platform's prefix
	version version  // the API version that the client speaks
	shown   *shown   // the part of the catalog that the platform may see
	// key and token are what the path names, each part decoded once (INP-11): an instance or a binding of
	// the platform, or an operation.
	key   lifecycle.Key
	token string
	query url.Values
	body  *object  // only for PUT and PATCH
	also  []header // of the answer, if the call is refused
}

type handler func(ctx context.Context, c *call) (response, error)

// ServeHTTP answers one request. Of several refusals, the client gets the first in the order of
// docs/divergences.md. No other function writes an answer, logs a request, or counts it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := s.Now()
	received := ArrivalIn(r.Context()).Received
	if received.IsZero() {
		received = began
	}
	asked := r.Method
	if asked == http.MethodHead { // its answer has the headers of a GET (RFC 9110, section 9.3.2)
		r = r.WithContext(r.Context()) // a copy
		r.Method = http.MethodGet
	}
	prefix, path := segments(r)
	ctx := logs.Begin(r.Context())
	id := RequestIdentity(r.Header)
	logs.AddRequest(ctx, id)
	c := &call{Server: s, Request: r, at: find(path), path: path, Caller: broker.Caller{Received: received}, version: newest}
	resp, err := s.answer(ctx, w, c, prefix)
	if err == nil {
		err = resp.encode()
	}
	if err != nil {
		resp = s.refusal(ctx, err, c)
		_ = resp.encode() // a refusal has only strings and flags, which can always be encoded
	}
	if id != "" {
		w.Header().Set(keptRequestIdentity, id)
	}
	resp.write(w, prefix, asked != http.MethodHead)
	s.Metrics.Count(metrics.Answered, metrics.DimensionClass, classes[resp.status/100])
	s.Log.LogAttrs(ctx, slog.LevelInfo, "request", slog.String("method", asked), slog.String("route", c.at.name),
		slog.Int("status", resp.status), slog.Int64("milliseconds", s.Now().Sub(began).Milliseconds()))
}

// classes of status codes, as metrics call them.
var classes = [...]string{2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}

// Most answers share these header values: no code may change them in place.
var (
	notStored = []string{"no-store"}
	isJSON    = []string{"application/json"}
)

// write sends the answer to a request whose path began with the prefix. The answer to a HEAD has
// the headers of the GET and no body.
func (r *response) write(w http.ResponseWriter, prefix string, body bool) {
	h := w.Header()
	h["Cache-Control"] = notStored
	for _, line := range r.header {
		if line.name == "Location" {
			line.value = prefix + line.value
		}
		h.Set(line.name, line.value)
	}
	if r.status != http.StatusNotModified {
		h["Content-Type"] = isJSON
		if !body { // net/http sets it if there is a body
			h.Set("Content-Length", strconv.Itoa(len(r.raw)))
		}
	}
	w.WriteHeader(r.status)
	if body && len(r.raw) > 0 {
		_, _ = w.Write(r.raw) // the client may be gone
	}
}

// encode makes the text of the body, before any part of the answer is sent.
func (r *response) encode() error {
	if r.raw != nil || r.status == http.StatusNotModified {
		return nil
	}
	if r.body == nil {
		r.body = struct{}{}
	}
	raw, err := json.Marshal(r.body)
	if err != nil {
		// The cause may quote a credential.
		return errors.New("encoding an answer: it holds what JSON cannot")
	}
	r.raw = append(raw, '\n')
	return nil
}

func (s *Server) answer(ctx context.Context, w http.ResponseWriter, c *call, prefix string) (resp response, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = logs.Panicked(ctx, s.Log, p, "route", c.at.name)
		}
	}()
	user, password, _ := c.BasicAuth()
	platform, ok := s.Platforms.Authenticate(user, password)
	if !ok {
		c.also = []header{{"WWW-Authenticate", `Basic realm="service broker", charset="UTF-8"`}}
		return response{}, errUnauthorized // the body is not read
	}
	logs.AddSubject(ctx, platform.ID, "", "")
	if wait := s.Throttle.Take(platform.ID); wait > 0 { // the body is not read here, either
		c.also = []header{{"Retry-After", seconds(wait)}}
		return response{}, lifecycle.Refuse(lifecycle.TooManyRequests,
			"This platform sends too many requests. Repeat this one later.")
	}
	if at := c.Header.Get(keptLocation); at != "" && platform.SignOn != nil {
		s.Located(ctx, platform, at)
	}
	if c.ContentLength > limits.Body {
		drain(w, c.Request)
		return response{}, errTooLarge
	}
	c.Platform, c.key.Platform, c.shown = platform.ID, platform.ID, s.shownTo(ctx, platform)
	c.View = c.shown.view
	underV2 := c.path[0] == "v2" // the status façade is not part of the API (FAC-07)
	if underV2 {
		if c.version, err = apiVersion(c.Header); err != nil {
			return response{}, err
		}
	}
	if platform.Path != prefix {
		return response{}, lifecycle.Refuse(lifecycle.NotFound, "This platform's API begins at %s/v2/catalog.", platform.Path)
	}
	handle, err := c.route()
	if err != nil {
		return response{}, err
	}
	if underV2 {
		logs.AddSubject(ctx, "", c.key.Instance, c.key.Binding)
	}
	if err := c.parse(ctx, w); err != nil {
		return response{}, err
	}
	return handle(ctx, c)
}

// resource returns the path of an instance or a binding. A gateway that keeps a part of the path to
// itself, such as its stage, puts that part back into the answer.
func resource(k lifecycle.Key) string {
	path := "/v2/service_instances/" + url.PathEscape(k.Instance)
	if k.IsBinding() {
		path += "/service_bindings/" + url.PathEscape(k.Binding)
	}
	return path
}
