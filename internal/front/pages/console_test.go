package pages_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
)

var (
	reads = pages.Scope{Console: true}
	acts  = pages.Scope{Console: true, Acts: true}
)

// consolePages are the pages that the navigation leads to, and those of one instance and of acts.
var consolePages = []string{"overview", "instances", "instance?platform=cf&id=orders-db", "operations", "operations?show=stuck",
	"operations?show=failed", "upgrades", "quarantine", "retained", "offerings", "platforms", "act?do=retry"}

func (d *desk) console(path string) *httptest.ResponseRecorder {
	d.Helper()
	return d.ask("GET", "/console/"+path, nil)
}

// record reads an instance.
func (d *desk) record(k lifecycle.Key) lifecycle.Record {
	d.Helper()
	return expect.Get(d.records.Record(d.Context(), k, d.now))(d)
}

// commit makes many changes, in commits of 50.
func (d *desk) commit(changes []ledger.Change) {
	d.Helper()
	for part := range slices.Chunk(changes, 50) {
		expect.OK(d, d.records.Commit(d.Context(), part...))
	}
}

// busy is an instance whose update runs.
func (d *desk) busy() lifecycle.Record {
	r := d.ready()
	r.State, r.Due = lifecycle.Updating, epoch.Add(time.Minute)
	r.Operation = &lifecycle.Operation{ID: fmt.Sprintf("%022d", 7), Kind: operation.Update, Phase: lifecycle.InProgress,
		Attempt: 3, Started: epoch.Add(-time.Hour), Deadline: epoch.Add(time.Hour), Trouble: "The disk is full."}
	return r
}

// orphan is a thing in quarantine.
func orphan(name string) lifecycle.Record {
	return lifecycle.Record{Key: lifecycle.Key{Platform: "cf", Instance: "gone", Life: "life"}, State: lifecycle.Quarantined,
		Incarnation: "life", Provider: "postgres", Due: epoch.Add(time.Hour),
		Operation: &lifecycle.Operation{ID: fmt.Sprintf("%022d", 8), Kind: operation.Quarantine, Phase: lifecycle.Succeeded,
			Attempt: 1}, Kept: &lifecycle.Kept{Since: epoch, Until: epoch.Add(14 * 24 * time.Hour), Name: name}}
}

// The console opens to its own sessions alone, and they open no instance's page. A link opens it once, and not after its time.
func TestTheConsoleNeedsItsSession(t *testing.T) {
	d := stocked(t)
	denied := func() {
		t.Helper()
		for _, page := range consolePages {
			d.sees(d.console(page), http.StatusUnauthorized, "longshore console")
		}
		d.sees(d.ask("POST", "/console/act", url.Values{"do": {"retry"}}), http.StatusUnauthorized)
	}
	denied()
	d.signIn(own)
	denied()
	clear(d.cookies)
	link := d.linkTo(reads, "once")
	d.leads(d.exchange(link), "/console/overview")
	d.sees(d.exchange(link), http.StatusForbidden, "This link cannot be used")
	for _, page := range consolePages[:len(consolePages)-1] {
		d.sees(d.console(page), http.StatusOK, "Reads only")
	}
	d.sees(d.page(own), http.StatusUnauthorized)
	expect.Same(t, "the console's own address leads to", "/console/overview",
		d.ask("GET", "/console", nil).Header().Get("Location"))

	late := d.linkTo(acts, "late")
	d.now = d.now.Add(pages.LinkTime)
	d.sees(d.exchange(late), http.StatusForbidden)
	denied()
	d.now = epoch
	d.sees(d.ask("POST", "/console/leave", nil), http.StatusOK, "signed out")
	denied()
}

