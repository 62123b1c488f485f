package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/expect"
)

// described is the command line, to be looked at.
func described() *cobra.Command {
	return newRoot(func(string) string { return "" }, io.Discard, io.Discard)
}

// idle is the command line with commands that do nothing; did names the one that was called.
func idle() (root *cobra.Command, did *string) {
	root, did = described(), new(string)
	everywhere(root, func(c *cobra.Command) {
		if c.RunE != nil && !c.HasSubCommands() && c.Name() != "help" {
			c.RunE = func(c *cobra.Command, args []string) error {
				*did = strings.Join(append([]string{nameOf(c)}, args...), " ")
				return nil
			}
		}
	})
	return root, did
}

// A command line that cannot be understood ends with status 2, and says what to do next.
func TestUsageErrorsSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		says []string
	}{
		"Nothing":     {"", []string{"longshore serve", "longshore --help"}},
		"Command":     {"frobnicate --data x", []string{`"frobnicate"`, "longshore --help"}},
		"CommandTypo": {"serv", []string{"Did you mean this?", "\tserve\n"}},
		"Flag":        {"serve --frobnicate", []string{"--frobnicate", "longshore serve --help"}},
		"FlagTypo": {"platform rotate default --overlapp 1h",
			[]string{"did you mean --overlap?", "longshore platform rotate --help"}},
		"FlagOfNone":    {"--frobnicate", []string{"--frobnicate", "longshore --help"}},
		"OneHyphenTypo": {"check URL -usrname x", []string{"did you mean --username?"}},
		"NoValue":       {"serve --data", []string{"--data needs a value"}},
		"WrongValue": {"platform rotate default --overlap soon",
			[]string{"soon", "--overlap", "longshore platform rotate --help"}},
		"GroupAlone":     {"platform", []string{"add, list, oidc, remove, rotate, signon", "longshore platform --help"}},
		"GroupCommand":   {"reaper dance --fast", []string{`"dance"`, "report, resume"}},
		"Surplus":        {"version now", []string{`does not take "now"`}},
		"Missing":        {"retry", []string{"TOKEN", "`longshore operations -o wide`"}},
		"NoMessage":      {"settle x --yes", []string{"--failed", "longshore settle --help"}},
		"NoUser":         {"forget --yes", []string{"USER", "longshore forget --help"}},
		"NegativeLast":   {"reaper report --last -3", []string{"--last is negative"}},
		"HelpOfNothing":  {"help frobnicate", []string{`"frobnicate"`}},
		"HelpOfNoMember": {"help platform rename", []string{`"rename"`}},
		// Before it is seen that there is no data folder: an empty list would say that nothing is in the state.
		"State": {"instances --state faild", []string{`--state does not take "faild": give running, failed, creating, `}},
		"Shell": {"completion tcsh", []string{`"tcsh"`, "bash, fish, powershell, zsh"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, out, diagnostics := called(t, environment, strings.Fields(c.args)...)
			if status != 2 || out != "" {
				t.Errorf("exit status %d, and on the output %q", status, out)
			}
			has(t, diagnostics, append(c.says, "longshore: ", "See `longshore")...)
		})
	}
}

// A password on the command line or in the environment is in no message and in no help, however it was mistyped.
func TestUsageTellsNoSecret(t *testing.T) {
	const secret = "hunter2"
	env := map[string]string{app.EnvUsername: "someone-" + secret, app.EnvPassword: secret}
	calls := [][]string{{"check", "-p" + secret}, {"check", "-pasword=" + secret}, {"check", "--pasword=" + secret},
		{"check", "--pasword", secret}, {"check", "--password", secret}, {"try", "--parameters", `{"password":"` + secret, "URL"},
		{"check", "URL", "http://u:" + secret + "@x"}, {"try", "--password=" + secret, "--plann", "x", "URL"},
		{"try", "-password", secret, "--timeout", "0s", "URL"}, {"serve", "-x" + secret}}
	everywhere(described(), func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		calls = append(calls, append(path, "--help"), append([]string{"help"}, path...))
	})
	for _, args := range calls {
		_, out, diagnostics := called(t, env, args...)
		expect.Never(t, fmt.Sprintf("longshore %q", args), out+diagnostics, secret)
	}
}

// Long flags have two hyphens: one is refused, and the flag that was meant is named.
func TestFlagsOfOneHyphen(t *testing.T) {
	for line, meant := range map[string]string{
		"check -list -only ^P":    "--list",
		"serve -data x":           "--data",
		"try URL -password=x":     "--password",
		"reaper report -last 3":   "--last",
		"platform rotate x -now":  "--now",
		"instances -stack=Broker": "--stack",
	} {
		fails(t, 2, "did you mean "+meant+"?", strings.Fields(line)...)
	}
	status, out, diagnostics := called(t, nil, "check", "--list", "--only", "^PROV-08", "--level=MUST")
	if status != 0 || !strings.Contains(out, "PROV-08/space") || strings.Contains(out, "HDR-01") {
		t.Errorf("exit status %d:\n%s%s", status, out, diagnostics)
	}
	fails(t, 1, "is not a data folder", "reaper", "--last", "3", "report", "--data", t.TempDir())
	fails(t, 1, "is not a data folder", "instances", "--data", t.TempDir())
}

