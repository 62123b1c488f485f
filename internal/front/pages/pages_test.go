package pages_test

import (
	"bytes"
	"cmp"
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
	store   *memory.Store
	records *ledger.Ledger
	vault   vault.Vault
	data    *datakey.Vault
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
	d := &desk{T: t, now: epoch, store: memory.New(), cookies: map[string]*http.Cookie{}}
	id := func() string { return fmt.Sprintf("%022d", d.ids.Add(1)) }
	d.records = ledger.New(d.store, id)
	d.vault = expect.Get(vault.NewLocal(bytes.Repeat([]byte("k"), 32)))(t)
	d.data = datakey.New(d.records, d.vault)
	d.server = pages.New(pages.Options{
		Records: d.records, Plans: pagestest.Plans{}, Samples: pagestest.Samples, Table: d.data, SignOn: pagestest.LinksAlone,
		Now: func() time.Time { return d.now },
		Inquire: func(_ context.Context, q workflow.Inquiry) error {
			d.asked = append(d.asked, q)
			return nil
		},
		Log: slog.New(slog.NewTextHandler(&d.log, nil)),
		Console: pagestest.Console(d.records, func() time.Time { return d.now }, id,
			func(ref workflow.Ref) { d.started = append(d.started, ref) }),
	})
	return d
}

// stocked is a desk with an instance that can be used, and open has a session for it, too.
func stocked(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.put(d.ready())
	return d
}

func open(t *testing.T) *desk {
	t.Helper()
	d := stocked(t)
	d.signIn(own)
	return d
}

// seal seals a member of a record.
func (d *desk) seal(k lifecycle.Key, member vault.Member, text string) []byte {
	d.Helper()
	return expect.Get(d.data.Seal(d.Context(), vault.Label{Key: k, Member: member}, []byte(text)))(d)
}

// put records an instance or a binding.
func (d *desk) put(r lifecycle.Record) {
	d.Helper()
	expect.OK(d, d.records.Commit(d.Context(), ledger.Put(r)))
}

