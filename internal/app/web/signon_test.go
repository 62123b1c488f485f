package web_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/web"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/testserver"
)

const (
	origin = "https://broker.example.com"
	client = "client-of-the-broker"
)

// An engine has nothing to do.
type engine struct{ workflow.Engine }

func (engine) Inquire(context.Context, workflow.Inquiry) error { return nil }

// A login of OpenID Connect vouches for one person of the group shop, whatever the code.
type login struct {
	*httptest.Server
	key   ed25519.PrivateKey
	nonce string // of the latest sign-on
}

func newLogin(t *testing.T) *login {
	t.Helper()
	l := &login{key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte("k"), ed25519.SeedSize))}
	handler := http.NewServeMux()
	answers := func(at string, answer func() map[string]any) {
		handler.HandleFunc(at, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer())
		})
	}
	answers("GET /.well-known/openid-configuration", func() map[string]any {
		return map[string]any{"issuer": l.URL, "authorization_endpoint": l.URL + "/auth", "token_endpoint": l.URL + "/token",
			"jwks_uri": l.URL + "/keys", "id_token_signing_alg_values_supported": []string{"EdDSA"}}
	})
	answers("GET /keys", func() map[string]any {
		public := base64.RawURLEncoding.EncodeToString(l.key.Public().(ed25519.PublicKey))
		return map[string]any{"keys": []any{map[string]any{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig",
			"kid": "1", "x": public}}}
	})
	answers("POST /token", func() map[string]any {
		return map[string]any{"access_token": "none", "token_type": "Bearer", "id_token": l.token()}
	})
	l.Server = httptest.NewServer(handler)
	t.Cleanup(l.Close)
	return l
}

// token is an id token that is valid for an hour by the world's clock.
func (l *login) token() string {
	part := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	text := part(map[string]any{"alg": "EdDSA", "kid": "1"}) + "." + part(map[string]any{
		"iss": l.URL, "aud": client, "sub": "ada", "nonce": l.nonce, "groups": []string{"shop"},
		"iat": app.Now().Unix(), "exp": app.Now().Add(time.Hour).Unix(),
	})
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(l.key, []byte(text)))
}

// A site is a broker with a login, and a browser.
type site struct {
	*testing.T
	login   *login
	handler http.Handler
	log     testserver.Output
	cookies map[string]*http.Cookie
}

// own is an instance on Kubernetes: in namespace team-a, of an organization that is called org-guid.
var own = lifecycle.Key{Platform: platforms.Default, Instance: "orders"}

// open starts a broker whose login shows the group shop the instances of an organization.
func open(t *testing.T, organization string, now func() time.Time) *site {
	t.Helper()
	s := &site{T: t, login: newLogin(t), cookies: map[string]*http.Cookie{}}
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	registry := func(context.Context) (platforms.Registry, error) {
		return platforms.Registry{
			Platforms: []platforms.Platform{{ID: platforms.Default, Name: platforms.Default,
				Credential: platforms.Credential{Username: "broker", Password: "password-of-broker"}}},
			OIDC: &platforms.OIDC{Issuer: s.login.URL, Client: client, Secret: "secret-of-the-client", Rules: []platforms.Rule{
				{Claim: "groups", Value: "shop", Platform: platforms.Default, Organization: organization}}},
		}, nil
	}
	records := ledger.New(memory.New(), app.NewID)
	local := expect.Get(vault.NewLocal(bytes.Repeat([]byte("k"), vault.KeySize)))(t)
	s.handler = web.New(web.Options{
		Identity: "broker", Origin: origin, Records: records, Catalog: &catalog.Catalog{}, Vault: local, Engine: engine{},
		Platforms: expect.Get(platforms.NewKept(t.Context(), registry, app.Now, log))(t), Registry: registry, Now: now, Log: log,
	})
	names := expect.Get(datakey.New(records, local).Seal(t.Context(), vault.Label{Key: own, Member: vault.Names},
		[]byte(`{"platform":"kubernetes","instance_name":"The orders","namespace":"team-a"}`)))(t)
	expect.OK(t, records.Commit(t.Context(), ledger.Put(lifecycle.Record{Key: own, State: lifecycle.Ready, Incarnation: "first",
		Created: now(), Attributes: lifecycle.Attributes{OrganizationGUID: "org-guid", Names: names}})))
	return s
}

// get asks for a page with the browser's cookies.
func (s *site) get(path string) *httptest.ResponseRecorder {
	s.Helper()
	r := httptest.NewRequestWithContext(s.Context(), http.MethodGet, origin+path, nil)
	for _, c := range s.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		s.cookies[c.Name] = c
	}
	return w
}

// comes opens the page of the instance, signs on, and requires what the browser then sees.
func (s *site) comes(status int, words string) {
	s.Helper()
	w := s.get(pages.InstancePath(own))
	expect.Same(s, "the page without a session is answered", http.StatusSeeOther, w.Code)
	to := expect.Get(url.Parse(w.Header().Get("Location")))(s).Query()
	s.login.nonce = to.Get("nonce")
	w = s.get(pages.PathCallback + "?" + url.Values{"state": {to.Get("state")}, "code": {"code"}}.Encode())
	if w.Code == http.StatusSeeOther {
		w = s.get(pages.InstancePath(own))
	}
	expect.Same(s, "who has signed on is answered", status, w.Code)
	expect.Says(s, "the page", w.Body.String(), words)
	if s.Failed() {
		s.Log(s.log.String())
	}
}

// A platform on Kubernetes sends the namespace of an instance and the GUID of an organization: a rule may name either.
func TestARuleNamesANamespaceOrAGUID(t *testing.T) {
	for organization, sees := range map[string]bool{"team-a": true, "org-guid": true, "": true, "team-b": false} {
		t.Run("Of"+organization, func(t *testing.T) {
			s := open(t, organization, app.Now)
			if sees {
				s.comes(http.StatusOK, "The orders")
				return
			}
			s.comes(http.StatusForbidden, "You may not see this page")
		})
	}
}

// The broker's own clock goes on from a time that was wrong; a login says by the world's until when its answers are valid.
func TestPeopleSignOnWhileTheBrokersClockIsAhead(t *testing.T) {
	open(t, "", func() time.Time { return app.Now().AddDate(1, 0, 0) }).comes(http.StatusOK, "The orders")
}