// A full is a file on a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A command fails if anything that it prints cannot be written, and says so.
func TestWhatCannotBePrintedIsSaid(t *testing.T) {
	dir := startedOnce(t)
	for _, line := range []string{"version", "check --list", "fsck --data " + dir, "platform list --data " + dir,
		"platform list -o json --data " + dir, "upgrades --data " + dir} {
		var said strings.Builder
		status := run(t.Context(), strings.Fields(line), func(string) string { return "" }, full{}, &said)
		if status != 1 || said.String() != "longshore: no space left on device\n" {
			t.Errorf("%s: exit status %d: %s", line, status, &said)
		}
	}
}

func TestEveryCommandAndFlagIsDescribed(t *testing.T) {
	_, flag, _ := called(t, nil, "--version")
	_, command, _ := called(t, nil, "version")
	if flag != command || !strings.HasPrefix(flag, "longshore ") {
		t.Errorf("the version is %q and %q", flag, command)
	}
	everywhere(described(), func(c *cobra.Command) {
		status, out, diagnostics := called(t, nil, append(strings.Fields(c.CommandPath())[1:], "--help")...)
		if c.Short == "" || status != 0 || diagnostics != "" || !strings.Contains(out, c.CommandPath()) {
			t.Errorf("%s: %q, exit status %d:\n%s%s", c.CommandPath(), c.Short, status, out, diagnostics)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || !strings.Contains(out, "--"+f.Name) {
				t.Errorf("%s --%s is not described", c.CommandPath(), f.Name)
			}
			if kind := f.Value.Type(); kind == "string" && !strings.Contains(f.Usage, "`") {
				t.Errorf("%s --%s does not say what it takes", c.CommandPath(), f.Name)
			}
		})
	})
}

// A shell asks what could come next: nothing is opened, asked or made for it.
func TestCompletionStartsNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if status, out, diagnostics := called(t, nil, "completion", shell); status != 0 || !strings.Contains(out, "longshore") ||
			diagnostics != "" {
			t.Errorf("%s: exit status %d:\n%s", shell, status, diagnostics)
		}
	}
	ask := func(args ...string) string {
		t.Helper()
		root, did := idle()
		var out strings.Builder
		root.SetOut(&out)
		root.SetArgs(append([]string{"__complete"}, args...))
		if err := root.Execute(); err != nil || *did != "" {
			t.Errorf("completing %q: %v, and it did %q", args, err, *did)
		}
		return out.String()
	}
	everywhere(described(), func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		ask(append(path, "")...)
		c.Flags().VisitAll(func(f *pflag.Flag) { ask(append(path, "--"+f.Name, "")...) })
	})
	has(t, ask("platform", ""), "add\t", "rotate\t")
	has(t, ask("reb"), "rebuild\t")
	has(t, ask("check", "-o", ""), "text\n", "junit\n")
	has(t, ask("help", "plat"), "platform\t")
	has(t, ask("retry", ""), ":4\n")            // no names of files
	has(t, ask("platform", "oidc", ""), ":0\n") // names of files
	expect.Same(t, "it left", 0, len(expect.Get(os.ReadDir("."))(t)))
}

// A broker's URL is asked for as it is: with a scheme, and without credentials, which are in no message.
func TestBrokerURLs(t *testing.T) {
	for url, says := range map[string]string{
		"broker.example.com":            "has no scheme: give https://broker.example.com",
		"localhost:8080":                "has no scheme: give https://localhost:8080, or http://localhost:8080",
		"127.0.0.1:8080/base":           "has no scheme",
		"ftp://broker.example.com":      "neither http:// nor https://",
		"https://":                      "has no host",
		"https://:8080":                 "has no host",
		"https://u:hunter2@example.com": "--username and LONGSHORE_PASSWORD",
		"u:hunter2@example.com":         "--username and LONGSHORE_PASSWORD",
		"http://u:hunter2@[::1":         "cannot be parsed",
		"http://example.com/?a=hunter2": "no query",
		"http://example.com?":           "no query",
		"":                              "is empty",
	} {
		for _, command := range []string{"check", "try"} {
			status, out, diagnostics := called(t, environment, command, url)
			if status != 2 || !strings.Contains(diagnostics, says) ||
				!strings.Contains(diagnostics, "longshore "+command+" --help") {
				t.Errorf("%s %q: exit status %d, and no %q:\n%s%s", command, url, status, says, out, diagnostics)
			}
			expect.Never(t, command+" "+url, out+diagnostics, "hunter2")
		}
	}
	for _, url := range []string{"http://127.0.0.1:1", "https://broker.example.com/base/", "http://[::1]:8080",
		"HTTP://example.com"} {
		expect.OK(t, checkURL(url), url, "is refused:")
	}
}
