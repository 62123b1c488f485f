package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/kit/cloudcontroller"
)

// filled is a row with a value in each column, as long as real ones are.
func filled(n int) operator.Row {
	id := strings.Repeat("0123456789abcdef", 3)[:36]
	at := time.Now().Add(-time.Duration(n) * 24 * time.Hour)
	return operator.Row{Platform: "p-abcdefghijkl", PlatformName: "production", Organization: id, Space: id,
		Provider: "cloudformation", Made: []string{id, id}, Instance: id, Binding: id, State: string(lifecycle.DeleteFailed),
		Service: "object-storage", Plan: "small-and-cheap", Created: at, Kept: &lifecycle.Kept{Name: id + id[:20],
			Since: at, Until: at, Freed: at}, Operation: &operator.Operation{Token: id + id, Kind: "deprovision",
			Phase: "in progress", Percent: n, Started: at}, IsAt: "1.10.0", PlanIsAt: fmt.Sprintf("1.%d.0", n), Edited: true}
}

// judge requires of a table of long values that it fits on a screen unless it is wide, keeps what
// other commands take whole, and calls its columns as JSON calls its members.
func judge[T any](t *testing.T, name string, of table[T], rows []T) {
	t.Helper()
	printed := func(v view) string {
		var out strings.Builder
		of.print(&out, v, rows)
		return out.String()
	}
	members, wide := printed(view{output: "json"}), printed(view{output: "wide"})
	for _, c := range of.all() {
		expect.Says(t, name, members, fmt.Sprintf("%q: ", c))
	}
	first := fmt.Sprint(of.of(rows[0], of.all()[0]))
	for _, line := range strings.Split(strings.TrimSpace(printed(view{output: "table", noHeaders: true})), "\n") {
		if utf8.RuneCountInString(line) > screen || !strings.HasPrefix(line, first+"  ") {
			t.Errorf("%s: the line %q has %d columns", name, line, utf8.RuneCountInString(line))
		}
	}
	if strings.Contains(wide, shortage) || strings.Count(wide, "\n") != len(rows)+1 {
		t.Errorf("%s: a wide table is shortened:\n%s", name, wide)
	}
}

func TestTablesFitAndUseTheWordsOfJSON(t *testing.T) {
	var rows []operator.Row
	for n := range 3 {
		rows = append(rows, filled(n))
	}
	for name, one := range listings {
		judge(t, string(name), one, rows)
	}
	judge(t, "upgrades", upgrades, rows)
	judge(t, "quarantine", quarantined, rows)
	judge(t, "retained", retained, rows)
	judge(t, "platforms", listedPlatforms, []listedPlatform{{strings.Repeat("n", 30), "p-abcdefghijkl",
		strings.Repeat("u", 30), "/p", "everything, and more", time.Now(), time.Now()}})
}

// A text that somebody else chose neither forges a line nor commands the terminal.
func TestTextsOfOthersStayInTheirLine(t *testing.T) {
	const evil = "a\x1b]0;title\x07\nforged\tand\u009bmore"
	r := filled(1)
	r.Organization, r.InstanceName, r.Operation.Trouble, r.Operation.Description = evil, evil, evil, evil
	var out strings.Builder
	listings[operator.Instances].print(&out, view{output: "wide"}, []operator.Row{r})
	tellWaits(&out, view{}, []operator.Row{r})
	show(&out, r)
	printUndeleted(&out, operator.Undeleted{Kept: r})
	l := life{out: &out, line: newProgress(&out)}
	l.say("provision", "FAILED: %s", evil)
	printf(&out, "%s\n", progressLine(r, time.Now()))
	expect.OK(t, transcribe(&out, []cloudcontroller.Exchange{{Said: evil, Decided: evil}}))
	if said := out.String(); strings.ContainsFunc(said, func(c rune) bool { return c != '\n' && unicode.IsControl(c) }) ||
		strings.Contains(said, "\nforged") || strings.Count(said, "forged") < 10 {
		t.Errorf("it prints %q", said)
	}
}

// A command that is printed for pasting has each name as one word.
func TestCommandsCanBePasted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my offerings")
	status, said, diagnostics := called(t, nil, "catalog", "new", "cache", dir)
	expect.Same(t, "exit status: "+diagnostics, 0, status)
	has(t, said, "then run longshore catalog validate '"+dir+"'\n")
	var out strings.Builder
	r := filled(1)
	r.Instance = "it's"
	printUndeleted(&out, operator.Undeleted{Kept: r, Service: "my db", Plan: "small", Parameter: "of"})
	has(t, out.String(), `cf create-service 'my db' small NAME -c '{"of":"it'\''s`)
}

// A broker whose clock is ahead starts operations in this machine's future: their bars are empty until then.
func TestProgressBeforeTheStart(t *testing.T) {
	now := time.Now()
	r := operator.Row{Instance: "i", Operation: &operator.Operation{Kind: "provision", Phase: string(lifecycle.InProgress),
		Started: now.Add(time.Minute), Expected: now.Add(2 * time.Minute)}}
	has(t, progressLine(r, now), "[....................]   0 %  provision of i")
}

