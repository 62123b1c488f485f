package pages_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/records/vault/datakey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/pagestest"
)

var (
	epoch = time.Date(2031, 3, 4, 9, 30, 0, 0, time.UTC)
	own   = lifecycle.Key{Platform: "cf", Instance: "orders-db"}
)

// A desk is a server over a table, a browser's cookies, and the log.
type desk struct {
	*testing.T
	records *ledger.Ledger
	vault   vault.Vault
	data    *datakey.Vault
	keys    *pages.Keys
	server  *pages.Server
	now     time.Time
	log     bytes.Buffer
	cookies map[string]*http.Cookie
	asked   []workflow.Inquiry // for facts
	ids     atomic.Int64
	started []workflow.Ref
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, now: epoch, cookies: map[string]*http.Cookie{}}
	id := func() string { return fmt.Sprintf("%022d", d.ids.Add(1)) }
	d.records = ledger.New(memory.New(), id)
	var err error
	if d.vault, err = vault.NewLocal(bytes.Repeat([]byte("k"), 32)); err != nil {
		t.Fatal(err)
	}
	d.data = datakey.New(d.records, d.vault)
	d.keys = &pages.Keys{Table: d.data}
	d.server = pages.New(pages.Options{
		Records: d.records, Plans: pagestest.Plans{}, Samples: pagestest.Samples, Names: d.data, Keys: d.keys,
		Now: func() time.Time { return d.now },
		Inquire: func(_ context.Context, q workflow.Inquiry) error {
			d.asked = append(d.asked, q)
			return nil
		},
		Log: slog.New(slog.NewTextHandler(&d.log, nil)),
		Console: pagestest.Console(d.records, func() time.Time { return d.now }, id, func(ref workflow.Ref) {
			d.started = append(d.started, ref)
		}),
	})
	return d
}

// put records an instance or a binding.
func (d *desk) put(r lifecycle.Record) {
	d.Helper()
	expect.OK(d, d.records.Commit(d.Context(), ledger.Put(r)))
}

// ready is an instance that can be used.
func (d *desk) ready() lifecycle.Record {
	d.Helper()
	sealed, err := d.data.Seal(d.Context(), vault.Label{Key: own, Member: vault.Names},
		[]byte(`{"platform":"cloudfoundry","instance_name":"orders","organization_name":"shop","space_name":"live"}`))
	expect.OK(d, err)
	return lifecycle.Record{
		Key: own, State: lifecycle.Ready, Incarnation: "first", Provider: "postgres", Created: epoch.Add(-50 * time.Hour),
		Attributes: lifecycle.Attributes{ServiceID: "s-pg", PlanID: "p-small", MaintenanceVersion: "1.0.0", Names: sealed,
			Snapshot: json.RawMessage(`{"retain_days":7}`)},
	}
}