// A session that only reads is shown commands in place of acts, and cannot act. Another site
// cannot act by the session of one that may, and to look at an act's page does nothing.
func TestOnlyAnActingSessionActs(t *testing.T) {
	d := newDesk(t)
	d.put(d.busy())
	d.put(orphan("thing"))
	token := d.record(own).Token().String()
	form := url.Values{"do": {"settle"}, "token": {token}}
	d.signInTo(reads)
	for _, page := range []string{"operations", "instance?platform=cf&id=orders-db", "quarantine"} {
		d.lacks(d.console(page), "act?")
	}
	d.sees(d.console("instance?platform=cf&id=orders-db"), http.StatusOK, "longshore retry "+token,
		"longshore settle "+token+" --failed MESSAGE --yes")
	d.sees(d.console("act?"+form.Encode()), http.StatusForbidden, "longshore console --act")
	d.sees(d.ask("POST", "/console/act", form), http.StatusForbidden, "longshore console --act")
	d.signInTo(acts)
	d.sees(d.ask("POST", "/console/act", form, foreign), http.StatusForbidden)
	d.sees(d.console("operations"), http.StatusOK, "act?do=retry", "act?do=settle")
	d.sees(d.console("act?"+form.Encode()), http.StatusOK, "End this operation as failed?", "What may go wrong",
		"The disk is full.")
	if r := d.record(own); !r.InProgress() || r.Version != 1 || len(d.started) > 0 {
		t.Errorf("something was done: %+v", r)
	}
}

// Each act does what its page says, once however often its form is sent, and is in the history.
func TestActs(t *testing.T) {
	former := orphan("").Key
	discarded := func(r lifecycle.Record) bool { return r.State == lifecycle.Deleting }
	failed := func(d *desk) lifecycle.Record {
		r := d.busy()
		r.State, r.Operation.Kind, r.Operation.Phase = lifecycle.CreateFailed, operation.Provision, lifecycle.Failed
		return r
	}
	thing := func(*desk) lifecycle.Record { return orphan("thing") }
	for name, tc := range map[string]struct {
		do, history string
		key         lifecycle.Key
		record      func(*desk) lifecycle.Record
		done        func(lifecycle.Record) bool
		starts      int
	}{
		"Retry": {"retry", "retry", own, (*desk).busy,
			func(r lifecycle.Record) bool { return r.InProgress() && r.Operation.Attempt == 4 }, 1},
		"Remove": {"remove", "retry", own, failed, discarded, 1},
		"Settle": {"settle", "settle", own, (*desk).busy, func(r lifecycle.Record) bool {
			return r.Operation.Phase == lifecycle.Failed && r.Operation.Description == "We ended it."
		}, 0},
		"Release": {"release", "release", former, thing,
			func(r lifecycle.Record) bool { return r.State == lifecycle.Releasing }, 1},
		"Discard": {"discard", "delete from quarantine", former, thing, discarded, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.put(tc.record(d))
			d.signInTo(acts)
			before := d.record(tc.key)
			form := url.Values{"do": {tc.do}, "token": {before.Token().String()}, "message": {"We ended it."},
				"attempt": {fmt.Sprint(before.Operation.Attempt)}}
			d.sees(d.console("act?"+form.Encode()), http.StatusOK, "What may go wrong")
			d.sees(d.ask("POST", "/console/act", form), http.StatusOK)
			r := d.record(tc.key)
			if !tc.done(r) || len(d.started) != tc.starts {
				t.Errorf("%d executions, and the record is %+v of %+v", len(d.started), r, r.Operation)
			}
			d.sees(d.ask("POST", "/console/act", form), http.StatusConflict, "othing was done")
			if again := d.record(tc.key); again.Version != r.Version || len(d.started) != tc.starts {
				t.Errorf("the second time, %d executions, and the record is %+v", len(d.started), again)
			}
			entries, _, err := d.records.History(t.Context(), tc.key, "", 10)
			if err != nil || len(entries) == 0 || entries[0].Act != tc.history && entries[len(entries)-1].Act != tc.history {
				t.Errorf("the history has %+v: %v", entries, err)
			}
		})
	}
}

// An overtaken store changes once the page has read it, and before its act reads it.
type overtaken struct {
	store.Store
	change func()
}

func (o overtaken) Get(ctx context.Context, k store.Key) (store.Record, error) {
	o.change()
	return o.Store.Get(ctx, k)
}