// ready is an instance that can be used.
func (d *desk) ready() lifecycle.Record {
	d.Helper()
	sealed := d.seal(own, vault.Names,
		`{"platform":"cloudfoundry","instance_name":"orders","organization_name":"shop","space_name":"live"}`)
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

// linkTo seals a link.
func (d *desk) linkTo(of pages.Scope, id string) string {
	d.Helper()
	return expect.Get(pages.Link{Scope: of, ID: id, Until: d.now.Add(pages.LinkTime)}.Seal(d.Context(), d.data))(d)
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
	expect.Says(d, "the page", w.Body.String(), texts...)
}

func (d *desk) lacks(w *httptest.ResponseRecorder, texts ...string) {
	d.Helper()
	expect.Never(d, "the page", w.Body.String(), texts...)
}

// leads requires an answer that leads the browser on.
func (d *desk) leads(w *httptest.ResponseRecorder, to string) {
	d.Helper()
	expect.Same(d, "status", http.StatusSeeOther, w.Code)
	expect.Same(d, "it leads to", to, w.Header().Get("Location"))
}

// stopped has a request end before it is served: what it reads fails.
func stopped(r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	*r = *r.WithContext(ctx)
}

func foreign(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }

// A link opens a session for its instance, once and for a quarter of an hour.
func TestALinkOpensAPageOnce(t *testing.T) {
	d := stocked(t)
	d.sees(d.page(own), http.StatusUnauthorized, "longshore dashboard orders-db")
	link := d.linkTo(pages.ScopeOf(own), "one")
	d.sees(d.ask("GET", pages.EnterPath(link), nil), http.StatusOK, `name="link" value="`+link+`"`)
	d.sees(d.page(own), http.StatusUnauthorized) // looking at the link does not use it
	d.leads(d.exchange(link), pages.InstancePath(own))
	d.sees(d.page(own), http.StatusOK, "<h1>orders</h1>")
	clear(d.cookies)
	d.sees(d.exchange(link), http.StatusForbidden, "cannot be used")
	d.sees(d.page(own), http.StatusUnauthorized)
	late := d.linkTo(pages.ScopeOf(own), "late")
	d.now = d.now.Add(pages.LinkTime)
	d.sees(d.exchange(late), http.StatusForbidden)
	for _, wrong := range []string{"", "x", link[:len(link)-2] + "AA", strings.Repeat("A", 20_000)} {
		if w := d.exchange(wrong); w.Code != http.StatusForbidden && w.Code != http.StatusBadRequest {
			t.Errorf("a link of %d letters is answered %d", len(wrong), w.Code)
		}
	}
}

// Two processes agree on one data key. A lost key of the vault ends sessions, takes names and no more, and makes a new one.
func TestTheDataKeyIsShared(t *testing.T) {
	d := stocked(t)
	link := d.linkTo(pages.ScopeOf(own), "one")
	d.server.Table = datakey.New(d.records, d.vault)
	expect.Same(t, "a link of another process is answered", http.StatusSeeOther, d.exchange(link).Code)
	d.data = datakey.New(d.records, expect.Get(vault.NewLocal(bytes.Repeat([]byte("z"), 32)))(t))
	d.server.Table = d.data
	d.sees(d.page(own), http.StatusUnauthorized)
	d.signIn(own)
	d.sees(d.page(own), http.StatusOK, own.Instance)
	d.lacks(d.page(own), "shop")
}

// A session is for one instance of one platform, ends after a quarter of an hour, and is no link.
func TestASessionIsForOneInstance(t *testing.T) {
	d := open(t)
	var mine string
	for name, c := range d.cookies {
		mine = c.Value
		if size := len(name) + len(c.Value); size >= 400 {
			t.Errorf("the cookie has %d bytes", size)
		}
		if !strings.HasPrefix(name, "__Host-") || !c.Secure || !c.HttpOnly || c.Path != "/" ||
			c.SameSite != http.SameSiteLaxMode || c.MaxAge != 900 {
			t.Errorf("the cookie is %v", c)
		}
	}
	for _, k := range []lifecycle.Key{ // of another instance, of another platform, and parts that are shifted
		{Platform: "cf", Instance: "other"}, {Platform: "korifi", Instance: own.Instance},
		{Platform: "cfo", Instance: "rders-db"},
	} {
		// A browser sends the cookie under the name of the other session.
		other := newDesk(t)
		other.signIn(k)
		for n := range other.cookies {
			d.cookies[n] = &http.Cookie{Name: n, Value: mine}
		}
		d.sees(d.page(k), http.StatusUnauthorized)
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
	d := stocked(t)
	form := url.Values{"link": {d.linkTo(pages.ScopeOf(own), "one")}}
	d.sees(d.ask("POST", "/dashboard/enter", form, foreign), http.StatusForbidden)
	expect.Same(t, "cookies of a form of another site", 0, len(d.cookies))
	d.signIn(own)
	for _, path := range []string{pages.InstancePath(own), "/dashboard/enter?link=x", "/dashboard/none", "/dashboard/style.css"} {
		h := d.ask("GET", path, nil).Header()
		expect.Says(t, path+": the policy", h.Get("Content-Security-Policy"), "default-src 'none'", "frame-ancestors 'none'",
			"base-uri 'none'", "form-action 'self'", "script-src 'self';")
		if h.Get("Referrer-Policy") != "no-referrer" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
	expect.Same(t, "Cache-Control of a page", "no-store", d.page(own).Header().Get("Cache-Control"))
}

// A form whose browser tells its origin alone is taken where that is the broker's, also behind a proxy that changes the host.
func TestTheOriginOfAForm(t *testing.T) {
	d := newDesk(t)
	o := d.server.Options
	o.SignOn = &pages.SignOn{Callback: func(context.Context) string { return "https://public.example/below/dashboard/callback" }}
	d.server = pages.New(o)
	for origin, want := range map[string]int{
		"https://public.example": http.StatusSeeOther, "https://broker.example": http.StatusSeeOther,
		"https://evil.example": http.StatusForbidden, "http://public.example": http.StatusForbidden,
	} {
		w := d.ask("POST", "/dashboard/enter", url.Values{"link": {d.linkTo(pages.ScopeOf(own), origin)}},
			func(r *http.Request) { r.Header.Set("Origin", origin) })
		expect.Same(t, "a form of "+origin+" is answered", want, w.Code)
	}
}

// A request that has no session, where there is no login, makes the broker read no record.
func TestNoRecordIsReadWithoutALogin(t *testing.T) {
	d := newDesk(t)
	d.server.SignOn = &pages.SignOn{Registry: pagestest.LinksAlone.Registry,
		Callback: func(context.Context) string { return "https://broker.example/dashboard/callback" }}
	for _, path := range []string{pages.InstancePath(own), "/console/overview"} {
		d.sees(d.ask("GET", path, nil, stopped), http.StatusUnauthorized, "Sign in")
	}
}

// A browser that has the very page is told so, without a body.
func TestNotModified(t *testing.T) {
	d := open(t)
	tag := d.page(own).Header().Get("ETag")
	again := func() *httptest.ResponseRecorder {
		return d.ask("GET", pages.InstancePath(own), nil, func(r *http.Request) { r.Header.Set("If-None-Match", tag) })
	}
	w := again()
	d.sees(w, http.StatusNotModified)
	expect.Same(t, "the body of the same page", "", w.Body.String())
	r := d.ready()
	r.Version, r.Unusable = 1, true
	d.put(r)
	d.sees(again(), http.StatusOK, "Unusable")
}

// The page says the state, what is happening, why something failed and what to do.
func TestAPageTellsTheLife(t *testing.T) {
	op := func(k lifecycle.Kind, p lifecycle.Phase, said string) *lifecycle.Operation {
		return &lifecycle.Operation{ID: "op", Kind: k, Phase: p, Description: said, Percent: 40, Attempt: 1,
			Started: epoch.Add(-90 * time.Second), Deadline: epoch.Add(24 * time.Hour), Expected: 5 * time.Minute}
	}
	const ready = lifecycle.Ready
	for name, tc := range map[string]struct {
		state     lifecycle.State
		operation *lifecycle.Operation
		want      []string
		not       string
	}{
		"Ready": {ready, nil, []string{`"state good">Ready`, "postgresql in shop / live", "PostgreSQL 18.",
			"EUR 11.00 or USD 12.50 monthly", "The data, for 7 days", "cf service-key orders my-key", "pgxpool.New",
			"2 days ago", `title="2 March 2031, 07:30:00 UTC"`,
			"No application is bound", "Not known yet", "data-busy"}, "Begun"},
		"Creating": {lifecycle.Creating, op(operation.Provision, lifecycle.InProgress, "Making the database."),
			[]string{"Creating", "Begun", "1 minute ago", "in 3 minutes", `<progress value="40" max="100"`,
				"Making the database.", "data-busy"}, "Connect"},
		"CreateFailed": {lifecycle.CreateFailed, op(operation.Provision, lifecycle.Failed, "No room."),
			[]string{"Failed", "It could not be created", "No room.", "Delete this instance and create it again."}, "Connect"},
		"UpdateFailed": {ready, op(operation.Update, lifecycle.Failed, "Too small."),
			[]string{`"state good">Ready`, "The last update failed", "Too small.", "is unchanged"}, "Begun"},
		"Unusable": {ready, op(operation.Update, lifecycle.Failed, ""),
			[]string{`"state bad">Unusable`, "The provider gave no reason.", "has been unusable since then"}, "is unchanged"},
		"DeletionRefused": {ready, op(operation.Deprovision, lifecycle.Failed, "It is not empty."),
			[]string{`"state good">Ready`, "It could not be deleted", "delete it again, or leave it"}, "Repeat the update"},
		"DeleteFailed": {lifecycle.DeleteFailed, op(operation.Deprovision, lifecycle.Failed, "In use."),
			[]string{"Not deleted", "It could not be deleted", "In use.", "Delete it again."}, "Connect"},
		"Deleted": {lifecycle.Deleted, op(operation.Deprovision, lifecycle.Succeeded, ""),
			[]string{`"state off">Deleted`}, "Bindings"},
		"PlanGone": {ready, nil, []string{"No longer offered"}, "is available"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			r := d.ready()
			switch r.State, r.Operation, r.Unusable = tc.state, tc.operation, name == "Unusable"; name {
			case "Deleted":
				r = lifecycle.Record{Key: own, State: r.State, Attributes: r.Attributes, Operation: r.Operation}
			case "PlanGone":
				r.Attributes.PlanID = "p-old"
			}
			d.put(r)
			d.signIn(own)
			w := d.page(own)
			d.sees(w, http.StatusOK, tc.want...)
			d.lacks(w, tc.not)
		})
	}
	d := newDesk(t)
	d.signIn(own)
	d.sees(d.page(own), http.StatusNotFound, "This instance is gone")
}

// The page lists bindings and the history, and shows no value of a parameter.
func TestAPageTellsWhatHappened(t *testing.T) {
	d := open(t)
	d.put(lifecycle.Record{Key: own.BindingKey("b-1"), State: lifecycle.Ready, Created: epoch.Add(-time.Hour),
		BindingOnly: lifecycle.BindingOnly{AppGUID: "app-7"}})
	for i, e := range []lifecycle.Entry{
		{Kind: operation.Provision, Phase: lifecycle.Succeeded, Started: epoch.Add(-51 * time.Hour),
			Ended: epoch.Add(-50 * time.Hour), PlanID: "p-large", Parameters: []string{"size", "version"}},
		{Kind: operation.Update, Phase: lifecycle.Failed, Ended: epoch.Add(-2 * time.Hour), Description: "Too small."},
		{Key: own.BindingKey("b-1"), Kind: operation.Bind, Phase: lifecycle.Succeeded, Ended: epoch.Add(-time.Hour),
			AppGUID: "app-7"},
		{Kind: operation.Provision, Phase: lifecycle.Failed, Cancelled: true, Ended: epoch.Add(-time.Minute)},
		{Act: "retry", Ended: epoch},
		{Incarnation: "an earlier life", Act: "of another space", Ended: epoch},
	} {
		if e.ID = fmt.Sprint(i); e.Key == (lifecycle.Key{}) {
			e.Key = own
		}
		e.Incarnation = cmp.Or(e.Incarnation, "first")
		expect.OK(t, d.records.Commit(t.Context(), ledger.Put(e)))
	}
	w := d.page(own)
	d.sees(w, http.StatusOK, "app-7", "1 hour ago", "Created",
		"took 1 hour · by your platform · parameters size, version · plan large", "Update failed", "Too small.", "Bound",
		"application app-7", "Cancelled by a deletion", "Operator: retry", "by the broker")
	d.lacks(w, "of another space")
	if body := w.Body.String(); strings.Index(body, "Operator: retry") > strings.Index(body, "Update failed") {
		t.Error("the history does not begin with the latest")
	}
}

// A page shows the last facts with their age. It has newer ones asked for once a minute, however
// many pages there are, also where nobody answers; those of an earlier life are not shown.
func TestAPageTellsFacts(t *testing.T) {
	d := open(t)
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
	d.lacks(w, "<script>", `"'>`)
	if len(d.asked) != 2 || d.asked[1].Version != 3 {
		t.Errorf("eight pages at once had %+v asked, want one more", d.asked[1:])
	}
	d.now = d.now.Add(20 * time.Second) // nobody answers any more
	d.lacks(d.page(own), "data-busy")
	r := d.ready()
	r.Version, r.Incarnation = 1, "second"
	d.put(r)
	d.lacks(d.page(own), "db.example") // which was of an earlier life
	expect.Same(t, "inquiries", 3, len(d.asked))
	r.Version, r.State = 2, lifecycle.Updating
	d.put(r)
	d.now = d.now.Add(time.Hour)
	d.lacks(d.page(own), "Not known yet")
	expect.Same(t, "inquiries while the instance changes", 3, len(d.asked))
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
		many = append(many, ledger.Put(lifecycle.Entry{Key: own, Incarnation: "first", ID: fmt.Sprint(n),
			Kind: operation.Update, Phase: lifecycle.Failed, Description: long, Started: epoch,
			Ended: epoch.Add(time.Duration(n) * time.Second), Parameters: []string{"a-name", "another"}}))
	}
	d.commit(many)
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

// named are names of an instance, its space and its organization that all are so.
func named(name string) string {
	text, _ := json.Marshal(map[string]string{"instance_name": name, "space_name": name, "organization_name": name})
	return string(text)
}

// Markup in any name, text or id is shown as text.
func TestMarkupIsText(t *testing.T) {
	d := newDesk(t)
	k := lifecycle.Key{Platform: "cf", Instance: "i" + markup}
	d.put(lifecycle.Record{Key: k, State: lifecycle.Ready,
		Attributes: lifecycle.Attributes{Names: d.seal(k, vault.Names, named(markup))},
		Operation:  &lifecycle.Operation{ID: "op", Kind: operation.Update, Phase: lifecycle.Failed, Description: markup}})
	d.put(lifecycle.Record{Key: k.BindingKey("b" + markup), State: lifecycle.Ready,
		BindingOnly: lifecycle.BindingOnly{AppGUID: markup}})
	e := lifecycle.Entry{Key: k, ID: "e", Act: markup, Ended: epoch, Description: markup, Parameters: []string{markup},
		AppGUID: markup}
	expect.OK(t, d.records.Commit(t.Context(), ledger.Put(e)))
	before, link := d.page(k), d.ask("GET", pages.EnterPath(markup), nil)
	d.signIn(k)
	w := d.page(k)
	d.sees(w, http.StatusOK, "&lt;script&gt;alert(1)")
	for _, w := range []*httptest.ResponseRecorder{before, link, w} {
		d.lacks(w, "<script>", "<img", `"'>`)
	}
}

// A table that cannot be read gives a clear page, and the cause goes to the log alone. Neither a link nor a cookie is logged.
func TestAFaultIsToldWithoutItsCause(t *testing.T) {
	d := stocked(t)
	link := d.linkTo(pages.ScopeOf(own), "one")
	d.exchange(link)
	w := d.ask("GET", pages.InstancePath(own), nil, stopped)
	d.sees(w, http.StatusServiceUnavailable, "Load the page again in a minute")
	d.lacks(w, "canceled")
	expect.Says(t, "the log", d.log.String(), "canceled")
	expect.Never(t, "the log", d.log.String(), link)
	for _, c := range d.cookies {
		expect.Never(t, "the log", d.log.String(), c.Value)
	}
}

// Requests beside the pages end in a page, never in an answer of the API.
func TestOtherPaths(t *testing.T) {
	d := newDesk(t)
	d.sees(d.ask("GET", "/dashboard/none", nil), http.StatusNotFound, "There is no such page")
	d.sees(d.ask("DELETE", pages.InstancePath(own), nil), http.StatusNotFound)
	d.sees(d.ask("GET", "/dashboard/instance", nil), http.StatusUnauthorized)
}

// A platform says with each request where its API is: that the host is not listed stands in the log once. A host
// that an operator lists only after the platform has sent it is noted at the platform's next request.
func TestAnUnlistedHostIsLoggedOnce(t *testing.T) {
	d := newDesk(t)
	const one, other = "https://api.example/v2/info", "https://other.example/v2/info"
	locate := func(location string, hosts ...string) {
		d.server.Locate(t.Context(), platforms.Identity{ID: "cf", SignOn: &platforms.SignOn{Hosts: hosts}}, location)
	}
	for _, location := range []string{one, one, other} {
		locate(location, "https://api.listed.example")
	}
	expect.Same(t, "lines of the log about two hosts", 2, strings.Count(d.log.String(), "not listed"))
	locate(one, "https://login.example", "https://api.example")
	api := expect.Get(d.records.PlatformAPI(t.Context(), "cf"))(t)
	expect.Same(t, "where the API is", "https://api.example", api.Origin)
}