// ask sends a request with the cookies, and keeps those that come back.
func (d *desk) ask(method, path string, form url.Values, change ...func(*http.Request)) *httptest.ResponseRecorder {
	d.Helper()
	r := httptest.NewRequestWithContext(d.Context(), method, "https://broker.example"+path, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range d.cookies {
		r.AddCookie(c)
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	d.server.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		d.cookies[c.Name] = c
		if c.MaxAge < 0 {
			delete(d.cookies, c.Name)
		}
	}
	return w
}

// link seals a link to an instance.
func (d *desk) link(k lifecycle.Key, id string) string { return d.linkTo(pages.ScopeOf(k), id) }

func (d *desk) linkTo(of pages.Scope, id string) string {
	d.Helper()
	text, err := d.keys.Link(d.Context(), pages.Link{Scope: of, ID: id, Until: d.now.Add(pages.LinkTime)})
	expect.OK(d, err)
	return text
}

func (d *desk) exchange(link string) *httptest.ResponseRecorder {
	d.Helper()
	return d.ask("POST", "/dashboard/enter", url.Values{"link": {link}})
}

// signIn opens a session for an instance.
func (d *desk) signIn(k lifecycle.Key) { d.signInTo(pages.ScopeOf(k)) }

func (d *desk) signInTo(of pages.Scope) {
	d.Helper()
	if w := d.exchange(d.linkTo(of, fmt.Sprint("link-", d.ids.Add(1)))); w.Code != http.StatusSeeOther {
		d.Fatalf("a link is answered %d", w.Code)
	}
}

func (d *desk) page(k lifecycle.Key) *httptest.ResponseRecorder {
	d.Helper()
	return d.ask("GET", pages.InstancePath(k), nil)
}

// sees requires a page that has all of the texts.
func (d *desk) sees(w *httptest.ResponseRecorder, status int, texts ...string) {
	d.Helper()
	expect.Same(d, "status", status, w.Code)
	for _, text := range texts {
		if !strings.Contains(w.Body.String(), text) {
			d.Errorf("the page lacks %q:\n%s", text, w.Body)
		}
	}
}

// A link opens a session for its instance, once and for a quarter of an hour.
func TestALinkOpensAPageOnce(t *testing.T) {
	d := newDesk(t)
	d.put(d.ready())
	d.sees(d.page(own), http.StatusUnauthorized, "longshore dashboard orders-db")
	link := d.link(own, "one")
	d.sees(d.ask("GET", pages.EnterPath(link), nil), http.StatusOK, `name="link" value="`+link+`"`)
	d.sees(d.page(own), http.StatusUnauthorized) // looking at the link does not use it
	w := d.exchange(link)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != pages.InstancePath(own) {
		t.Fatalf("the link is answered %d to %q", w.Code, w.Header().Get("Location"))
	}
	d.sees(d.page(own), http.StatusOK, "<h1>orders</h1>")
	d.cookies = map[string]*http.Cookie{}
	d.sees(d.exchange(link), http.StatusForbidden, "cannot be used")
	d.sees(d.page(own), http.StatusUnauthorized)
	late := d.link(own, "late")
	d.now = d.now.Add(pages.LinkTime)
	d.sees(d.exchange(late), http.StatusForbidden)
	for _, wrong := range []string{"", "x", link[:len(link)-2] + "AA", strings.Repeat("A", 20_000)} {
		if w := d.exchange(wrong); w.Code != http.StatusForbidden && w.Code != http.StatusBadRequest {
			t.Errorf("a link of %d letters is answered %d", len(wrong), w.Code)
		}
	}
}

// Two processes that start at once agree on one data key. A lost key of the vault ends
// sessions, takes names and no more, and makes a new one.
func TestTheDataKeyIsShared(t *testing.T) {
	d := newDesk(t)
	d.put(d.ready())
	link := d.link(own, "one")
	d.keys = &pages.Keys{Table: datakey.New(d.records, d.vault)}
	d.server.Keys = d.keys
	expect.Same(t, "a link of another process is answered", http.StatusSeeOther, d.exchange(link).Code)
	other, err := vault.NewLocal(bytes.Repeat([]byte("z"), 32))
	expect.OK(t, err)
	d.data = datakey.New(d.records, other)
	d.keys = &pages.Keys{Table: d.data}
	d.server.Keys, d.server.Names = d.keys, d.data
	d.sees(d.page(own), http.StatusUnauthorized)
	d.signIn(own)
	if body := d.page(own).Body.String(); !strings.Contains(body, own.Instance) || strings.Contains(body, "shop") {
		t.Errorf("without its names, the page is %s", body)
	}
}

// A session is for one instance of one platform, ends after a quarter of an hour, and is no link.
func TestASessionIsForOneInstance(t *testing.T) {
	d := newDesk(t)
	d.put(d.ready())
	d.signIn(own)
	var mine string
	for name, c := range d.cookies {
		mine = c.Value
		if size := len(name) + len(c.Value); size >= 400 {
			t.Errorf("the cookie has %d bytes", size)
		}
		if !strings.HasPrefix(name, "__Host-") || !c.Secure || !c.HttpOnly || c.Path != "/" ||
			c.SameSite != http.SameSiteLaxMode ||
			c.MaxAge != 900 {
			t.Errorf("the cookie is %v", c)
		}
	}
	for name, k := range map[string]lifecycle.Key{
		"AnotherInstance": {Platform: "cf", Instance: "other"},
		"AnotherPlatform": {Platform: "korifi", Instance: own.Instance},
		"ShiftedParts":    {Platform: "cfo", Instance: "rders-db"},
	} {
		t.Run(name, func(t *testing.T) {
			// A browser sends the cookie under the name of the other session.
			other := newDesk(t)
			other.signIn(k)
			for n := range other.cookies {
				d.cookies[n] = &http.Cookie{Name: n, Value: mine}
			}
			d.sees(d.page(k), http.StatusUnauthorized)
		})
	}
	d.sees(d.exchange(mine), http.StatusForbidden)
	d.now = d.now.Add(pages.SessionTime)
	d.sees(d.page(own), http.StatusUnauthorized)
	d.now = epoch
	d.sees(d.page(own), http.StatusOK)
	d.sees(d.ask("POST", strings.Replace(pages.InstancePath(own), "/instance?", "/leave?", 1), nil), http.StatusOK, "signed out")
	d.sees(d.page(own), http.StatusUnauthorized)
}

// Another site can neither use a form nor frame a page, and nothing is kept by a browser.
func TestAnotherSite(t *testing.T) {
	d := newDesk(t)
	d.put(d.ready())
	cross := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	if w := d.ask("POST", "/dashboard/enter", url.Values{"link": {d.link(own, "one")}}, cross); w.Code != http.StatusForbidden ||
		len(d.cookies) > 0 {
		t.Errorf("a form of another site is answered %d with cookies %v", w.Code, d.cookies)
	}
	d.signIn(own)
	for _, path := range []string{pages.InstancePath(own), "/dashboard/enter?link=x", "/dashboard/none", "/dashboard/style.css"} {
		h := d.ask("GET", path, nil).Header()
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'",
			"script-src 'self';"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: the policy lacks %q: %q", path, part, csp)
			}
		}
		if h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
	expect.Same(t, "Cache-Control of a page", "no-store", d.page(own).Header().Get("Cache-Control"))
}

