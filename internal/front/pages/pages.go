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

// Plans looks up a plan; it returns false, and an empty plan of an empty offering, for one that has left the catalog.
type Plans interface {
	Plan(serviceID, planID string) (catalog.Offering, catalog.Plan, bool)
}

// Options configure a Server.
type Options struct {
	Records *ledger.Ledger
	Plans   Plans
	// Table seals links and sessions. It decrypts the name that people gave an instance, and who asked
	// for an operation; both are empty once they cannot be read any more.
	Table *datakey.Vault
	Console
	Broker Broker
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
	http.Handler
	located sync.Map // the last API location that each platform sent and the hosts listed then, by its id
}

// New makes a server.
func New(o Options) *Server {
	s := &Server{Options: o}
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*visit){
		"GET " + pathInstance: (*visit).dashboard, "GET " + pathOrder: (*visit).order, "POST " + pathOrder: (*visit).order,
		"GET " + pathEnter: (*visit).enter, "POST " + pathEnter: (*visit).exchange, "GET " + PathCallback: (*visit).callback,
		"POST " + pathLeave:                func(v *visit) { v.leave(ScopeOf(v.key())) },
		"POST " + PrefixConsole + "/leave": func(v *visit) { v.leave(Scope{Console: true}) },
		"POST " + PrefixConsole + "/act":   ofConsole("act", (*visit).act),
		"/": func(v *visit) {
			v.show(http.StatusNotFound, message("There is no such page", "Open the dashboard of your service instance from "+
				"your platform, or by the link that `longshore dashboard` prints."))
		},
	} {
		mux.HandleFunc(pattern, s.visited(serve))
	}
	for path, show := range consolePages {
		mux.HandleFunc("GET "+PrefixConsole+"/"+path, s.visited(ofConsole(path, show)))
	}
	mux.Handle("GET "+PrefixConsole, http.RedirectHandler(pathOverview, http.StatusSeeOther))
	for _, prefix := range []string{Prefix, PrefixConsole} { // each page names them relative to itself
		mux.HandleFunc("GET "+prefix+"/style.css", asset("text/css; charset=utf-8", style))
		mux.HandleFunc("GET "+prefix+"/script.js", asset("text/javascript; charset=utf-8", script))
	}
	s.Handler = headers(s.sameOrigin().Handler(mux))
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

// A visit is one request of a browser.
type visit struct {
	*Server
	*http.Request
	w   http.ResponseWriter
	now time.Time

	// The rest is about pages of the console.
	part   string
	status int     // of the answer
	acts   bool    // the session may act
	busy   bool    // the page is about to change
	unread []error // errors of reads that failed; the rest of the page is shown
}