// A form that was to start an operation again deletes nothing once that has failed, be it before the form arrives or while it is
// being answered. The command of both acts is the same.
func TestAFormToStartAgainDeletesNothing(t *testing.T) {
	d := newDesk(t)
	r := d.busy()
	r.State, r.Operation.Kind = lifecycle.Creating, operation.Provision
	d.put(r)
	d.signInTo(acts)
	r = d.record(own)
	form := url.Values{"do": {"retry"}, "token": {r.Token().String()}, "attempt": {"3"}}
	d.sees(d.console("act?"+form.Encode()), http.StatusOK, "Start this operation again?")
	failed := expect.Get(r.Fail(epoch, lifecycle.Failure{Message: "No room."}))(t)
	d.server.Acts.Records = ledger.New(overtaken{d.store, sync.OnceFunc(func() { d.put(failed) })}, nil)
	d.sees(d.ask("POST", "/console/act", form), http.StatusConflict, "Nothing was done", "It has failed meanwhile")
	d.server.Acts.Records = d.records
	d.sees(d.ask("POST", "/console/act", form), http.StatusConflict, "Nothing was done")
	if r := d.record(own); r.State != lifecycle.CreateFailed || len(d.started) > 0 {
		t.Errorf("%d executions, and the record is %+v", len(d.started), r)
	}
	clear(d.cookies)
	d.signInTo(reads)
	d.sees(d.console("instance?platform=cf&id=orders-db"), http.StatusOK, "longshore retry "+r.Token().String())
}

// A list shows what it is narrowed to.
func TestFilters(t *testing.T) {
	d := stocked(t)
	d.put(lifecycle.Record{Key: lifecycle.Key{Platform: "cf", Instance: "other"}, State: lifecycle.CreateFailed,
		Created: epoch.Add(-time.Hour), Attributes: lifecycle.Attributes{OrganizationGUID: "org-guid"}})
	d.signInTo(reads)
	for query, want := range map[string]string{
		"": "orders other", "offering=postgresql": "orders", "offering=none": "", "plan=small": "orders", "plan=large": "",
		"state=ready": "orders", "state=" + url.QueryEscape(string(lifecycle.CreateFailed)): "other",
		"organization=Shop": "orders", "organization=org-guid": "other", "space=live&organization=shop": "orders", "space=x": "",
		"age=day": "other", "age=old": "", "age=month": "orders other",
		"at=99.": "", "at=-1.": "orders other", "at=x": "orders other",
	} {
		body := d.console("instances?" + query).Body.String()
		for _, name := range []string{"orders", "other"} {
			if strings.Contains(body, ">"+name+"</a>") != strings.Contains(want, name) {
				t.Errorf("%q shows %q otherwise than %q", query, name, want)
			}
		}
	}
}

// However many instances there are and however long their names, each page stays small; the next pages have the rest.
func TestConsoleStaysSmall(t *testing.T) {
	d := newDesk(t)
	long := strings.Repeat("long word ", 200)
	var changes []ledger.Change
	for n := range 2_000 {
		r := d.busy()
		r.Key.Instance = fmt.Sprintf("3c1f5a52-0000-4000-8000-%012d", n)
		r.Operation.Trouble, r.Provider = long, long
		if n < 100 {
			at := vault.Label{Key: r.Key, Member: vault.Context}
			r.Attributes.SealedContext = expect.Get(d.vault.Seal(t.Context(), at, []byte(named(long))))(t)
		}
		changes = append(changes, ledger.Put(r))
	}
	d.commit(changes)
	d.signInTo(acts)
	one := d.record(lifecycle.Key{Platform: "cf", Instance: fmt.Sprintf("3c1f5a52-0000-4000-8000-%012d", 0)})
	for _, page := range append(consolePages, "instances?plan=none", "instance?platform=cf&id="+one.Key.Instance,
		"act?do=settle&token="+one.Token().String()) {
		w := d.console(page)
		if w.Body.Len() >= 30<<10 {
			t.Errorf("%s has %d bytes", page, w.Body.Len())
		}
		t.Logf("%s: %d bytes", page, w.Body.Len())
	}
	d.sees(d.console("overview"), http.StatusOK, "400+")
	d.sees(d.console("instances?plan=none"), http.StatusOK, "The next page goes on")
	seen := map[string]bool{}
	for at := "operations?show=stuck"; at != "" && len(seen) < 60; {
		body := d.console(at).Body.String()
		for _, part := range strings.Split(body, `instance?id=`)[1:] {
			id, _, _ := strings.Cut(part, "&")
			if seen[id] {
				t.Fatalf("%q is on two pages", id)
			}
			seen[id] = true
		}
		_, next, _ := strings.Cut(body, `First page</a><a href="`)
		if len(seen) == 20 {
			_, next, _ = strings.Cut(body, `<p class="pager"><a href="`)
		}
		next, _, _ = strings.Cut(next, `"`)
		at = strings.ReplaceAll(next, "&amp;", "&")
	}
	expect.Same(t, "operations on three pages", 60, len(seen))
}

