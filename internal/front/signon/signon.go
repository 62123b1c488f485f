// Package signon asks a login who a person is and what that person may see: the operator's own
// login by OpenID Connect, or that of a Cloud Foundry. It remembers where logins are, but keeps no
// token. It knows neither browsers nor records.
package signon

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/longshore/longshore/internal/front/platforms"
)

const (
	// askTimeout bounds all requests to a login that one request of a browser causes.
	askTimeout = 10 * time.Second
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 1 << 20
	// keep is how long the location of a login is remembered.
	keep = 10 * time.Minute
)

// Errors that people may be shown. No error contains a token, a code or a secret.
var (
	// ErrDown says that the login, or the platform, does not answer as it should.
	ErrDown = errors.New("the login does not answer as it should")
	// ErrRefused says that the login does not vouch for this person.
	ErrRefused = errors.New("the login refuses")
)

// A Finder finds logins. The zero Finder is ready once it has a clock.
type Finder struct {
	Now func() time.Time

	found sync.Map // holds each place, by its key
}

// A place is the location of a login.
type place struct {
	provider   *oidc.Provider
	http       *http.Client
	controller string // the origin of the Cloud Controller; empty for OIDC
	until      time.Time
}

// A Login is a place where people sign on, with this broker's client there.
type Login struct {
	place
	oauth  oauth2.Config
	verify *oidc.IDTokenVerifier
}

// An Attempt binds the answer of a login to the browser that was sent there. A login may ignore
// PKCE: state and nonce suffice alone.
type Attempt struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
}

// NewAttempt makes an Attempt with random values.
func NewAttempt() Attempt {
	return Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
}

// A Person is somebody who has signed on. The token serves one question and is stored nowhere.
type Person struct {
	ID     string // the login's permanent id of the person
	Claims map[string]any
	token  *oauth2.Token
}

// guarded sends requests only to the listed hosts; to any host if hosts is nil.
type guarded struct{ hosts []string }

func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	origin, err := platforms.Origin(r.URL.Scheme + "://" + r.URL.Host)
	if err != nil || g.hosts != nil && !slices.Contains(g.hosts, origin) {
		return nil, fmt.Errorf("host %q is not one that may be asked", r.URL.Host)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// client returns a client that follows no redirect: none may lead to a place where a listed host
// does not want to be asked.
func client(hosts []string) *http.Client {
	return &http.Client{
		Transport: guarded{hosts}, Timeout: askTimeout / 2,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// OIDC returns the operator's own login, which sends browsers back to the address back.
func (f *Finder) OIDC(ctx context.Context, o *platforms.OIDC, back string) (*Login, error) {
	return f.login(ctx, o.Issuer, func(ctx context.Context) (place, error) {
		h := client(nil) // any host: the issuer's document names them, and the operator trusts it
		provider, err := oidc.NewProvider(oidc.ClientContext(ctx, h), o.Issuer)
		return place{provider: provider, http: h}, err
	}, oauth2.Config{ClientID: o.Client, ClientSecret: o.Secret, RedirectURL: back, Scopes: o.Scopes})
}

// CloudFoundry returns the login of a Cloud Foundry whose API has the origin api, for the instances
// of an offering.
func (f *Finder) CloudFoundry(ctx context.Context, s *platforms.SignOn, api, offering, back string) (*Login, error) {
	id, password := s.ClientOf(offering)
	return f.login(ctx, fmt.Sprint(api, " ", s.Hosts), func(ctx context.Context) (place, error) {
		return uaaOf(ctx, s.Hosts, api)
	}, oauth2.Config{ClientID: id, ClientSecret: password, RedirectURL: back,
		Endpoint: oauth2.Endpoint{AuthStyle: oauth2.AuthStyleInHeader},
		Scopes:   []string{"cloud_controller_service_permissions.read"}})
}

// uaaOf asks an API for its UAA. The UAA's own document would name an issuer that is not its
// address.
func uaaOf(ctx context.Context, hosts []string, api string) (place, error) {
	h := client(hosts)
	var root struct {
		Links struct {
			Login, UAA struct {
				Href string `json:"href"`
			}
		} `json:"links"`
	}
	status, err := get(ctx, h, api+"/", "", &root)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("it answers status %d", status)
	}
	if err != nil {
		return place{}, fmt.Errorf("asking Cloud Controller for its UAA: %w", err)
	}
	uaa := root.Links.UAA.Href
	login := cmp.Or(root.Links.Login.Href, uaa)
	for _, address := range []string{uaa, login} {
		if origin, err := platforms.Origin(address); err != nil || !slices.Contains(hosts, origin) {
			return place{}, fmt.Errorf("the API names %q, which is not listed for this platform", address)
		}
	}
	c := oidc.ProviderConfig{
		IssuerURL: uaa + "/oauth/token", AuthURL: login + "/oauth/authorize", TokenURL: uaa + "/oauth/token",
		JWKSURL: uaa + "/token_keys",
	}
	return place{provider: c.NewProvider(oidc.ClientContext(ctx, h)), http: h, controller: api}, nil
}

// login returns a login at a place that is remembered, or looked for. The place completes what is
// known of this broker's client there.
func (f *Finder) login(
	ctx context.Context, key string, look func(context.Context) (place, error), c oauth2.Config,
) (*Login, error) {
	kept, _ := f.found.Load(key)
	p, known := kept.(place)
	if !known || !f.Now().Before(p.until) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		var err error
		if p, err = look(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDown, err)
		}
		p.until = f.Now().Add(keep)
		f.found.Store(key, p)
	}
	at := p.provider.Endpoint()
	at.AuthStyle = c.Endpoint.AuthStyle
	c.Endpoint, c.Scopes = at, append([]string{oidc.ScopeOpenID}, c.Scopes...)
	return &Login{place: p, oauth: c, verify: p.provider.Verifier(&oidc.Config{ClientID: c.ClientID, Now: f.Now})}, nil
}