// A browser that says nothing but the origin of a form has it taken where that is the broker's, also behind a proxy that
// changes the host.
func TestTheOriginOfAForm(t *testing.T) {
	d := newDesk(t)
	o := d.server.Options
	o.SignOn = &pages.SignOn{Callback: func(context.Context) string { return "https://public.example/below/dashboard/callback" }}
	d.server = pages.New(o)
	for origin, want := range map[string]int{
		"https://public.example": http.StatusSeeOther, "https://broker.example": http.StatusSeeOther,
		"https://evil.example": http.StatusForbidden, "http://public.example": http.StatusForbidden,
	} {
		w := d.ask("POST", "/dashboard/enter", url.Values{"link": {d.link(own, origin)}},
			func(r *http.Request) { r.Header.Set("Origin", origin) })
		expect.Same(t, fmt.Sprintf("a form of %s is answered", origin), want, w.Code)
	}
}

// A request that has no session, where there is no login, makes the broker read no record.
func TestNoRecordIsReadWithoutALogin(t *testing.T) {
	d := newDesk(t)
	o := d.server.Options
	o.SignOn = &pages.SignOn{Callback: func(context.Context) string { return "https://broker.example/dashboard/callback" },
		Registry: func() platforms.Registry { return platforms.Registry{} }}
	d.server = pages.New(o)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // reading would fail
	for _, path := range []string{pages.InstancePath(own), "/console/overview"} {
		w := d.ask("GET", path, nil, func(r *http.Request) { *r = *r.WithContext(ctx) })
		d.sees(w, http.StatusUnauthorized, "Sign in")
	}
}