// The overview does not say that all is well while it has not looked at all. A failed creation that was set aside for the next
// one, and that the reaper has not come to yet, needs nobody and breaks no page.
func TestTheOverviewSaysHowFarItLooked(t *testing.T) {
	d := newDesk(t)
	d.signInTo(reads)
	d.sees(d.console("overview"), http.StatusOK, ">Nothing needs you</span>")
	d.put(lifecycle.Record{Key: own.Former("first"), State: lifecycle.CreateFailed, Incarnation: "first", Due: epoch})
	d.sees(d.console("overview"), http.StatusOK, ">Nothing needs you</span>")
	d.sees(d.console("operations?show=failed"), http.StatusOK, "There is none.")
	var changes []ledger.Change
	for n := range 450 {
		key := lifecycle.Key{Platform: "cf", Instance: fmt.Sprintf("deleted-%d", n)}
		gone := lifecycle.Record{Key: key, State: lifecycle.Deleted, Due: epoch.Add(time.Hour), Expires: epoch.Add(time.Hour)}
		changes = append(changes, ledger.Put(gone))
	}
	d.commit(changes)
	lost := d.busy()
	lost.State, lost.Operation.Phase, lost.Due = lifecycle.CreateFailed, lifecycle.Failed, epoch.Add(2*time.Hour)
	d.put(lost)
	d.sees(d.console("overview"), http.StatusOK, ">Nothing needs you among the first 400 records that are due</span>")
}

// Markup in any name, text or parameter is shown as text, and no page has a platform's secret.
func TestConsoleShowsMarkupAsText(t *testing.T) {
	d := newDesk(t)
	k := lifecycle.Key{Platform: markup, Instance: "i" + markup}
	r := d.busy()
	r.Key, r.Provider, r.Operation.Trouble, r.Incarnation = k, markup, markup, markup
	r.Operation.Asker.Request = markup
	r.Attributes.OrganizationGUID, r.Attributes.MaintenanceVersion, r.Made.Target = markup, markup, lifecycle.Target{Name: markup}
	at := vault.Label{Key: k, Member: vault.Context}
	r.Attributes.SealedContext = expect.Get(d.vault.Seal(t.Context(), at, []byte(named(markup))))(t)
	d.put(r)
	o := orphan(markup)
	o.Provider = markup
	d.put(o)
	kept := orphan("")
	kept.Key.Life, kept.Key.Instance, kept.Incarnation = "other"+markup, markup, "other"+markup
	d.put(kept)
	halted := ledger.Put(ledger.Inventory{Halt: &ledger.Halt{At: epoch, Reason: markup}})
	counted := ledger.PutReport(ledger.Report{Started: epoch, Ended: epoch,
		Counted: &ledger.Counted{Odd: []string{markup}, Unreached: []string{markup}}}, "1")
	expect.OK(t, d.records.Commit(t.Context(), halted, counted))
	d.signInTo(acts)
	q := url.QueryEscape(markup)
	all := append(consolePages, "instance?platform="+q+"&id=i"+q, "instances?plan="+q+"&at="+q+"&space="+q, "operations?show="+q,
		"act?do=settle&token="+r.Token().String(), "act?do=discard&token="+o.Token().String(), "act?do="+q+"&token="+q)
	for _, page := range all {
		d.lacks(d.console(page), "<script>", "<img", `"'>`, "canary")
	}
	d.sees(d.console("overview"), http.StatusOK, "&lt;script&gt;alert(1)", "longshore reaper resume")
	d.sees(d.console("platforms"), http.StatusOK, "Production", "Rotating", "given", "/production/v2", "age not known")
}

// The console tells that something cannot be read, without its cause, and shows the rest.
func TestTheConsoleShowsWhatItCan(t *testing.T) {
	d := newDesk(t)
	d.server.Registry = func(context.Context) (platforms.Registry, error) { return platforms.Registry{}, errors.New("cause") }
	d.signInTo(reads)
	w := d.console("platforms")
	d.sees(w, http.StatusOK, "Not everything can be read", "No platform may log in.")
	d.lacks(w, "cause")
	expect.Says(t, "the log", d.log.String(), "cause")
	for _, page := range consolePages[:len(consolePages)-3] {
		expect.Says(t, page, d.ask("GET", "/console/"+page, nil, stopped).Body.String(), "Not everything can be read")
	}
	d.put(d.busy())
	d.signInTo(acts)
	act := url.Values{"do": {"retry"}, "token": {d.record(own).Token().String()}}
	d.sees(d.ask("POST", "/console/act", act, stopped), http.StatusServiceUnavailable, "Nothing was done",
		"Not everything can be read")
}

