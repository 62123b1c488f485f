//go:build deployed

package localstack_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A link of the operator opens the page of an instance, once, through API Gateway and below its
// stage; neither the link nor the session is in a log. Every answer carries the page's address.
func TestThePageOfAnInstance(t *testing.T) {
	t.Parallel()
	p, instance := newPlatform(t), id("page")
	made := p.call(t, "PUT", instancePath(instance), provision(planSync), 201)
	address, err := url.Parse(made.text("dashboard_url"))
	// MiniStack's API Gateway names no domain: there, no answer can say where the page is.
	if err != nil || address.String() != "" && (address.Scheme != "https" || address.Query().Get("id") != instance) {
		t.Errorf("the dashboard is at %q: %v", made.text("dashboard_url"), err)
	}
	if again := p.call(t, "GET", instancePath(instance), "", 200); again.text("dashboard_url") != address.String() {
		t.Errorf("a fetch says that it is at %q", again.text("dashboard_url"))
	}
	link, err := url.Parse(strings.TrimSpace(longshore(t, "dashboard", instance)))
	if err != nil || link.Query().Get("link") == "" {
		t.Fatalf("the link is %q: %v", link, err)
	}
	keep("a link", link.Query().Get("link"))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	exchange := func() *http.Response {
		t.Helper()
		r, err := client.PostForm(p.url+"/dashboard/enter", url.Values{"link": {link.Query().Get("link")}})
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r
	}
	r := exchange()
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 || !strings.Contains(r.Header.Get("Location"),
		"/dashboard/instance?") {
		t.Fatalf("the link is answered %d to %q with cookies %v", r.StatusCode, r.Header.Get("Location"), len(r.Cookies()))
	}
	location, err := url.Parse(r.Header.Get("Location"))
	if err != nil || location.Query().Get("id") != instance {
		t.Fatalf("the link leads to %v: %v", location, err)
	}
	keep("a session", r.Cookies()[0].Value)
	show := func(cookies ...*http.Cookie) (int, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), "GET", p.url+"/dashboard/instance?"+location.RawQuery, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cookies {
			q.AddCookie(c)
		}
		r, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Body.Close() }()
		page, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(page)
	}
	if status, page := show(r.Cookies()...); status != 200 || !strings.Contains(page, "Ready") || !strings.Contains(page,
		"Created") {
		t.Errorf("the page is answered %d:\n%s", status, page)
	}
	// The page has the provisioner ask, which has the rights, and does not wait for it.
	eventually(t, "the page to show what the provider tells", time.Minute, func() bool {
		status, page := show(r.Cookies()...)
		return status == 200 && strings.Contains(page, "Demo") && strings.Contains(page, "of 16 kB")
	})
	if status, _ := show(); status != http.StatusUnauthorized {
		t.Errorf("without a session, the page is answered %d", status)
	}
	if status := exchange().StatusCode; status != http.StatusForbidden {
		t.Errorf("the link is answered %d when it is used again", status)
	}
	p.call(t, "DELETE", instancePath(instance)+"?"+hints(planSync), "", 200)
}

// The operator's console is there through API Gateway and below its stage, reads what it shows by
// the rights of the API's function.
func TestTheConsole(t *testing.T) {
	t.Parallel()
	p, instance := newPlatform(t), id("console")
	p.call(t, "PUT", instancePath(instance), provision(planSync), 201)
	link, err := url.Parse(strings.TrimSpace(longshore(t, "console", "--act")))
	if err != nil || link.Query().Get("link") == "" {
		t.Fatalf("the link is %q: %v", link, err)
	}
	keep("a link", link.Query().Get("link"))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := client.PostForm(p.url+"/dashboard/enter", url.Values{"link": {link.Query().Get("link")}})
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 || !strings.HasSuffix(r.Header.Get("Location"),
		"/console/overview") {
		t.Fatalf("the link is answered %d to %q", r.StatusCode, r.Header.Get("Location"))
	}
	keep("a session", r.Cookies()[0].Value)
	for path, want := range map[string]string{
		"overview": "Totals", "instances": instance, "instance?platform=default&id=" + instance: "Whose, and where",
		"operations": "Operations", "upgrades": "Upgrades", "quarantine": "Quarantine", "retained": "Retained",
		"offerings": "demo", "platforms": "default", "style.css": "--accent",
		"act?do=retry&token=none": "There is no such operation",
	} {
		q, err := http.NewRequestWithContext(t.Context(), "GET", p.url+"/console/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		q.AddCookie(r.Cookies()[0])
		shown, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(shown.Body)
		_ = shown.Body.Close()
		if err != nil || !strings.Contains(string(page), want) || strings.Contains(string(page), "Not everything can be read") {
			t.Errorf("%s is answered %d without %q, or not whole: %v\n%s", path, shown.StatusCode, want, err, page)
		}
	}
	p.call(t, "DELETE", instancePath(instance)+"?"+hints(planSync), "", 200)
}
