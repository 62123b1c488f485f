package valkey_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/valkey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// The provider passes the suite over a real server, with each of its commands
// going wrong in each way. It does not look at who waits: one mode is as good as both.
func TestSound(t *testing.T) {
	t.Parallel()
	providertest.RunOnce(t, factory(0))
}

// The race detector sees these: callers with connections of their own, and on one that they share.
func TestTwoCallers(t *testing.T) { providertest.RunTwoCallers(t, factory(0)) }

func TestTwoCallersOfOneConnection(t *testing.T) { providertest.RunTwoCallers(t, factory(8)) }

// start is when the suite begins.
var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// factory makes harnesses whose providers may keep so many connections.
func factory(pool int) func(*testing.T) *providertest.Harness {
	return func(t *testing.T) *providertest.Harness { return harness(t, pool) }
}

func harness(t *testing.T, pool int) *providertest.Harness {
	s, other := valkeytest.Start(t, "one"), valkeytest.Start(t, "another")
	clock := providertest.NewClock(start)
	broker := "broker-" + rand.Text()
	calls := &providertest.Calls{}
	open := func(t testing.TB, broker string, at *valkeytest.Server, through *providertest.Calls) (provider.Provider,
		provider.Inventory) {
		p := valkey.New(valkey.Options{
			Broker: broker, Accesses: hosted.Accesses{hosted.DefaultTarget: at.Access()}, Now: clock.Now, Log: slog.New(slog.DiscardHandler),
			Pool: pool,
		})
		t.Cleanup(p.Close)
		if through != nil {
			p.Through(t, through)
		}
		return failing{providertest.Failing{Provider: p, Late: true}, p}, p
	}
	root := s.Root(t)
	h := &providertest.Harness{
		Broker: broker, Clock: clock, PageSize: valkey.PageSize,
		Target:    provider.Target{Name: hosted.DefaultTarget},
		ServiceID: "service-1", PlanID: "plan-1", Settings: map[string]any{"fail": ""},
		Parameters: providertest.Note, Fail: providertest.FailBySetting,
		Plant: func(t testing.TB, at, owner provider.Tags) {
			rules := []string{"ACL", "SETUSER", valkey.Name(at), "reset", "off", "~planted"}
			if owner != (provider.Tags{}) {
				rules = append(rules, valkey.LabelRule(owner))
			}
			must(t, root, rules...)
			t.Cleanup(func() { must(t, root, "ACL", "DELUSER", valkey.Name(at)) })
		},
		Look:    func(t testing.TB, at provider.Tags) string { return look(t, root, at) },
		Opens:   func(t testing.TB, g *provider.Grant) bool { return opens(t, s, g) },
		Secrets: func(t testing.TB, at provider.Tags) int { return secrets(t, root, at) },
		Falter:  calls.Arm,
		Open: func(t testing.TB, broker string) (provider.Provider, provider.Inventory) {
			return open(t, broker, s, nil)
		},
		Elsewhere: func(t testing.TB) (provider.Provider, provider.Inventory) { return open(t, broker, other, nil) },
	}
	h.Provider, h.Inventory = open(t, broker, s, calls)
	return h
}

// must makes a command that has to be answered without an error.
func must(t testing.TB, s *valkeytest.Session, command ...string) any {
	t.Helper()
	return expect.Get(s.Do(command...))(t, command[0])
}

// users are the names of those that are there for the tags: none, or one.
func users(t testing.TB, root *valkeytest.Session, at provider.Tags) (names []string) {
	t.Helper()
	for _, one := range must(t, root, "ACL", "USERS").([]any) {
		if one.(string) == valkey.Name(at) {
			names = append(names, one.(string))
		}
	}
	return names
}

// look tells all of them.
func look(t testing.TB, root *valkeytest.Session, at provider.Tags) (all string) {
	t.Helper()
	for _, name := range users(t, root, at) {
		all += fmt.Sprintln(name, must(t, root, "ACL", "GETUSER", name))
	}
	return all
}

// secrets counts the passwords that the server accepts of them.
func secrets(t testing.TB, root *valkeytest.Session, at provider.Tags) (n int) {
	t.Helper()
	for _, name := range users(t, root, at) {
		if about := must(t, root, "ACL", "GETUSER", name).([]any); slices.Contains(about[1].([]any), any("on")) {
			n += len(about[3].([]any))
		}
	}
	return n
}

// opens reports whether an app can use the credentials.
func opens(t testing.TB, s *valkeytest.Server, g *provider.Grant) bool {
	t.Helper()
	session, err := s.Login(t, g.Credentials["username"].(string), g.Credentials["password"].(string))
	if err != nil {
		return false
	}
	key := g.Credentials["prefix"].(string) + "key"
	must(t, session, "SET", key, "value")
	return must(t, session, "GET", key) == "value"
}

// failing is the provider with operations that fail for good, and its facts.
type failing struct {
	providertest.Failing
	provider.Describer
}

// The broker's login in the guide is the one that tests have.
func TestTheGuideMakesTheLogin(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/valkey.md")
	if err != nil || !strings.Contains(strings.ReplaceAll(string(guide), "\\\n    ", ""), valkeytest.BrokerRules) {
		t.Errorf("docs/valkey.md lacks %q (error %v)", valkeytest.BrokerRules, err)
	}
}
