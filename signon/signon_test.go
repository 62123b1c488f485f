// Package signon signs people on to the pages by real logins: dex for OpenID Connect, and UAA with a small Cloud Controller.
package signon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app/web"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/osb"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/front/rates"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/pagestest"
	"github.com/longshore/longshore/internal/test/testserver"
)

// origin is where browsers reach the broker: a name, since cookies know no ports and logins are on 127.0.0.1.
const origin = "https://broker.example.com"

// A desk is a broker with instances on two platforms, and a browser.
type desk struct {
	*testing.T
	records  *ledger.Ledger
	data     *datakey.Vault
	registry platforms.Registry
	known    *platforms.Kept
	server   *httptest.Server
	log      testserver.Output
	clerk    clerk
	jar      http.CookieJar
	browser  *http.Client

	mu   sync.Mutex
	now  time.Time
	seen []string // secrets that have passed, which no log may have
}

func (d *desk) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// change changes the registry, which is read again within a minute.
func (d *desk) change(f func()) {
	d.mu.Lock()
	f()
	d.mu.Unlock()
	d.pass(time.Minute)
}

// pass moves the clock.
func (d *desk) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

func open(t *testing.T, r platforms.Registry) *desk {
	t.Helper()
	d := &desk{T: t, registry: r, now: time.Now().UTC()}
	ids := 0
	d.records = ledger.New(memory.New(), func() string { ids++; return fmt.Sprintf("%022d", ids) })
	d.data = datakey.New(d.records, expect.Get(vault.NewLocal(bytes.Repeat([]byte("k"), 32)))(t))
	log := slog.New(slog.NewTextHandler(&d.log, nil))
	d.known = expect.Get(platforms.NewKept(t.Context(), func(context.Context) (platforms.Registry, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.registry, nil
	}, d.Now, log))(t)
	offerings := func() []catalog.Offering {
		small, _, _ := pagestest.Plans{}.Plan("s-pg", "p-small")
		other, own := small, small
		other.ID, other.Name = "s-other", "other"
		own.ID, own.Name, own.DashboardURL = "s-own", "own", "https://own.example.com"
		return []catalog.Offering{small, other, own}
	}
	d.server = httptest.NewTLSServer(web.With(osb.Options{
		Platforms: d.known, Throttle: rates.New(0, d.Now), Now: d.Now, NewID: func() string { return "id" }, Log: log,
		Offerings: offerings, Broker: &d.clerk,
	}, pages.Options{
		Console: pages.Console{Offerings: offerings,
			Registry: func(context.Context) (platforms.Registry, error) { return d.known.Registry(), nil }},
		Records: d.records, Plans: pagestest.Plans{}, Table: d.data,
		SignOn: web.SignOn(d.known, origin, d.Now), Now: d.Now, Log: log,
		Inquire: func(context.Context, workflow.Inquiry) error { return nil },
	}))
	t.Cleanup(d.server.Close)
	d.put(lifecycle.Key{Platform: "default", Instance: "mine"})
	d.put(lifecycle.Key{Platform: "default", Instance: "theirs"})
	d.put(lifecycle.Key{Platform: "p-1", Instance: "mine"})
	d.another()
	t.Cleanup(d.secretless)
	return d
}

// put records an instance in the organization that is called as the instance.
func (d *desk) put(k lifecycle.Key) {
	d.Helper()
	label := vault.Label{Key: k, Member: vault.Names}
	sealed := expect.Get(d.data.Seal(d.Context(), label, []byte(`{"instance_name":"The orders"}`)))(d)
	expect.OK(d, d.records.Commit(d.Context(), ledger.Put(lifecycle.Record{Key: k, State: lifecycle.Ready, Incarnation: "first",
		Created: d.Now(), Attributes: lifecycle.Attributes{ServiceID: "s-pg", PlanID: "p-small", Names: sealed,
			OrganizationGUID: "org-of-" + k.Instance}})))
}