// Begin returns the address where a browser goes to sign on.
func (l *Login) Begin(a Attempt) string {
	return l.oauth.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))
}

// Finish exchanges a code for a person. The id token must come from the same answer as the access
// token, and be for this client alone: the verifier would also accept an access token of the UAA,
// which has the nonce, too.
func (l *Login) Finish(ctx context.Context, a Attempt, code string) (Person, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, l.http), askTimeout)
	defer cancel()
	token, err := l.oauth.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if refused := (*oauth2.RetrieveError)(nil); errors.As(err, &refused) { // the text of a RetrieveError has the login's answer
		kind := ErrDown
		if refused.ErrorCode == "invalid_grant" {
			kind = ErrRefused
		}
		return Person{}, fmt.Errorf("%w: it answers a code by status %d, %q", kind, refused.Response.StatusCode,
			refused.ErrorCode)
	}
	if err != nil {
		return Person{}, fmt.Errorf("%w: %w", ErrDown, err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := l.verify.Verify(ctx, raw)
	if err != nil {
		return Person{}, fmt.Errorf("%w: its id token is not valid: %w", ErrRefused, err)
	}
	if len(id.Audience) != 1 {
		return Person{}, fmt.Errorf("%w: its id token is for others, too", ErrRefused)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.Nonce)) != 1 {
		return Person{}, fmt.Errorf("%w: its id token is of another sign-on", ErrRefused)
	}
	p := Person{ID: id.Subject, token: token}
	return p, id.Claims(&p.Claims)
}

// Permissions asks Cloud Controller whether the person may see an instance, and whether that person
// manages it.
func (l *Login) Permissions(ctx context.Context, p Person, instance string) (reads, manages bool, _ error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var may struct{ Read, Manage bool }
	status, err := get(ctx, l.http, l.controller+"/v3/service_instances/"+url.PathEscape(instance)+"/permissions",
		p.token.AccessToken, &may)
	switch {
	case err != nil:
		return false, false, fmt.Errorf("%w: asking Cloud Controller for permissions: %w", ErrDown, err)
	case status == http.StatusOK:
		return may.Read || may.Manage, may.Manage, nil
	case status < http.StatusInternalServerError && status != http.StatusTooManyRequests:
		return false, false, nil
	}
	return false, false, fmt.Errorf("%w: Cloud Controller answers status %d", ErrDown, status)
}

// get reads a JSON object. It decodes the body of a 200 only.
func get(ctx context.Context, h *http.Client, address, token string, into any) (status int, _ error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := h.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, json.NewDecoder(resp.Body).Decode(into)
}
