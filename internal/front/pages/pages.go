// Package pages shows people their instances in a browser, each on a page behind a session that a
// signed link or a login opens, and shows operators their console. It reads records. It writes only
// which links were used, where the logins of platforms are, and when facts were asked for; for a
// session that acts, the broker or package acts changes the rest. It knows no provider.
package pages

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/front/rates"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault/datakey"
)

// Prefix begins the path of every page.
const Prefix = "/dashboard"

// The paths of the pages. Ids are in the query, where they may contain any character.
const (
	pathInstance = Prefix + "/instance"
	pathOrder    = Prefix + "/order"
	pathEnter    = Prefix + "/enter"
	pathLeave    = Prefix + "/leave"
)

// Plans looks up a plan; it returns false for a plan that has left the catalog.
type Plans interface {
	Plan(serviceID, planID string) (catalog.Offering, catalog.Plan, bool)
}

// Options configure a Server.
type Options struct {
	Records *ledger.Ledger
	Plans   Plans
	// Table seals links and sessions. It decrypts the name that people gave an instance, and who asked
	// for an operation; both are empty once they cannot be read any more.
	Table   *datakey.Vault
	Console Console
	Broker  Broker
	// Throttle counts orders with the requests of the instance's platform.
	Throttle *rates.Limiter
	SignOn   *SignOn
	// Samples show how programs connect, by the name of the provider.
	Samples map[string][]Sample
	// Inquire has a provider asked for facts, and returns without waiting for them.
	Inquire func(ctx context.Context, q workflow.Inquiry) error
	Now     func() time.Time
	Log     *slog.Logger
}

// A Server is the http.Handler of the pages.
type Server struct {
	Options
	handler http.Handler
	located sync.Map // the last API location that each platform sent and the hosts listed then, by its id
}

// New makes a server.
func New(o Options) *Server {
	s := &Server{Options: o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathInstance, s.instance)
	mux.HandleFunc("GET "+pathOrder, s.order)
	mux.HandleFunc("POST "+pathOrder, s.order)
	mux.HandleFunc("GET "+pathEnter, s.enter)
	mux.HandleFunc("POST "+pathEnter, s.exchange)
	mux.HandleFunc("POST "+pathLeave, func(w http.ResponseWriter, r *http.Request) { s.leave(w, r, ScopeOf(keyIn(r))) })
	mux.HandleFunc("GET "+PathCallback, s.callback)
	for _, prefix := range []string{Prefix, PrefixConsole} { // each page names them relative to itself
		mux.HandleFunc("GET "+prefix+"/style.css", asset("text/css; charset=utf-8", style))
		mux.HandleFunc("GET "+prefix+"/script.js", asset("text/javascript; charset=utf-8", script))
	}
	s.routeConsole(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.show(w, r, http.StatusNotFound, message("There is no such page", "Open the dashboard of your service instance from "+
			"your platform, or by the link that `longshore dashboard` prints."))
	})
	s.handler = headers(s.sameOrigin().Handler(mux))
	return s
}

// sameOrigin refuses forms of other sites. The broker's own origin counts as the same, too: a proxy
// may have changed the Host that a browser's Origin is compared with.
func (s *Server) sameOrigin() *http.CrossOriginProtection {
	protection := http.NewCrossOriginProtection()
	if origin, err := platforms.Origin(s.SignOn.Callback(context.Background())); err == nil {
		_ = protection.AddTrustedOrigin(origin) // always a scheme and a host
	}
	return protection
}

// ServeHTTP answers a request for a path below Prefix. A panic ends the request, not the process.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			s.fail(w, r, logs.Panicked(r.Context(), s.Log, p))
		}
	}()
	s.handler.ServeHTTP(w, r)
}

// policy allows only content from this broker, and lets no page frame another.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := w.Header()
		all.Set("Content-Security-Policy", policy)
		all.Set("Cache-Control", "no-store")
		all.Set("Referrer-Policy", "no-referrer")
		all.Set("X-Content-Type-Options", "nosniff")
		all.Set("X-Frame-Options", "DENY")
		next.ServeHTTP(w, r)
	})
}

//go:embed style.css
var style []byte

//go:embed script.js
var script []byte

// asset serves a file that is embedded in the program.
func asset(kind string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		answer(w, r, http.StatusOK, kind, content)
	}
}

// show answers with a page.
func (s *Server) show(w http.ResponseWriter, r *http.Request, status int, page g.Node) {
	var b bytes.Buffer
	_ = page.Render(&b) // only a writer makes it fail, and a buffer takes everything
	answer(w, r, status, "text/html; charset=utf-8", b.Bytes())
}

// answer sends a content, or 304 if the browser has the same one.
func answer(w http.ResponseWriter, r *http.Request, status int, kind string, content []byte) {
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Type", kind)
	if status == http.StatusOK && r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(content)
}

