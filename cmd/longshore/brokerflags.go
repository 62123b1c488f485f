package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/kit/conformance"
)

// brokerFlags are the flags shared by the commands that talk to any broker.
type brokerFlags struct {
	getenv  func(string) string
	target  conformance.Target
	options conformance.Options
	version string
}

// flags adds the flags. Credentials from the environment must not be their defaults: defaults are printed.
func (g *brokerFlags) flags(c *cobra.Command, newest int) {
	f, o := c.Flags(), &g.options
	f.StringVar(&g.target.Username, "username", "", "`USER` that the platform logs in as; "+app.EnvUsername+" unless given")
	f.StringVar(&g.target.Password, "password", "",
		"`PASSWORD` of the platform; "+app.EnvPassword+" unless given, which other users of the machine do not see")
	f.StringVar(&o.Service, "service", "", "`NAME` or id of the service")
	f.StringVar(&o.Plan, "plan", "", "`NAME` or id of the plan")
	f.Var((*object)(&o.Parameters), "parameters", "`JSON` object that every provision is given")
	f.Var((*object)(&o.BindParameters), "bind-parameters", "`JSON` object that every bind is given")
	f.StringVar(&g.version, "api-version", "2."+strconv.Itoa(newest), "`VERSION` of the API to speak, from 2.9")
	f.DurationVar(&o.OperationTimeout, "timeout", 10*time.Minute, "`DURATION` to wait for one operation")
	c.PreRun = func(*cobra.Command, []string) {
		if !f.Changed("username") {
			g.target.Username = g.getenv(app.EnvUsername)
		}
		if !f.Changed("password") {
			g.target.Password = g.getenv(app.EnvPassword)
		}
	}
}

// An object is the value of a flag that takes a JSON object; nil if the flag is not given. No
// message shows the value: it may contain a password.
type object map[string]any

// String implements pflag.Value.
func (o object) String() string { return "" }

// Type implements pflag.Value.
func (o object) Type() string { return "string" }

// Set implements pflag.Value.
func (o *object) Set(text string) error {
	*o = nil
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), o)
}

// broker takes the URL that a command was given. It refuses to if there are no credentials.
func (g *brokerFlags) broker(command, url string) error {
	if g.target.Username == "" || g.target.Password == "" {
		return misused("%s needs --username and --password, or %s and %s", command,
			app.EnvUsername, app.EnvPassword)
	}
	g.target.URL = url
	return checkURL(url)
}

// checkURL refuses a text that is not the URL of a broker. The URL must not contain credentials:
// it is printed, and other users of the machine see it.
func checkURL(text string) error {
	if text == "" {
		return misused("the URL is empty: give one such as https://broker.example.com")
	}
	if !strings.Contains(text, "://") && !strings.ContainsAny(text, "@?#") {
		return misused("the URL %q has no scheme: give https://%[1]s, or http://%[1]s if the broker has no TLS",
			text)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil: // whose text may contain a password
		return misused("the broker's URL cannot be parsed: give one such as https://broker.example.com")
	case u.User != nil || !strings.Contains(text, "://"):
		return misused("the broker's URL is its address alone, such as https://broker.example.com: " +
			"give the credentials with --username and " + app.EnvPassword)
	case u.Scheme != "http" && u.Scheme != "https":
		return misused("the URL %q begins with neither http:// nor https://", text)
	case u.Hostname() == "":
		return misused("the URL %q has no host: give one such as https://broker.example.com", text)
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return misused("the broker's URL ends before /v2, and has no query: give one such as https://broker.example.com/path")
	}
	return nil
}

// oneURL makes a command take the URL of a broker; with --list, the URL may be missing. No message
// shows the URL, which may contain a password.
func oneURL(c *cobra.Command, args []string) error {
	list, _ := c.Flags().GetBool("list")
	switch {
	case len(args) == 0 && !list:
		return fmt.Errorf("%s needs the URL of a broker, such as https://broker.example.com", nameOf(c))
	case len(args) > 1:
		return fmt.Errorf("%s takes one URL, not %d", nameOf(c), len(args))
	}
	return nil
}

// minor returns the minor version of the API to speak, at most newest.
func (g *brokerFlags) minor(newest int) (int, error) {
	digits, isTwo := strings.CutPrefix(g.version, "2.")
	minor, err := strconv.Atoi(digits)
	if !isTwo || err != nil || minor < conformance.OldestMinor || minor > newest {
		return 0, misused("--api-version is 2.%d to 2.%d, not %q", conformance.OldestMinor, newest, g.version)
	}
	return minor, nil
}