// visited returns a handler whose requests are visits. A panic ends the request, not the process.
func (s *Server) visited(serve func(*visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		v := &visit{Server: s, Request: r, w: w, now: s.Now(), status: http.StatusOK}
		defer func() {
			if p := recover(); p != nil {
				v.fail(logs.Panicked(r.Context(), s.Log, p))
			}
		}()
		serve(v)
	}
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
func (v *visit) show(status int, page g.Node) {
	var b bytes.Buffer
	_ = page.Render(&b) // only a writer makes it fail, and a buffer takes everything
	answer(v.w, v.Request, status, "text/html; charset=utf-8", b.Bytes())
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
func (v *visit) fail(err error) {
	v.Log.ErrorContext(v.Context(), "a page cannot be shown", "error", err)
	v.show(http.StatusServiceUnavailable, message("This page cannot be shown now",
		"The broker cannot read its records. Load the page again in a minute; if this lasts, tell the operator."))
}

// key returns the key of the instance that the request names.
func (v *visit) key() lifecycle.Key {
	q := v.URL.Query()
	return lifecycle.Key{Platform: q.Get("platform"), Instance: q.Get("id")}
}

// InstancePath returns the path of an instance's page, with its query.
func InstancePath(k lifecycle.Key) string { return pathInstance + "?" + query(k) }

// query returns the query of a page about an instance; see visit.key.
func query(k lifecycle.Key) string {
	return url.Values{"platform": {k.Platform}, "id": {k.Instance}}.Encode()
}

// EnterPath returns the path of the page that exchanges a sealed link for a session.
func EnterPath(link string) string { return pathEnter + "?" + url.Values{"link": {link}}.Encode() }

// cookieName returns the name of the cookie of a scope's session: a browser may have several
// sessions.
func cookieName(scope [sha256.Size]byte) string {
	return "__Host-longshore-" + hex.EncodeToString(scope[:6])
}

// sessionFor returns the request's session for the scope; nil if it has none.
func (v *visit) sessionFor(of Scope) (*session, error) {
	scope := of.sum()
	cookie, err := v.Cookie(cookieName(scope))
	if err != nil {
		return nil, nil
	}
	has, err := sessionIn(v.Context(), v.Table, cookie.Value)
	switch {
	case errors.Is(err, errToken):
		return nil, nil
	case err != nil:
		return nil, err
	case has.scope != scope || !v.now.Before(has.until):
		return nil, nil
	}
	return &has, nil
}

// roles reports whether the request's sessions may see a scope, and returns the session that may
// act there; nil if there is none.
func (v *visit) roles(of Scope) (sees bool, acting *session, _ error) {
	of.Acts = false
	reading, unread := v.sessionFor(of)
	of.Acts = true
	acting, err := v.sessionFor(of)
	return reading != nil || acting != nil, acting, errors.Join(unread, err)
}

// open begins a session for a scope, and redirects the browser to the scope's page.
func (v *visit) open(of Scope, person string) {
	scope := of.sum()
	value, err := session{scope, v.Now().Add(SessionTime), person}.seal(v.Context(), v.Table) // a login may have taken a while
	if err != nil {
		v.fail(err)
		return
	}
	v.keep(cookieName(scope), value, int(SessionTime/time.Second))
	v.lead(of.path())
}

// lead sends the browser on to another address.
func (v *visit) lead(to string) { http.Redirect(v.w, v.Request, to, http.StatusSeeOther) }

// enter asks whether to use a link, so that a program that follows links by itself, such as a
// chat's preview, does not use it up.
func (v *visit) enter() {
	v.show(http.StatusOK, message("Open the dashboard", "The link can be used once, within 15 minutes after it was made.",
		posts("enter", "Open", h.Class("primary"), h.Data("enter", ""), hidden("link", v.URL.Query().Get("link")))))
}

// maxForm bounds a form, in bytes.
const maxForm = 16 << 10

// exchange opens a session for a link.
func (v *visit) exchange() {
	link, err := linkIn(v.Context(), v.Table, v.PostFormValue("link"))
	if v.uses(link.ID, link.Until, err, "This link cannot be used", "It was used before, or its 15 minutes are over. "+
		"Ask for another one: `longshore dashboard` prints it, or `longshore console`.") {
		v.open(link.Scope, "")
	}
}

// uses records what can be used once as used, in one conditional write: of two requests with the same
// link, one goes on. Any other is answered, also one whose link could not be opened, as err says.
func (v *visit) uses(id string, until time.Time, err error, title, why string) bool {
	if err == nil && !v.now.Before(until) {
		err = errToken
	}
	if err == nil {
		err = v.Records.Commit(v.Context(), ledger.Put(ledger.UsedLink{ID: id, Expires: until}))
	}
	switch {
	case errors.Is(err, errToken), errors.Is(err, ledger.ErrConflict):
		v.show(http.StatusForbidden, message(title, why))
	case err != nil:
		v.fail(err)
	}
	return err == nil
}

// leave ends the sessions of a scope, including the session that acts.
func (v *visit) leave(of Scope) {
	for _, of.Acts = range []bool{false, true} {
		v.keep(cookieName(of.sum()), "", -1)
	}
	v.show(http.StatusOK, message("You are signed out",
		"Nobody can see these pages from this browser any more, until you open another link."))
}

// keep has the browser keep a cookie for so many seconds; a negative age ends it. The cookie is Lax: a
// Strict one would not be sent when a platform's own page links here.
func (v *visit) keep(name, value string, age int) {
	http.SetCookie(v.w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
}