// fail answers a request whose records cannot be read. The cause goes to the log only.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.Log.ErrorContext(r.Context(), "a page cannot be shown", "error", err)
	s.show(w, r, http.StatusServiceUnavailable, message("This page cannot be shown now",
		"The broker cannot read its records. Load the page again in a minute; if this lasts, tell the operator."))
}

// keyIn returns the key of the instance that a request names.
func keyIn(r *http.Request) lifecycle.Key {
	q := r.URL.Query()
	return lifecycle.Key{Platform: q.Get("platform"), Instance: q.Get("id")}
}

// InstancePath returns the path of an instance's page, with its query.
func InstancePath(k lifecycle.Key) string {
	return pathInstance + "?" + url.Values{"platform": {k.Platform}, "id": {k.Instance}}.Encode()
}

// EnterPath returns the path of the page that exchanges a sealed link for a session.
func EnterPath(link string) string { return pathEnter + "?" + url.Values{"link": {link}}.Encode() }

// cookieName returns the name of the cookie of a scope's session: a browser may have several
// sessions.
func cookieName(scope [sha256.Size]byte) string {
	return "__Host-longshore-" + hex.EncodeToString(scope[:6])
}

// sessionFor returns the request's session for the scope; nil if it has none.
func (s *Server) sessionFor(r *http.Request, of Scope) (*session, error) {
	scope := of.sum()
	cookie, err := r.Cookie(cookieName(scope))
	if err != nil {
		return nil, nil
	}
	has, err := sessionIn(r.Context(), s.Table, cookie.Value)
	switch {
	case errors.Is(err, errToken):
		return nil, nil
	case err != nil:
		return nil, err
	case has.scope != scope || !s.Now().Before(has.until):
		return nil, nil
	}
	return &has, nil
}

// roles reports whether the request's sessions may see a scope, and returns the session that may
// act there; nil if there is none.
func (s *Server) roles(r *http.Request, of Scope) (sees bool, acting *session, _ error) {
	of.Acts = false
	reading, unread := s.sessionFor(r, of)
	of.Acts = true
	acting, err := s.sessionFor(r, of)
	return reading != nil || acting != nil, acting, errors.Join(unread, err)
}

// open begins a session for a scope, and redirects the browser to the scope's page.
func (s *Server) open(w http.ResponseWriter, r *http.Request, of Scope, person string) {
	scope := of.sum()
	value, err := session{scope, s.Now().Add(SessionTime), person}.seal(r.Context(), s.Table)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	http.SetCookie(w, cookie(cookieName(scope), value, int(SessionTime/time.Second)))
	http.Redirect(w, r, of.path(), http.StatusSeeOther)
}

// enter asks whether to use a link, so that a program that follows links by itself, such as a
// chat's preview, does not use it up.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusOK, message("Open the dashboard", "The link can be used once, within 15 minutes after it was made.",
		h.Form(h.Method("post"), h.Action("enter"), h.Data("enter", ""),
			h.Input(h.Type("hidden"), h.Name("link"), h.Value(r.URL.Query().Get("link"))),
			h.Button(h.Class("primary"), h.Type("submit"), g.Text("Open")))))
}

// maxForm bounds a form, in bytes.
const maxForm = 16 << 10

// exchange opens a session for a link. It records the link as used in one conditional write: of two
// requests with the same link, one gets a session.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	link, err := linkIn(r.Context(), s.Table, r.PostFormValue("link"))
	if err == nil && !s.Now().Before(link.Until) {
		err = errToken
	}
	if err == nil {
		err = s.Records.Commit(r.Context(), ledger.Put(ledger.UsedLink{ID: link.ID, Expires: link.Until}))
	}
	switch {
	case errors.Is(err, errToken), errors.Is(err, ledger.ErrConflict):
		s.show(w, r, http.StatusForbidden, message("This link cannot be used", "It was used before, or its 15 minutes are over. "+
			"Ask for another one: `longshore dashboard` prints it, or `longshore console`."))
	case err != nil:
		s.fail(w, r, err)
	default:
		s.open(w, r, link.Scope, "")
	}
}

// leave ends the sessions of a scope, including the session that acts.
func (s *Server) leave(w http.ResponseWriter, r *http.Request, of Scope) {
	for _, of.Acts = range []bool{false, true} {
		http.SetCookie(w, cookie(cookieName(of.sum()), "", -1))
	}
	s.show(w, r, http.StatusOK, message("You are signed out",
		"Nobody can see these pages from this browser any more, until you open another link."))
}

// cookie makes a cookie that is Lax: a Strict one would not be sent when a platform's own page
// links here.
func cookie(name, value string, age int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode}
}
