package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/spf13/pflag"

	"github.com/longshore/longshore/internal/test/expect"
)

// Every flag of serve, and every variable that its help names, is on the page of settings.
func TestSettingsPageIsComplete(t *testing.T) {
	page := expect.Get(os.ReadFile(repository + "/docs/settings.md"))(t)
	serve, _, err := described().Find([]string{"serve"})
	expect.OK(t, err)
	names := regexp.MustCompile(`LONGSHORE_[A-Z_]+`).FindAllString(serve.Long, -1)
	serve.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			names = append(names, "--"+f.Name)
		}
	})
	if len(names) < 20 {
		t.Errorf("serve has only the settings %v", names)
	}
	for _, name := range names {
		if !regexp.MustCompile("`" + name + `\b`).Match(page) {
			t.Errorf("docs/settings.md does not have %s", name)
		}
	}
}

// The service unit that a page shows starts the program by a command line that is judged.
func TestTheServiceUnitIsJudged(t *testing.T) {
	page := expect.Get(os.ReadFile(repository + "/docs/one-machine.md"))(t)
	unit := regexp.MustCompile("(?ms)^```ini\n.*?^```$").FindString(string(page))
	if units := inText("page", unit); len(units) != 1 || !units[0].whole {
		t.Errorf("the page's unit starts the program by %v", units)
	}
	for _, m := range inText("page", "```ini\nExecStart=/usr/local/bin/longshore serve --dta x\n```\n") {
		if parses(m) == nil {
			t.Errorf("%q is taken for right", m.line)
		}
	}
}
