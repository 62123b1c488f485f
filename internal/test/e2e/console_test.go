package e2e_test

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

var linkLine = regexp.MustCompile(`http://localhost:\d+/dashboard/enter\?link=\S+`)

// The broker prints a link to its console where this machine alone reaches it, and never logs
// one. It opens the console, and the command prints another that may act.
func TestTheConsoleIsThereInTheFirstMinute(t *testing.T) {
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
		at, err := url.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		r, err := client.PostForm(p.url+"/dashboard/enter", at.Query())
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
			t.Fatalf("%q is answered %d", link, r.StatusCode)
		}
		q, err := http.NewRequest("GET", p.url+r.Header.Get("Location"), nil)
		if err != nil {
			t.Fatal(err)
		}
		q.AddCookie(r.Cookies()[0])
		r, err = client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || !strings.Contains(string(page), "Nothing needs you") || !strings.Contains(string(page), role) {
			t.Errorf("the console is answered %d without %q: %v\n%s", r.StatusCode, role, err, page)
		}
	}
	if strings.Contains(p.log.String(), "link=") {
		t.Error("a link is in the log")
	}
	open := startWith(t, credentials(), "--listen", "0.0.0.0:0", "--data", t.TempDir())
	waitFor(t, startLimit, "the broker to say how to get a link", func() bool {
		return strings.Contains(open.out.String(), "Ctrl-C")
	})
	if out := open.out.String(); strings.Contains(out, "link=") || !strings.Contains(out, "--origin") {
		t.Errorf("where others reach the broker, it prints:\n%s", out)
	}
}
