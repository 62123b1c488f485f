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

// provide makes a provider of a broker, which may keep so many connections.
func provide(t testing.TB, broker string, clock *providertest.Clock, a hosted.Access, pool int) *valkey.Provider {
	p := valkey.New(valkey.Options{
		Broker: broker, Accesses: hosted.Accesses{hosted.DefaultTarget: a}, Now: clock.Now, Log: slog.New(slog.DiscardHandler), Pool: pool,
	})
	t.Cleanup(p.Close)
	return p
}

func harness(t *testing.T, pool int) *providertest.Harness {
	s, other := valkeytest.Start(t, "one"), valkeytest.Start(t, "another")
	clock := providertest.NewClock(start)
	broker := "broker-" + rand.Text()
	calls := &providertest.Calls{}
	open := func(t testing.TB, broker string, at *valkeytest.Server) (provider.Provider, provider.Inventory) {
		p := provide(t, broker, clock, at.Access(), pool)
		return failing{providertest.Failing(p, true), p}, p
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
		Look:  func(t testing.TB, at provider.Tags) string { return look(t, root, at) },
		Opens: func(t testing.TB, g *provider.Grant) bool { return opens(t, s, g) },
		Fill: func(t testing.TB, g *provider.Grant) {
			a := appOf(g)
			must(t, a.login(t, s), "SET", a.prefix+"kept", "it")
		},
		Holds: func(t testing.TB, g *provider.Grant) bool {
			a := appOf(g)
			return must(t, a.login(t, s), "GET", a.prefix+"kept") == "it"
		},
		Secrets:   func(t testing.TB, at provider.Tags) int { return secrets(t, root, at) },
		Falter:    calls.Arm,
		Open:      func(t testing.TB, broker string) (provider.Provider, provider.Inventory) { return open(t, broker, s) },
		Elsewhere: func(t testing.TB) (provider.Provider, provider.Inventory) { return open(t, broker, other) },
	}
	h.Provider, h.Inventory = open(t, broker, s)
	valkey.Through(t, h.Inventory.(*valkey.Provider), calls)
	return h
}

// must makes a command that has to be answered without an error.
func must(t testing.TB, s *valkeytest.Session, command ...string) any {
	t.Helper()
	return expect.Get(s.Do(command...))(t, command[0])
}

// about tells of the user that is there for the tags; nil for none.
func about(t testing.TB, root *valkeytest.Session, at provider.Tags) []any {
	t.Helper()
	if !slices.Contains(must(t, root, "ACL", "USERS").([]any), any(valkey.Name(at))) {
		return nil
	}
	return must(t, root, "ACL", "GETUSER", valkey.Name(at)).([]any)
}

// look tells of the user, and of the keys of an instance.
func look(t testing.TB, root *valkeytest.Session, at provider.Tags) (all string) {
	t.Helper()
	if user := about(t, root, at); user != nil {
		all = fmt.Sprintln(user)
	}
	names := valkey.Names(at)
	for _, key := range must(t, root, "KEYS", "{"+names[len(names)-1]+"}:*").([]any) {
		all += fmt.Sprintln(key)
	}
	return all
}

// secrets counts the passwords that the server accepts of the user.
func secrets(t testing.TB, root *valkeytest.Session, at provider.Tags) int {
	t.Helper()
	if user := about(t, root, at); user != nil && slices.Contains(user[1].([]any), any("on")) {
		return len(user[3].([]any))
	}
	return 0
}

// An app is what a binding gives one.
type app struct {
	provider.Binding
	user, password, prefix string
}

func appOf(g *provider.Grant) app {
	c := g.Credentials
	return app{user: c["username"].(string), password: c["password"].(string), prefix: c["prefix"].(string)}
}

func (a app) login(t testing.TB, s *valkeytest.Server) *valkeytest.Session {
	t.Helper()
	return expect.Get(s.Login(t, a.user, a.password))(t)
}

// opens reports whether an app can use the credentials.
func opens(t testing.TB, s *valkeytest.Server, g *provider.Grant) bool {
	t.Helper()
	a := appOf(g)
	session, err := s.Login(t, a.user, a.password)
	if err != nil {
		return false
	}
	key := a.prefix + "key"
	must(t, session, "SET", key, "value")
	return must(t, session, "GET", key) == "value"
}

// failing is the provider with operations that fail for good, and its facts.
type failing struct {
	providertest.Through
	provider.Describer
}

// The broker's login in the guide is the one that tests have.
func TestTheGuideMakesTheLogin(t *testing.T) {
	guide := expect.Get(os.ReadFile("../../../docs/valkey.md"))(t)
	expect.Says(t, "docs/valkey.md", strings.ReplaceAll(string(guide), "\\\n    ", ""), valkeytest.BrokerRules)
}