// A browser that has the very page is told so, without a body.
func TestNotModified(t *testing.T) {
	d := newDesk(t)
	d.put(d.ready())
	d.signIn(own)
	tag := d.page(own).Header().Get("ETag")
	again := func() *httptest.ResponseRecorder {
		return d.ask("GET", pages.InstancePath(own), nil, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
	}
	if w := again(); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("the same page is answered %d with %d bytes", w.Code, w.Body.Len())
	}
	r := d.ready()
	r.Version, r.Unusable = 1, true
	d.put(r)
	d.sees(again(), http.StatusOK, "Unusable")
}

// The page says the state, what is happening, why something failed and what to do.
func TestAPageTellsTheLife(t *testing.T) {
	op := func(k lifecycle.Kind, p lifecycle.Phase, said string) *lifecycle.Operation {
		return &lifecycle.Operation{ID: "op", Kind: k, Phase: p, Description: said, Percent: 40,
			Started: epoch.Add(-90 * time.Second), Deadline: epoch.Add(24 * time.Hour), Expected: 5 * time.Minute,
			Attempt: 1}
	}
	for name, tc := range map[string]struct {
		change func(*lifecycle.Record)
		want   []string
		not    string
	}{
		"Ready": {func(*lifecycle.Record) {}, []string{
			`"state good">Ready`, "postgresql in shop / live", "PostgreSQL 18.", "EUR 11.00 or USD 12.50 monthly",
			"kept for 7 days",
			"cf service-key orders my-key", "pgxpool.New", "2 days ago", `title="2 March 2031, 07:30:00 UTC"`,
			"No application is bound", "Not known yet", "data-busy",
		}, "Begun"},
		"Creating": {func(r *lifecycle.Record) {
			r.State, r.Operation = lifecycle.Creating, op(operation.Provision, lifecycle.InProgress, "Making the database.")
		}, []string{"Creating", "Begun", "1 minute ago", "in 3 minutes", `<progress value="40" max="100"`,
			"Making the database.", "data-busy"},
			"Connect"},
		"CreateFailed": {func(r *lifecycle.Record) {
			r.State, r.Operation = lifecycle.CreateFailed, op(operation.Provision, lifecycle.Failed, "No room.")
		}, []string{"Failed", "It could not be created", "No room.", "Delete this instance and create it again."}, "Connect"},
		"UpdateFailed": {func(r *lifecycle.Record) {
			r.Operation = op(operation.Update, lifecycle.Failed, "Too small.")
		}, []string{`"state good">Ready`, "The last update failed", "Too small.", "as it was before"}, "Begun"},
		"Unusable": {func(r *lifecycle.Record) {
			r.Unusable, r.Operation = true, op(operation.Update, lifecycle.Failed, "")
		}, []string{`"state bad">Unusable`, "The provider gave no reason.", "is unusable since then"}, "as it was before"},
		"DeleteFailed": {func(r *lifecycle.Record) {
			r.State, r.Operation = lifecycle.DeleteFailed, op(operation.Deprovision, lifecycle.Failed, "In use.")
		}, []string{"Not deleted", "It could not be deleted", "In use.", "Delete it again."}, "Connect"},
		"Deleted": {func(r *lifecycle.Record) {
			*r = lifecycle.Record{Key: own, State: lifecycle.Deleted, Attributes: r.Attributes,
				Operation: op(operation.Deprovision, lifecycle.Succeeded, "")}
		}, []string{`"state off">Deleted`}, "Bindings"},
		"PlanGone": {func(r *lifecycle.Record) { r.Attributes.PlanID = "p-old" },
			[]string{"No longer offered"}, "is available"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			r := d.ready()
			tc.change(&r)
			d.put(r)
			d.signIn(own)
			w := d.page(own)
			d.T = t
			d.sees(w, http.StatusOK, tc.want...)
			if strings.Contains(w.Body.String(), tc.not) {
				t.Errorf("the page has %q", tc.not)
			}
		})
	}
	d := newDesk(t)
	d.signIn(own)
	d.sees(d.page(own), http.StatusNotFound, "This instance is gone")
}