// another starts another browser. It follows no redirect by itself.
func (d *desk) another() {
	d.jar, _ = cookiejar.New(nil)
	transport := d.server.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.ServerName = "example.com"
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "broker.example.com:") {
			address = d.server.Listener.Addr().String()
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	d.browser = &http.Client{Transport: transport, Jar: d.jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// An answer is a page with its address.
type answer struct {
	*http.Response
	at   *url.URL
	body string
}

// send sends a request.
func (d *desk) send(method, address string, form url.Values, change ...func(*http.Request)) answer {
	d.Helper()
	r := expect.Get(http.NewRequestWithContext(d.Context(), method, address, strings.NewReader(form.Encode())))(d)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, f := range change {
		f(r)
	}
	resp := expect.Get(d.browser.Do(r))(d)
	defer func() { _ = resp.Body.Close() }()
	body := expect.Get(io.ReadAll(resp.Body))(d)
	for _, c := range resp.Cookies() {
		if strings.HasPrefix(c.Name, "__Host-longshore-") && c.MaxAge > 0 {
			d.seen = append(d.seen, c.Value)
		}
	}
	if code := r.URL.Query().Get("code"); code != "" {
		d.seen = append(d.seen, code)
	}
	return answer{resp, r.URL, string(body)}
}

func (d *desk) get(address string, change ...func(*http.Request)) answer {
	d.Helper()
	return d.send("GET", address, nil, change...)
}

func page(platform, instance string) string {
	return origin + pages.InstancePath(lifecycle.Key{Platform: platform, Instance: instance})
}

var (
	inputs = regexp.MustCompile(`<input[^>]*>`)
	member = regexp.MustCompile(`(name|value|type)="([^"]*)"`)
	action = regexp.MustCompile(`<form[^>]*action="([^"]*)"`)
)

// follow goes where a browser would, and fills in the forms of logins, up to an address that begins with until, or a page that
// has no form. It never goes on for more than 20 steps: what leads in circles fails.
func (d *desk) follow(a answer, until string) answer {
	d.Helper()
	for range 20 {
		if until != "" && strings.HasPrefix(a.Header.Get("Location"), until) {
			return a
		}
		if to := a.Header.Get("Location"); to != "" {
			a = d.get(expect.Get(a.at.Parse(to))(d).String())
			continue
		}
		form := action.FindStringSubmatch(a.body)
		if form == nil || strings.HasPrefix(a.at.String(), origin) {
			return a
		}
		values := url.Values{}
		for _, input := range inputs.FindAllString(a.body, -1) {
			is := map[string]string{}
			for _, m := range member.FindAllStringSubmatch(input, -1) {
				is[m[1]] = strings.ReplaceAll(m[2], "&amp;", "&")
			}
			if is["name"] != "" {
				values.Add(is["name"], is["value"])
			}
		}
		for name, of := range map[string]string{"username": "ada", "password": "password-of-ada"} {
			if values.Has(name) {
				values.Set(name, of)
			}
		}
		if strings.Contains(a.body, `name="user_oauth_approval"`) { // a button
			values.Set("user_oauth_approval", "true")
		}
		a = d.send("POST", expect.Get(a.at.Parse(form[1]))(d).String(), values)
	}
	d.Fatalf("the way leads in circles, to %s", a.at)
	return a
}

// comes opens a page, signs on, and requires a status and words of the page.
func (d *desk) comes(to string, status int, words string) answer {
	d.Helper()
	a := d.follow(d.get(to), "")
	d.is(a, status, words)
	return a
}

func (d *desk) is(a answer, status int, words string) {
	d.Helper()
	if a.StatusCode != status || !strings.Contains(a.body, words) {
		d.Errorf("%s is answered %d, want %d with %q:\n%s\n%s", a.at, a.StatusCode, status, words, a.body, d.log.String())
	}
}

// A clerk notes who orders.
type clerk struct {
	osb.Broker
	by []broker.Caller
}

func (c *clerk) Update(_ context.Context, q broker.UpdateRequest) (broker.Result, error) {
	c.by = append(c.by, q.Caller)
	return broker.Result{}, nil
}

// orders requires that the upgrade is ordered in the name of the person whose id at the login has a form.
func (d *desk) orders(person string) {
	d.Helper()
	order := strings.Replace(page("default", "mine"), "/instance?", "/order?", 1) + "&do=upgrade"
	if a := d.send("POST", order, url.Values{}); a.StatusCode != http.StatusSeeOther || len(d.clerk.by) != 1 {
		d.Fatalf("the order is answered %d, and %d have ordered:\n%s", a.StatusCode, len(d.clerk.by), a.body)
	}
	by := d.clerk.by[0]
	if !regexp.MustCompile(`^\{"user_id":"`+person+`"\}$`).Match(by.Identity) || by.Platform != "default" {
		d.Errorf("it is ordered by %q of %q, want %s", by.Identity, by.Platform, person)
	}
}

// offers requires that a page offers the upgrade, or that it does not, and that the broker asks about it as it offers it.
func (d *desk) offers(a answer, want bool) {
	d.Helper()
	status := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[want]
	order := strings.Replace(page("default", "mine"), "/instance?", "/order?", 1) + "&do=upgrade"
	if got := strings.Contains(a.body, "do=upgrade"); got != want {
		d.Errorf("the upgrade is offered: %v, want %v:\n%s", got, want, a.body)
	}
	d.is(d.get(order), status, "")
}

// code signs on up to the address that the login sends the browser back to, and gives that.
func (d *desk) code(to string) *url.URL {
	d.Helper()
	d.send("POST", strings.Replace(to, "/instance?", "/leave?", 1), url.Values{})
	a := d.follow(d.get(to), origin+pages.PathCallback)
	back, err := url.Parse(a.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		d.Fatalf("the login ends at %q (%d):\n%s", back, a.StatusCode, a.body)
	}
	return back
}

// kept are the cookies of the broker.
func (d *desk) kept() []*http.Cookie {
	at, _ := url.Parse(origin)
	return d.jar.Cookies(at)
}

// secretless requires a log without cookies, codes, tokens and secrets.
func (d *desk) secretless() {
	if d.registry.OIDC != nil {
		d.seen = append(d.seen, d.registry.OIDC.Secret)
	}
	for _, p := range d.registry.Platforms {
		d.seen = append(d.seen, p.Password)
		if p.SignOn != nil {
			_, derived := p.SignOn.ClientOf("s-pg")
			d.seen = append(d.seen, p.SignOn.Secret, derived)
		}
	}
	log := d.log.String()
	for _, secret := range d.seen {
		if secret != "" && strings.Contains(log, secret) {
			d.Errorf("the log has %q:\n%s", secret, log)
		}
	}
	if strings.Contains(log, "eyJ") {
		d.Errorf("the log has a token:\n%s", log)
	}
}

// attacks are the same whichever login it is.
func (d *desk) attacks() {
	d.Helper()
	d.another()
	back := d.code(page("default", "mine"))
	kept := d.kept()
	// with is where a login sends the browser back to, with other members.
	with := func(back *url.URL, members ...string) string {
		q := back.Query()
		for i := 0; i < len(members); i += 2 {
			if q.Del(members[i]); members[i+1] != "" {
				q.Set(members[i], members[i+1])
			}
		}
		at := *back
		at.RawQuery = q.Encode()
		return at.String()
	}
	refused := func(why, address string) {
		d.Helper()
		a := d.get(address)
		if d.is(a, http.StatusForbidden, "<h1>"); a.Header.Get("Location") != "" || len(a.Cookies()) > 1 {
			d.Errorf("%s: the browser goes on to %q with %v", why, a.Header.Get("Location"), a.Cookies())
		}
	}
	d.another()
	refused("a code in another browser, as in a forged sign-on", back.String())
	at, _ := url.Parse(origin)
	d.jar.SetCookies(at, secure(kept))
	refused("another state", with(back, "state", back.Query().Get("state")[:8]+"AAAAAAAAAAAAAAAAAA"))
	refused("no state", with(back, "state", ""))
	a := d.get(back.String() + "&id_token=x&return_to=https://evil.example.com&platform=p-1")
	if to := a.Header.Get("Location"); a.StatusCode != http.StatusSeeOther || origin+to != page("default", "mine") {
		d.Errorf("the sign-on ends in %d at %q:\n%s\n%s", a.StatusCode, to, a.body, d.log.String())
	}
	d.jar.SetCookies(at, secure(kept))
	// The login would refuse its code, too: here it is not asked.
	d.is(d.get(back.String()), http.StatusForbidden, "This sign-on cannot be used")

	// The state of one attempt with the code of another one.
	one, two := d.code(page("default", "mine")), d.code(page("default", "mine"))
	refused("the code of another attempt", with(one, "code", two.Query().Get("code")))

	// A refusal of the login, and no code at all.
	refused("a refusal", with(d.code(page("default", "mine")), "code", "", "error", "access_denied<script>"))

	// A foreign page cannot post to ours, and what is not on its way to a page is not led to a login.
	d.comes(page("default", "mine"), http.StatusOK, "The orders")
	for _, c := range d.kept() {
		if len(c.Name)+len(c.Value) >= 400 && !strings.HasPrefix(c.Name, "__Host-longshore-at-") {
			d.Errorf("the session has %d bytes", len(c.Name)+len(c.Value))
		}
	}
	leave := origin + "/dashboard/leave?platform=default&id=mine"
	d.is(d.send("POST", leave, url.Values{}, header("Sec-Fetch-Site", "cross-site")), http.StatusForbidden, "")
	d.comes(page("default", "mine"), http.StatusOK, "The orders")
	a = d.send("POST", leave, url.Values{}, header("Sec-Fetch-Site", "same-origin"))
	if d.is(a, http.StatusOK, "signed out"); a.Header.Get("Location") != "" {
		d.Errorf("leaving leads to %q", a.Header.Get("Location"))
	}
	d.is(d.get(page("default", "mine"), header("Sec-Fetch-Mode", "cors")), http.StatusUnauthorized, "Sign in")
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// secure makes the cookies that a browser sends ones that it is given.
func secure(cookies []*http.Cookie) []*http.Cookie {
	for _, c := range cookies {
		c.Secure, c.Path = true, "/"
	}
	return cookies
}

// registry has two platforms.
func registry() platforms.Registry {
	login := func(name string) platforms.Credential {
		return platforms.Credential{Username: name, Password: "password-of-" + name}
	}
	return platforms.Registry{Platforms: []platforms.Platform{
		{ID: platforms.Default, Name: platforms.Default, Credential: login("broker")},
		{ID: "p-1", Name: "korifi", Credential: login("korifi")},
	}}
}

// clients gives the dashboard clients of the catalog as a platform gets it, by the ids of the offerings.
func (d *desk) clients(user, location string) map[string]catalog.DashboardClient {
	d.Helper()
	a := d.get(origin+"/v2/catalog", func(r *http.Request) {
		r.SetBasicAuth(user, "password-of-"+user)
		r.Header.Set("X-Broker-API-Version", "2.17")
		r.Header.Set("X-Api-Info-Location", location)
	})
	var shown struct {
		Services []struct {
			ID     string                   `json:"id"`
			Client *catalog.DashboardClient `json:"dashboard_client"`
		} `json:"services"`
	}
	if err := json.Unmarshal([]byte(a.body), &shown); err != nil || len(shown.Services) != 3 {
		d.Fatalf("the catalog is %d %q", a.StatusCode, a.body)
	}
	found := map[string]catalog.DashboardClient{}
	for _, o := range shown.Services {
		if o.Client != nil {
			found[o.ID] = *o.Client
			d.seen = append(d.seen, o.Client.Secret)
		}
	}
	return found
}