// Operators see who asked for what; people who open the page of an instance do not.
func TestWhoAsked(t *testing.T) {
	d := newDesk(t)
	r := d.ready()
	r.Operation = &lifecycle.Operation{ID: "op", Kind: operation.Update, Phase: lifecycle.Succeeded,
		Asker: lifecycle.Asker{Identity: d.seal(own, vault.Identity, `{"user_name":"duke"}`)}}
	d.put(r)
	e := lifecycle.Entry{Key: own, Incarnation: r.Incarnation, ID: "op", Kind: operation.Update, Phase: lifecycle.Succeeded,
		Ended: epoch, Asker: r.Operation.Asker}
	expect.OK(t, d.records.Commit(t.Context(), ledger.Put(e)))
	d.signInTo(reads)
	d.sees(d.console("instance?platform=cf&id="+own.Instance), http.StatusOK, "Asked by</dt><dd>duke", "by duke")
	d.signIn(own)
	d.lacks(d.page(own), "duke")
}

// The console adds list prices up by organization and space, and knows who has no space.
func TestCosts(t *testing.T) {
	d := newDesk(t)
	d.signInTo(reads)
	d.sees(d.console("costs"), http.StatusOK, "There is no instance.")
	for i, space := range []string{"live", "live", "test", "nameless", ""} {
		r := d.ready()
		r.Key = lifecycle.Key{Platform: "cf", Instance: fmt.Sprint("i", i)}
		r.Attributes.Names = nil
		if space != "" {
			r.Attributes.OrganizationGUID, r.Attributes.SpaceGUID = "o&1", "s-"+space
		}
		if space == "live" || space == "test" {
			r.Attributes.Names = d.seal(r.Key, vault.Names,
				`{"platform":"cloudfoundry","space_name":"`+space+`","organization_name":"shop <b>"}`)
		}
		if space == "test" {
			r.Attributes.PlanID = "gone"
		}
		d.put(r)
	}
	w := d.console("costs")
	d.sees(w, http.StatusOK, "instances?organization=o%261&amp;space=s-live", "shop &lt;b&gt; / live", "shop &lt;b&gt; / test",
		"o&amp;1 / s-nameless", "not known, cf", "EUR 22.00 or USD 25.00 monthly", "EUR 11.00 or USD 12.50 monthly",
		"not an invoice", `data-head="No price">1<`)
	d.lacks(w, "are counted")

	// A page that cannot count all says so, and counts the latest.
	var many []ledger.Change
	for i := range 2020 {
		many = append(many, ledger.Put(lifecycle.Record{Key: lifecycle.Key{Platform: "cf", Instance: fmt.Sprintf("i-%04d", i)},
			State: lifecycle.Ready, Created: epoch, Attributes: lifecycle.Attributes{ServiceID: "s-pg", PlanID: "p-small"}}))
	}
	d.commit(many)
	d.sees(d.console("costs"), http.StatusOK, "Only the latest 2000 instances are counted", "USD 25000.00 monthly")
}

// A binding whose credentials expire says until when they are valid and when to rotate them; other bindings say nothing of that.
func TestBindingsThatExpire(t *testing.T) {
	d := open(t)
	bind := func(id string, renew, expires time.Duration) {
		r := lifecycle.Record{Key: own.BindingKey(id), State: lifecycle.Ready, Created: epoch}
		if expires != 0 {
			r.RenewBefore, r.ExpiresAt = epoch.Add(renew), epoch.Add(expires)
		}
		d.put(r)
	}
	bind("for-good", 0, 0)
	d.lacks(d.page(own), "Expires")
	bind("young", 48*time.Hour, 72*time.Hour)
	bind("old", -2*time.Hour, 5*time.Hour)
	bind("late", -96*time.Hour, 0-24*time.Hour)
	w := d.page(own)
	d.sees(w, http.StatusOK, "in 2 days", "in 3 days", "To be rotated", "in 5 hours", "Expired", "4 days ago")
	d.sees(w, http.StatusOK,
		`<code>for-good</code></td><td role="cell" data-head="Rotate by"></td><td role="cell" data-head="Expires"></td>`)
}