// The page lists bindings and the history, and shows no value of a parameter.
func TestAPageTellsWhatHappened(t *testing.T) {
	d := newDesk(t)
	d.put(d.ready())
	d.put(lifecycle.Record{Key: own.BindingKey("b-1"), State: lifecycle.Ready, Created: epoch.Add(-time.Hour),
		BindingOnly: lifecycle.BindingOnly{AppGUID: "app-7"}})
	for _, e := range []lifecycle.Entry{
		{Key: own, Incarnation: "first", ID: "1", Kind: operation.Provision, Phase: lifecycle.Succeeded,
			Started: epoch.Add(-51 * time.Hour),
			Ended:   epoch.Add(-50 * time.Hour), PlanID: "p-large", Parameters: []string{"size", "version"}},
		{Key: own, Incarnation: "first", ID: "2", Kind: operation.Update, Phase: lifecycle.Failed,
			Ended:       epoch.Add(-2 * time.Hour),
			Description: "Too small."},
		{Key: own.BindingKey("b-1"), Incarnation: "first", ID: "3", Kind: operation.Bind, Phase: lifecycle.Succeeded,
			Ended:   epoch.Add(-time.Hour),
			AppGUID: "app-7"},
		{Key: own, Incarnation: "first", ID: "4", Kind: operation.Provision, Phase: lifecycle.Failed, Cancelled: true,
			Ended: epoch.Add(-time.Minute)},
		{Key: own, Incarnation: "first", ID: "5", Act: "retry", Ended: epoch},
		{Key: own, Incarnation: "an earlier life", ID: "6", Act: "of another space", Ended: epoch},
	} {
		expect.OK(t, d.records.Commit(t.Context(), ledger.Log(&e)))
	}
	d.signIn(own)
	w := d.page(own)
	d.sees(w, http.StatusOK, "app-7", "1 hour ago", "Created",
		"took 1 hour · by your platform · parameters size, version · plan large",
		"Update failed", "Too small.", "Bound", "application app-7", "Cancelled by a deletion", "Operator: retry",
		"by the broker")
	body := w.Body.String()
	if strings.Contains(body, "of another space") {
		t.Error("the page shows the history of an earlier life of the id")
	}
	if strings.Index(body, "Operator: retry") > strings.Index(body, "Update failed") {
		t.Error("the history does not begin with the latest")
	}
}

// A page shows the last facts with their age. It has newer ones asked for once a minute, however
// many pages there are, also where nobody answers; those of an earlier life are not shown.
func TestAPageTellsFacts(t *testing.T) {
	d := newDesk(t)
	d.put(d.ready())
	d.signIn(own)
	d.sees(d.page(own), http.StatusOK, "Not known yet", "data-busy")
	d.page(own)
	want := workflow.Inquiry{Key: own, Incarnation: "first", Asked: epoch, Version: 1}
	if len(d.asked) != 1 || d.asked[0] != want {
		t.Fatalf("two pages had %+v asked, want once %+v", d.asked, want)
	}
	size, connections := int64(1536<<10), int64(30)
	told := ledger.Facts{Version: 1, Key: own, Incarnation: "first", Asked: epoch, Answered: epoch.Add(2 * time.Second),
		Facts: provider.Facts{Engine: "PostgreSQL 18.1" + markup, Address: "db.example:5432" + markup,
			Region: "eu-west-1" + markup, Size: &size, SizeLimit: 1 << 30, Connections: &connections, ConnectionLimit: 20,
			LastBackup: epoch.Add(-3 * time.Hour), Maintenance: "Sundays" + markup,
			Console: "https://console.example/?a=1" + markup}}
	expect.OK(t, d.records.Commit(t.Context(), ledger.Put(told)))
	d.now = epoch.Add(59 * time.Second)
	d.page(own)
	d.now = epoch.Add(3 * time.Minute)
	var racing sync.WaitGroup
	for range 8 {
		racing.Go(func() {
			v := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), "GET", "https://broker.example"+pages.InstancePath(own), nil)
			for _, c := range d.cookies {
				r.AddCookie(c)
			}
			d.server.ServeHTTP(v, r)
		})
	}
	racing.Wait()
	w := d.page(own)
	d.sees(w, http.StatusOK, "PostgreSQL 18.1", "db.example:5432", "eu-west-1", "1.5 MB of 1 GB",
		`<progress value="1572864" max="1073741824" aria-label="Storage in use"`, "30 of 20", `<progress value="20" max="20"`,
		"3 hours ago", "As of", "2 minutes ago", "Sundays", `href="https://console.example/?a=1`, "data-busy")
	if strings.Contains(w.Body.String(), "<script>") || strings.Contains(w.Body.String(), `"'>`) {
		t.Errorf("markup is in the page:\n%s", w.Body)
	}
	if len(d.asked) != 2 || d.asked[1].Version != 3 {
		t.Errorf("eight pages at once had %+v asked, want one more", d.asked[1:])
	}
	d.now = d.now.Add(20 * time.Second) // nobody answers any more
	if w := d.page(own); strings.Contains(w.Body.String(), "data-busy") {
		t.Error("the page waits for facts that nobody gives")
	}
	r := d.ready()
	r.Version, r.Incarnation = 1, "second"
	d.put(r)
	if w := d.page(own); strings.Contains(w.Body.String(), "db.example") || len(d.asked) != 3 {
		t.Errorf("the facts of an earlier life are shown, or no new ones asked for: %v\n%s", d.asked, w.Body)
	}
	r.Version, r.State = 2, lifecycle.Updating
	d.put(r)
	d.now = d.now.Add(time.Hour)
	if w := d.page(own); strings.Contains(w.Body.String(), "Not known yet") || len(d.asked) != 3 {
		t.Errorf("facts are asked for while the instance changes: %v", d.asked)
	}
}

