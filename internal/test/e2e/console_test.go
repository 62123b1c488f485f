package e2e_test

import (
	"fmt"
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

// A session asks for pages, by one who has followed a link.
type session func(method, path string) (status int, page string)

// opens has a command print a link, and follows it: the session, and the path of its first page.
func (p *process) opens(t *testing.T, command ...string) (ask session, first string) {
	t.Helper()
	return p.browse(t, linkLine.FindString(does(t, nil, command...)))
}

func (p *process) browse(t *testing.T, link string) (asks session, first string) {
	t.Helper()
	at := expect.Get(url.Parse(link))(t)
	entered := expect.Get(client.PostForm(p.url+"/dashboard/enter", at.Query()))(t)
	_ = entered.Body.Close()
	if entered.StatusCode != http.StatusSeeOther || len(entered.Cookies()) != 1 {
		t.Fatalf("%q is answered %d", link, entered.StatusCode)
	}
	cookie := entered.Cookies()[0]
	header := map[string]string{"Authorization": "", "Cookie": cookie.Name + "=" + cookie.Value}
	return func(method, path string) (int, string) {
		a, _ := ask(method, p.url+path, "", header) // a page is no JSON object
		return a.status, a.raw
	}, entered.Header.Get("Location")
}

// orderOf is the path that asks for an act on the instance of a page.
func orderOf(page, act string) string {
	_, instance, _ := strings.Cut(page, "?")
	return "/dashboard/order?" + instance + "&do=" + act
}

// mine writes an offering of an operator's own, on the demo and of one plan, into a folder. Both texts are lines of YAML more.
func mine(t testing.TB, dir, service, plan, ofOffering, ofPlan string) {
	t.Helper()
	file := fmt.Sprintf("id: %s\nname: mine\ndescription: Mine\nprovider: demo\nbindable: true\ninstances_retrievable: true\n%s"+
		"plans:\n- id: %s\n  name: only\n  description: The only one\n%s", service, ofOffering, plan, ofPlan)
	expect.OK(t, os.WriteFile(filepath.Join(dir, "offering.yaml"), []byte(file), 0o600))
}

// A session that acts upgrades an instance from its page: the broker then says that it has the plan's version, as after a
// platform's own update.
func TestAnInstanceIsUpgradedFromItsPage(t *testing.T) {
	t.Parallel()
	data, dir, path := t.TempDir(), t.TempDir(), instancePath("i")
	const offering, plan = "2b9a2a1e-1111-4222-8333-944445555888", "2b9a2a1e-7777-4888-8999-900001111444"
	serve := func(version string) *process {
		t.Helper()
		mine(t, dir, offering, plan, "", "  maintenance_info: {version: "+version+"}\n")
		return startWith(t, credentials(), "--data", data, "--offerings", dir)
	}
	p := serve("1.0.0")
	must(t, p.url, "PUT", path+async, orderBody(offering, plan, ""), 202)
	settled(t, p.url, path)
	p.ends(t, terminate)

	p = serve("2.0.0")
	var ask session
	var first string
	for _, c := range []struct {
		flag   string
		acts   bool
		status int
	}{{"", false, http.StatusForbidden}, {"--act", true, http.StatusSeeOther}} {
		ask, first = p.opens(t, append([]string{"dashboard", "i", "--data", data}, strings.Fields(c.flag)...)...)
		order := orderOf(first, "upgrade")
		_, page := ask("GET", first)
		status, asked := ask("GET", order)
		if strings.Contains(page, "do=upgrade") != c.acts || strings.Contains(asked, "Upgrade this instance?") != c.acts {
			t.Fatalf("dashboard %s: the page\n%s\nand the question, %d\n%s", c.flag, page, status, asked)
		}
		if got, answer := ask("POST", order); got != c.status {
			t.Fatalf("dashboard %s: the order is answered %d, want %d\n%s", c.flag, got, c.status, answer)
		}
	}
	settled(t, p.url, path)
	expect.Says(t, "the instance after the upgrade", must(t, p.url, "GET", path, "", 200).raw, `"version":"2.0.0"`)
	if _, page := ask("GET", first); !strings.Contains(page, "on this page") || strings.Contains(page, "do=upgrade") {
		t.Errorf("after the upgrade the page is\n%s", page)
	}
}

// A session that acts deletes an instance again from its page, once its deletion has failed: the broker
// then knows it no more. A page says until when a binding is valid whose credentials expire, and when to rotate it.
func TestAnInstanceIsDeletedAgainFromItsPage(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data, credentials()...)
	const rotatable = "a519b4c2-4011-4589-ab25-103ea562d924"
	must(t, p.url, "PUT", instancePath("rotatable"), provisionBody(rotatable, "{}"), 201)
	must(t, p.url, "PUT", bindingPath("rotatable", "b"), planBody(service, rotatable, ""), 201)
	ask, first := p.opens(t, "dashboard", "rotatable", "--data", data)
	_, page := ask("GET", first)
	expect.Says(t, "of 30 days, the page", page, "in 22 days", "in 29 days")

	must(t, p.url, "PUT", instancePath("i"), provisionBody(planSync, `{"fail":"deprovision"}`), 201)
	deletion := instancePath("i") + "?" + hints(planSync)
	must(t, p.url, "DELETE", deletion, "", 500)
	ask, first = p.opens(t, "dashboard", "i", "--act", "--data", data)
	order := orderOf(first, "delete")
	_, page = ask("GET", first)
	_, asked := ask("GET", order)
	expect.Says(t, "the page", page, "do=delete")
	expect.Says(t, "the question", asked, "Delete this instance again?")
	if got, answer := ask("POST", order); got != http.StatusSeeOther {
		t.Fatalf("the order is answered %d\n%s", got, answer)
	}
	waitFor(t, startLimit, "the instance to be gone", func() bool {
		_, page := ask("GET", first)
		return !strings.Contains(page, "do=delete")
	})
	must(t, p.url, "DELETE", deletion, "", 410)
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
	said := does(t, nil, "console", "--act", "--data", data)
	for link, role := range map[string]string{printed: "Reads only", linkLine.FindString(said): "May act"} {
		ask, first := p.browse(t, link)
		_, page := ask("GET", first)
		expect.Says(t, "the console", page, "Nothing needs you", role)
	}
	expect.Never(t, "the log", p.log.String(), "link=")
	open := startWith(t, credentials(), "--listen", "0.0.0.0:0", "--data", t.TempDir())
	waitFor(t, startLimit, "the broker to say how to get a link", func() bool {
		return strings.Contains(open.out.String(), "Ctrl-C")
	})
	expect.Never(t, "where others reach the broker, it", open.out.String(), "link=")
	expect.Says(t, "where others reach the broker, it", open.out.String(), "--origin")
}
