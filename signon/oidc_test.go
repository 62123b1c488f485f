package signon

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"

	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/test/expect"
)

// dex is a login of OpenID Connect that lets everybody in as kilgore@kilgore.trout of the group authors.
func dex(t *testing.T) (at *httptest.Server, up *atomic.Bool) {
	t.Helper()
	var handler http.Handler
	up = new(atomic.Bool)
	up.Store(true)
	at = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(at.Close)
	log := slog.New(slog.DiscardHandler)
	keeps := memory.New(log)
	expect.OK(t, keeps.CreateConnector(t.Context(), storage.Connector{ID: "mock", Type: "mockCallback", Name: "mock"}))
	expect.OK(t, keeps.CreateClient(t.Context(), storage.Client{ID: "longshore", Secret: "secret-of-the-client",
		RedirectURIs: []string{origin + pages.PathCallback}}))
	handler = expect.Get(server.NewServer(t.Context(), server.Config{Issuer: at.URL, Storage: keeps, SkipApprovalScreen: true,
		Logger: log, SupportedResponseTypes: []string{"code"}}))(t)
	return at, up
}

func TestByALoginOfTheOperators(t *testing.T) {
	login, up := dex(t)
	d := open(t, registry())
	d.is(d.get(page("default", "mine")), http.StatusUnauthorized, "longshore dashboard mine")
	set := func(rules ...platforms.Rule) {
		t.Helper()
		r := expect.Get(d.registry.WithOIDC(&platforms.OIDC{Issuer: login.URL, Client: "longshore",
			Secret: "secret-of-the-client", Scopes: []string{"groups", "email"}, Rules: rules}))(t)
		d.change(func() { d.registry = r })
	}
	remove := func() { d.change(func() { d.registry.OIDC = nil }) }
	mine := platforms.Rule{Claim: "groups", Value: "authors", Platform: platforms.Default, Organization: "org-of-mine"}
	set(mine, platforms.Rule{Claim: "groups", Value: "others", Platform: platforms.Every})
	d.offers(d.comes(page("default", "mine"), http.StatusOK, "The orders"), false)
	d.is(d.get(page("default", "mine")), http.StatusOK, "The orders")
	d.comes(page("default", "theirs"), http.StatusForbidden, "You may not see this page")
	d.comes(page("p-1", "mine"), http.StatusForbidden, "You may not see this page")
	d.comes(page("default", "absent"), http.StatusForbidden, "You may not see this page")
	d.attacks()

	// The session ends with its time, and the login is asked again, by itself. A rule that is gone shows nothing then.
	d.comes(page("default", "mine"), http.StatusOK, "The orders")
	d.pass(pages.SessionTime)
	d.comes(page("default", "mine"), http.StatusOK, "The orders")
	set(platforms.Rule{Claim: "email", Value: "kilgore@kilgore.trout", Platform: "korifi"})
	d.is(d.get(page("default", "mine")), http.StatusOK, "The orders")
	d.pass(pages.SessionTime)
	d.comes(page("default", "mine"), http.StatusForbidden, "You may not see this page")
	d.comes(page("p-1", "mine"), http.StatusOK, "The orders")

	// A rule that acts lets its people order; it has to be about instances.
	mine.Acts = true
	set(mine)
	d.offers(d.comes(page("default", "mine"), http.StatusOK, "The orders"), true)
	d.orders("Cg0wLTM4NS0yODA4OS0wEgRtb2Nr")
	d.pass(pages.SessionTime)
	mine.Acts = false
	set(mine)
	d.offers(d.comes(page("default", "mine"), http.StatusOK, "The orders"), false)
	d.pass(pages.SessionTime)
	set(platforms.Rule{Claim: "email", Value: "kilgore@kilgore.trout", Platform: "korifi"})

	// The console is the operator's: what shows instances does not show it.
	console := origin + "/console/overview"
	d.comes(console, http.StatusForbidden, "You may not see this page")
	set(platforms.Rule{Claim: "groups", Value: "authors", Console: platforms.RoleRead})
	d.comes(console, http.StatusOK, "Reads only")
	d.comes(page("p-1", "theirs"), http.StatusForbidden, "You may not see this page")
	d.send("POST", origin+"/console/leave", url.Values{})
	set(mine, platforms.Rule{Claim: "groups", Value: "authors", Console: platforms.RoleAct})
	d.comes(console, http.StatusOK, "May act")

	// Who comes from a login is judged by the rules that led there, also if the login is removed meanwhile.
	back := d.code(page("default", "mine"))
	answers := login.Config.Handler
	login.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			remove()
		}
		answers.ServeHTTP(w, r)
	})
	d.is(d.get(back.String()), http.StatusSeeOther, "")
	login.Config.Handler = answers

	// A login that was removed before the browser comes back lets nobody in.
	set(mine)
	back = d.code(page("default", "mine"))
	remove()
	d.is(d.get(back.String()), http.StatusForbidden, "Its login was switched off meanwhile.")
	set(mine)

	// A login that does not answer leads nowhere, before the code and after it.
	back = d.code(page("default", "mine"))
	up.Store(false)
	d.is(d.get(back.String()), http.StatusServiceUnavailable, "Nobody can sign on now")
	d.pass(time.Hour)
	a := d.get(page("default", "mine"))
	d.is(a, http.StatusServiceUnavailable, `href="../dashboard/instance?id=mine&amp;platform=default"`)
	if a.Header.Get("Location") != "" {
		t.Errorf("it leads on to %q", a.Header.Get("Location"))
	}
}