// However long an instance lives and however much it holds, its page stays small.
func TestAPageStaysSmall(t *testing.T) {
	d := newDesk(t)
	r := d.ready()
	long := strings.Repeat("long word ", 200)
	r.Operation = &lifecycle.Operation{ID: "op", Kind: operation.Update, Phase: lifecycle.Failed, Description: long}
	d.put(r)
	for n := range 40 {
		d.put(lifecycle.Record{Key: own.BindingKey(fmt.Sprintf("%036d", n)), State: lifecycle.Ready, Created: epoch,
			BindingOnly: lifecycle.BindingOnly{AppGUID: fmt.Sprintf("%036d", n)}})
	}
	var many []ledger.Change
	for n := range 10_000 {
		many = append(many, ledger.Log(&lifecycle.Entry{Key: own, Incarnation: "first", ID: fmt.Sprint(n),
			Kind: operation.Update, Phase: lifecycle.Failed, Description: long, Started: epoch,
			Ended: epoch.Add(time.Duration(n) * time.Second), Parameters: []string{"a-name", "another"}}))
	}
	for len(many) > 0 {
		n := min(100, len(many))
		expect.OK(t, d.records.Commit(t.Context(), many[:n]...))
		many = many[n:]
	}
	d.signIn(own)
	w := d.page(own)
	d.sees(w, http.StatusOK, "These are the first 20")
	if w.Body.Len() >= 30<<10 {
		t.Errorf("the page has %d bytes", w.Body.Len())
	}
	for path, most := range map[string]int{"/dashboard/style.css": 8 << 10, "/dashboard/script.js": 2 << 10} {
		if w := d.ask("GET", path, nil); w.Code != http.StatusOK || w.Body.Len() > most || w.Body.Len() == 0 {
			t.Errorf("%s is answered %d with %d bytes, at most %d are allowed", path, w.Code, w.Body.Len(), most)
		}
	}
}