// A limit keeps the newest however late they are read, and columns of numbers and times sort as such.
func TestOrders(t *testing.T) {
	pages := 0
	link := func(_ context.Context, _ string, in json.RawMessage) (json.RawMessage, error) {
		var q operator.Query
		var page operator.Page
		_ = json.Unmarshal(in, &q)
		for n := range 10 {
			one := filled(100 - 10*pages - n)
			one.Instance = fmt.Sprint(100 - 10*pages - n)
			page.Items = append(page.Items, one)
		}
		if pages++; pages < 10 {
			page.Next = fmt.Sprint(pages)
		}
		return json.Marshal(page)
	}
	for order, want := range map[string]string{"-started": "1 2 3", "started": "100 99 98", "percent": "1 2 3",
		"-percent": "100 99 98"} {
		pages = 0
		a := asks(&cobra.Command{}, listings[operator.Operations])
		a.of.list, a.limit, a.order = operator.List, 3, order
		all, unread := a.read(t.Context(), link)
		a.of.sort(all, order)
		got := ""
		for _, r := range all[:3] {
			got += r.Instance + " "
		}
		if strings.TrimSpace(got) != want || unread != nil || len(all) > 7 || pages != 10 {
			t.Errorf("by %s: %q of %d rows that were kept of %d pages, want %q: %v", order, got, len(all), pages, want, unread)
		}
	}
}

// A filter leaves out what it does not choose, in each list, and a shell is told what could be chosen while the broker runs.
func TestFiltersAndCompletion(t *testing.T) {
	b := newBench(t)
	b.provision("ready-1", "sync", 0, 201)
	token := b.provision("slow-1", "async", 3600, 202)
	only := func(want string, args ...string) {
		t.Helper()
		if got := strings.Fields(b.operate(0, append(args, "--no-headers")...)); strings.Join(append(got, ""), " ") != want &&
			(len(got) == 0 || got[0] != want || len(got) > 7) {
			t.Errorf("%q lists %q, want %s alone", args, got, want)
		}
	}
	only("slow-1", strings.Fields("instances --plan async --offering demo --organization o --space s --newer 1h")...)
	only("ready-1", "instances", "--state", "ready", "--platform", "default")
	only("ready-1", "operations", "--state", "ready", "--newer", "1h")
	for _, none := range []string{"--offering nope", "--plan nope", "--organization p", "--space p", "--older 1h",
		"--newer 1ns"} {
		for _, list := range []string{"instances", "operations", "bindings", "retained", "upgrades"} {
			only("", append([]string{list}, strings.Fields(none)...)...)
		}
	}
	has(t, b.operate(1, "retained", "--platform", "nobody"), `there is no platform "nobody": the known ones are default`)
	has(t, b.operate(2, "instances", "--older", "-1h"), "not negative")
	has(t, b.operate(2, "instances", "--older", "2d"), `--older does not take "2d": give a duration, such as`)
	for line, want := range map[string]string{
		"instances": "slow-1\n", "dashboard": "ready-1\n", "backup": "slow-1\n", "retry": token + "\n",
		"platform rotate": "default\n", "instances --platform": "default\n", "instances --offering": "demo\n",
		"upgrades --offering demo --plan": "async\n", "instances --state": "create failed\n",
		"operations --sort": "started\n", "whose -o": "wide\n",
	} {
		command, flag, _ := strings.Cut(line, " -")
		args := append([]string{"__complete"}, append(strings.Fields(command), "--data", b.dir)...)
		if flag != "" {
			args = append(args, strings.Fields("-"+flag)...)
		}
		_, out, _ := called(t, environment, append(args, "")...)
		has(t, out, want)
	}
}

// Rights that do not fit into one policy are printed part by part, and never cut.
func TestRightsArePrintedInParts(t *testing.T) {
	one, two := [][]byte{[]byte("{1}")}, [][]byte{[]byte("{1}"), []byte("{2}")}
	for name, tc := range map[string]struct {
		reason   string
		policies [][]byte
		part     int
		want     string
	}{
		"One":      {"the only one needs no number", one, 0, "{1}"},
		"First":    {"it may have it", one, 1, "{1}"},
		"Second":   {"each is printed alone", two, 2, "{2}"},
		"All":      {"one policy of several is not all", two, 0, ""},
		"NoSuch":   {"there are two", two, 3, ""},
		"Negative": {"they begin with 1", one, -1, ""},
	} {
		var out strings.Builder
		err := printRights(&out, tc.policies, tc.part)
		_, refused := errors.AsType[*usageError](err)
		if strings.TrimSpace(out.String()) != tc.want || refused != (tc.want == "") {
			t.Errorf("%s: %s: it prints %q, error %v; want %q", name, tc.reason, out.String(), err, tc.want)
		}
	}
}
