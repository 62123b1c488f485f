//go:build deployed

package localstack_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
)

// A visitor is a browser in one session, without script.
type visitor struct {
	*testing.T
	url, link, first string // of the broker; sealed; the page that the link leads to, with its query
	session          *http.Cookie
}

// visit opens a page by the link that a command of the operator prints. Neither the link nor the session is in a log.
func (p platform) visit(t *testing.T, command ...string) *visitor {
	t.Helper()
	link, err := url.Parse(strings.TrimSpace(longshore(t, command...)))
	if err != nil || link.Query().Get("link") == "" {
		t.Fatalf("longshore %v: the link is %q: %v", command, link, err)
	}
	v := &visitor{T: t, url: p.url, link: link.Query().Get("link")}
	keep("a link", v.link)
	r := v.enter()
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
		t.Fatalf("the link is answered %d with %d cookies", r.StatusCode, len(r.Cookies()))
	}
	v.session, v.first = r.Cookies()[0], r.Header.Get("Location")
	keep("a session", v.session.Value)
	return v
}

// enter exchanges the link.
func (v *visitor) enter() *http.Response {
	v.Helper()
	r, _ := v.send("POST", "/dashboard/enter", url.Values{"link": {v.link}})
	return r
}

// send is a request in the session, if there is one, and follows no redirect.
func (v *visitor) send(method, path string, form url.Values) (*http.Response, string) {
	v.Helper()
	q := expect.Get(http.NewRequestWithContext(v.Context(), method, v.url+path, strings.NewReader(form.Encode())))(v)
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if v.session != nil {
		q.AddCookie(v.session)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r := expect.Get(client.Do(q))(v)
	defer func() { _ = r.Body.Close() }()
	return r, string(expect.Get(io.ReadAll(r.Body))(v))
}

// see gets a page.
func (v *visitor) see(path string) (int, string) {
	v.Helper()
	r, page := v.send("GET", path, nil)
	return r.StatusCode, page
}

// A link of the operator opens the page of an instance, once, through API Gateway and below its
// stage. Every answer carries the page's address.
func TestThePageOfAnInstance(t *testing.T) {
	t.Parallel()
	p, instance := newPlatform(t), id("page")
	made := p.call(t, "PUT", instancePath(instance), provision(planSync), 201)
	address, err := url.Parse(made.text("dashboard_url"))
	// MiniStack's API Gateway names no domain: there, no answer can say where the page is.
	if err != nil || address.String() != "" && (address.Scheme != "https" || address.Query().Get("id") != instance) {
		t.Errorf("the dashboard is at %q: %v", made.text("dashboard_url"), err)
	}
	again := p.call(t, "GET", instancePath(instance), "", 200)
	expect.Same(t, "by a fetch, it is at", address.String(), again.text("dashboard_url"))
	v := p.visit(t, "dashboard", instance)
	location, err := url.Parse(v.first)
	if err != nil || !strings.HasSuffix(location.Path, "/dashboard/instance") || location.Query().Get("id") != instance {
		t.Fatalf("the link leads to %v: %v", location, err)
	}
	at := "/dashboard/instance?" + location.RawQuery
	if status, page := v.see(at); status != 200 || !strings.Contains(page, "Ready") || !strings.Contains(page, "Created") {
		t.Errorf("the page is answered %d:\n%s", status, page)
	}
	// The page has the provisioner ask, which has the rights, and does not wait for it.
	eventually(t, "the page to show what the provider tells", time.Minute, func() bool {
		status, page := v.see(at)
		return status == 200 && strings.Contains(page, "Demo") && strings.Contains(page, "of 16 kB")
	})
	expect.Same(t, "the link is answered when it is used again", http.StatusForbidden, v.enter().StatusCode)
	v.session = nil
	status, _ := v.see(at)
	expect.Same(t, "without a session, the page is answered", http.StatusUnauthorized, status)
	p.deletes(t, instancePath(instance))
}

// A session that acts deletes an instance again whose deletion has failed.
func TestAnInstanceIsDeletedAgainFromItsPage(t *testing.T) {
	t.Parallel()
	p, instance := newPlatform(t), id("again")
	body := strings.Replace(provision(planSync), `"note"`, `"fail":"deprovision","note"`, 1)
	p.call(t, "PUT", instancePath(instance), body, 201)
	p.call(t, "DELETE", instancePath(instance)+"?"+hints(planSync), "", 500)
	v := p.visit(t, "dashboard", instance, "--act")
	order := "/dashboard/order?" + v.first[strings.Index(v.first, "?")+1:] + "&do=delete"
	if status, page := v.see(order); status != 200 || !strings.Contains(page, "Delete this instance again?") {
		t.Fatalf("the question is answered %d:\n%s", status, page)
	}
	if r, page := v.send("POST", order, url.Values{}); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("the order is answered %d:\n%s", r.StatusCode, page)
	}
	eventually(t, "the instance to be gone", 2*time.Minute, func() bool {
		_, page := v.see("/dashboard/instance" + order[len("/dashboard/order"):])
		return strings.Contains(page, "Deleted")
	})
	p.call(t, "DELETE", instancePath(instance)+"?"+hints(planSync), "", 410)
}

// The operator's console is there through API Gateway and below its stage, and reads what it shows by the rights of the API's
// function.
func TestTheConsole(t *testing.T) {
	t.Parallel()
	p, instance := newPlatform(t), id("console")
	// Other tests make instances meanwhile: one of its own organization is found wherever it stands.
	own := strings.Replace(provision(planSync), `"organization_guid":"o"`, `"organization_guid":"of-`+instance+`"`, 1)
	p.call(t, "PUT", instancePath(instance), own, 201)
	v := p.visit(t, "console", "--act")
	if !strings.HasSuffix(v.first, "/console/overview") {
		t.Fatalf("the link leads to %q", v.first)
	}
	for path, want := range map[string]string{
		"overview": "Totals", "instances?organization=of-" + instance: instance,
		"instance?platform=default&id=" + instance: "Whose, and where", "operations": "Operations", "upgrades": "Upgrades",
		"quarantine": "Quarantine", "retained": "Retained", "offerings": "demo", "costs": "No price", "platforms": "default",
		"style.css": "--accent", "act?do=retry&token=none": "There is no such operation",
	} {
		status, page := v.see("/console/" + path)
		if !strings.Contains(page, want) || strings.Contains(page, "Not everything can be read") {
			t.Errorf("%s is answered %d without %q, or not whole:\n%s", path, status, want, page)
		}
	}
	p.deletes(t, instancePath(instance))
}