// markup would run if a page took it for more than text.
const markup = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`

// Markup in any name, text or id is shown as text.
func TestMarkupIsText(t *testing.T) {
	d := newDesk(t)
	k := lifecycle.Key{Platform: "cf", Instance: "i" + markup}
	context, err := json.Marshal(map[string]string{"instance_name": markup, "space_name": markup, "organization_name": markup})
	expect.OK(t, err)
	sealed, err := d.data.Seal(t.Context(), vault.Label{Key: k, Member: vault.Names}, context)
	expect.OK(t, err)
	d.put(lifecycle.Record{Key: k, State: lifecycle.Ready, Attributes: lifecycle.Attributes{Names: sealed},
		Operation: &lifecycle.Operation{ID: "op", Kind: operation.Update, Phase: lifecycle.Failed, Description: markup}})
	d.put(lifecycle.Record{Key: k.BindingKey("b" + markup), State: lifecycle.Ready,
		BindingOnly: lifecycle.BindingOnly{AppGUID: markup}})
	e := lifecycle.Entry{Key: k, ID: "e", Act: markup, Ended: epoch, Description: markup, Parameters: []string{markup},
		AppGUID: markup}
	expect.OK(t, d.records.Commit(t.Context(), ledger.Log(&e)))
	check := func(w *httptest.ResponseRecorder) {
		t.Helper()
		body := w.Body.String()
		if strings.Contains(body, "<script>") || strings.Contains(body, "<img") || strings.Contains(body, `"'>`) {
			t.Errorf("markup is in the page:\n%s", body)
		}
	}
	check(d.page(k))
	check(d.ask("GET", pages.EnterPath(markup), nil))
	d.signIn(k)
	w := d.page(k)
	d.sees(w, http.StatusOK, "&lt;script&gt;alert(1)")
	check(w)
}

// A table that cannot be read gives a clear page, and the cause goes to the log alone. Neither a
// link nor a cookie is logged.
func TestAFaultIsToldWithoutItsCause(t *testing.T) {
	d := newDesk(t)
	d.put(d.ready())
	link := d.link(own, "one")
	d.exchange(link)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := d.ask("GET", pages.InstancePath(own), nil, func(r *http.Request) { *r = *r.WithContext(ctx) })
	d.sees(w, http.StatusServiceUnavailable, "Load the page again in a minute")
	if strings.Contains(w.Body.String(), "canceled") || !strings.Contains(d.log.String(), "canceled") {
		t.Errorf("the page says the cause, or the log %q does not", d.log.String())
	}
	for _, c := range d.cookies {
		if strings.Contains(d.log.String(), c.Value) || strings.Contains(d.log.String(), link) {
			t.Errorf("the log holds a secret: %s", d.log.String())
		}
	}
}

// Requests beside the pages end in a page, never in an answer of the API.
func TestOtherPaths(t *testing.T) {
	d := newDesk(t)
	d.sees(d.ask("GET", "/dashboard/none", nil), http.StatusNotFound, "There is no such page")
	d.sees(d.ask("DELETE", pages.InstancePath(own), nil), http.StatusNotFound)
	d.sees(d.ask("GET", "/dashboard/instance", nil), http.StatusUnauthorized)
}

// A platform says with each request where its API is: that the host is not listed stands in the log once.
func TestAnUnlistedHostIsLoggedOnce(t *testing.T) {
	d := newDesk(t)
	is := platforms.Identity{ID: "cf", SignOn: &platforms.SignOn{Hosts: []string{"https://api.listed.example"}}}
	const one, other = "https://api.example/v2/info", "https://other.example/v2/info"
	for _, location := range []string{one, one, other} {
		d.server.Locate(t.Context(), is, location)
	}
	if n := strings.Count(d.log.String(), "not listed"); n != 2 {
		t.Errorf("two hosts are logged %d times:\n%s", n, d.log.String())
	}
}

// A host that an operator lists only after the platform has sent it is noted at the platform's next request.
func TestAHostMayBeListedLater(t *testing.T) {
	d := newDesk(t)
	const location = "https://api.example/v2/info"
	for _, hosts := range [][]string{{"https://login.example"}, {"https://login.example", "https://api.example"}} {
		d.server.Locate(t.Context(), platforms.Identity{ID: "cf", SignOn: &platforms.SignOn{Hosts: hosts}}, location)
	}
	api, err := d.records.PlatformAPI(t.Context(), "cf")
	expect.OK(t, err)
	expect.Same(t, "where the API is", "https://api.example", api.Origin)
}
