package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

var linkLine = regexp.MustCompile(`http://localhost:\d+/dashboard/enter\?link=\S+`)

// browse opens a link. It gives the page that the link leads to, and what asks for pages in its session.
func (p *process) browse(t *testing.T, link string) (ask func(method, path string) (int, string), first string) {
	t.Helper()
	at := expect.Get(url.Parse(link))(t)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	entered := expect.Get(client.PostForm(p.url+"/dashboard/enter", at.Query()))(t)
	_ = entered.Body.Close()
	if entered.StatusCode != http.StatusSeeOther || len(entered.Cookies()) != 1 {
		t.Fatalf("%q is answered %d", link, entered.StatusCode)
	}
	return func(method, path string) (int, string) {
		t.Helper()
		q := expect.Get(http.NewRequestWithContext(t.Context(), method, p.url+path, nil))(t)
		q.AddCookie(entered.Cookies()[0])
		r := expect.Get(client.Do(q))(t)
		defer func() { _ = r.Body.Close() }()
		page := expect.Get(io.ReadAll(r.Body))(t)
		return r.StatusCode, string(page)
	}, entered.Header.Get("Location")
}

// A session that acts upgrades an instance from its page: the broker then says that it has the plan's version, as after a
// platform's own update.
func TestAnInstanceIsUpgradedFromItsPage(t *testing.T) {
	t.Parallel()
	data, mine := t.TempDir(), t.TempDir()
	const offering, plan = "2b9a2a1e-1111-4222-8333-944445555888", "2b9a2a1e-7777-4888-8999-900001111444"
	serve := func(version string) *process {
		t.Helper()
		file := fmt.Sprintf("id: %s\nname: mine\ndescription: Mine\nprovider: demo\nbindable: true\n"+
			"instances_retrievable: true\nplans:\n- id: %s\n  name: only\n  description: The only one\n"+
			"  maintenance_info: {version: %s}\n", offering, plan, version)
		expect.OK(t, os.WriteFile(filepath.Join(mine, "offering.yaml"), []byte(file), 0o600))
		return startWith(t, credentials(), "--data", data, "--offerings", mine)
	}
	p := serve("1.0.0")
	must(t, p.url, "PUT", instancePath("i")+"?accepts_incomplete=true",
		fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"}`, offering, plan), 202)
	settled(t, p.url, instancePath("i"))
	p.stop(t, terminate)

	p = serve("2.0.0")
	var ask func(method, path string) (int, string)
	var first string
	for _, flag := range []string{"", "--act"} {
		args := []string{"dashboard", "i", "--data", data}
		if flag != "" {
			args = append(args, flag)
		}
		status, said := run(t, nil, args...)
		if status != 0 {
			t.Fatalf("longshore %v: %d %s", args, status, said)
		}
		ask, first = p.browse(t, linkLine.FindString(said))
		order := "/dashboard/order?" + first[strings.Index(first, "?")+1:] + "&do=upgrade"
		_, page := ask("GET", first)
		status, asked := ask("GET", order)
		acts := flag != ""
		if strings.Contains(page, "do=upgrade") != acts || strings.Contains(asked, "Upgrade this instance?") != acts {
			t.Fatalf("dashboard %s: the page\n%s\nand the question, %d\n%s", flag, page, status, asked)
		}
		want := map[string]int{"": http.StatusForbidden, "--act": http.StatusSeeOther}[flag]
		if got, answer := ask("POST", order); got != want {
			t.Fatalf("dashboard %s: the order is answered %d, want %d\n%s", flag, got, want, answer)
		}
	}
	settled(t, p.url, instancePath("i"))
	if a := must(t, p.url, "GET", instancePath("i"), "", 200); !strings.Contains(a.raw, `"version":"2.0.0"`) {
		t.Errorf("after the upgrade the instance is %s", a.raw)
	}
	if _, page := ask("GET", first); !strings.Contains(page, "on this page") || strings.Contains(page, "do=upgrade") {
		t.Errorf("after the upgrade the page is\n%s", page)
	}
}

// A session that acts deletes an instance again from its page, once its deletion has failed: the broker
// then knows it no more.
func TestAnInstanceIsDeletedAgainFromItsPage(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data, credentials()...)
	must(t, p.url, "PUT", instancePath("i"), provisionBody(planSync, `{"fail":"deprovision"}`), 201)
	deletion := instancePath("i") + "?service_id=" + service + "&plan_id=" + planSync
	must(t, p.url, "DELETE", deletion, "", 500)
	status, said := run(t, nil, "dashboard", "i", "--act", "--data", data)
	if status != 0 {
		t.Fatalf("longshore dashboard: %d %s", status, said)
	}
	ask, first := p.browse(t, linkLine.FindString(said))
	order := "/dashboard/order?" + first[strings.Index(first, "?")+1:] + "&do=delete"
	_, page := ask("GET", first)
	if _, asked := ask("GET", order); !strings.Contains(page, "do=delete") ||
		!strings.Contains(asked, "Delete this instance again?") {
		t.Fatalf("the page is\n%s\nand the question\n%s", page, asked)
	}
	if got, answer := ask("POST", order); got != http.StatusSeeOther {
		t.Fatalf("the order is answered %d\n%s", got, answer)
	}
	waitFor(t, startLimit, "the instance to be gone", func() bool {
		_, page := ask("GET", first)
		return !strings.Contains(page, "do=delete")
	})
	must(t, p.url, "DELETE", deletion, "", 410)
}

// A page says until when a binding is valid whose credentials expire, and when to rotate it.
func TestAPageSaysWhenABindingExpires(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data, credentials()...)
	const rotatable = "a519b4c2-4011-4589-ab25-103ea562d924"
	must(t, p.url, "PUT", instancePath("i"), provisionBody(rotatable, "{}"), 201)
	must(t, p.url, "PUT", instancePath("i")+"/service_bindings/b", bindBody(rotatable), 201)
	status, said := run(t, nil, "dashboard", "i", "--data", data)
	if status != 0 {
		t.Fatalf("longshore dashboard: %d %s", status, said)
	}
	ask, first := p.browse(t, linkLine.FindString(said))
	if _, page := ask("GET", first); !strings.Contains(page, "in 22 days") || !strings.Contains(page, "in 29 days") {
		t.Errorf("of 30 days, the page says\n%s", page)
	}
}

// The broker prints a link to its console where this machine alone reaches it, and never logs
// one. It opens the console, and the command prints another that may act.
func TestTheConsoleIsThereInTheFirstMinute(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data, credentials()...)
	var printed string
	waitFor(t, startLimit, "the broker to print a link", func() bool {
		printed = linkLine.FindString(p.out.String())
		return printed != ""
	})
	status, said := run(t, nil, "console", "--act", "--data", data)
	if status != 0 {
		t.Fatalf("longshore console: %d %s", status, said)
	}
	for link, role := range map[string]string{printed: "Reads only", linkLine.FindString(said): "May act"} {
		ask, first := p.browse(t, link)
		if status, page := ask("GET", first); !strings.Contains(page, "Nothing needs you") || !strings.Contains(page, role) {
			t.Errorf("the console is answered %d without %q:\n%s", status, role, page)
		}
	}
	expect.Never(t, "the log", p.log.String(), "link=")
	open := startWith(t, credentials(), "--listen", "0.0.0.0:0", "--data", t.TempDir())
	waitFor(t, startLimit, "the broker to say how to get a link", func() bool {
		return strings.Contains(open.out.String(), "Ctrl-C")
	})
	if out := open.out.String(); strings.Contains(out, "link=") || !strings.Contains(out, "--origin") {
		t.Errorf("where others reach the broker, it prints:\n%s", out)
	}
}
