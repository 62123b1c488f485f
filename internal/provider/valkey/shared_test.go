package valkey_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// crowd has an app hold all connections that the server has left.
func (w *world) crowd(a app) {
	w.t.Helper()
	for range 1000 {
		if _, err := w.server.Login(w.t, a.user, a.password); err != nil {
			return // those before stay open until the test ends
		}
	}
	w.t.Fatal("the connections are not used up")
}

// One tenant holds all connections that the server has. A broker that keeps one goes on,
// and shuts it out; one that keeps none tells the operator what to do.
func TestConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t, "maxclients 20"))
	functions := w.P
	w.keeps()
	mine, theirs := w.Provisioned("mine"), w.Provisioned("theirs")
	attacker := w.bound(mine, "a", "")
	w.bound(mine, "quiet", "")
	w.crowd(attacker)

	for range 20 {
		_, err := functions.Unbind(t.Context(), attacker.Binding)
		trouble, ok := errors.AsType[*target.Trouble](err)
		if !ok || trouble.Kind != target.Connections || !strings.Contains(trouble.Message, "CLIENT KILL") {
			t.Fatalf("without a connection: %v, want the trouble %q", err, target.Connections)
		}
	}
	w.bound(theirs, "b", "") // nobody can log in with it yet
	if held := w.Held(); len(held) != 5 {
		t.Errorf("it lists %v", held)
	}
	w.Unbind(attacker.Binding)
	w.login(w.bound(theirs, "c", ""))
	if _, _, err := functions.Survey(t.Context(), hosted.DefaultTarget); err != nil {
		t.Errorf("after the unbind: %v", err)
	}
	w.Deprovision(mine)
	w.Deprovision(theirs)
}

// The connection that is kept opens itself anew when it was cut, and ends with the provider.
func TestTheKeptConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.keeps()
	step, end := context.WithCancel(t.Context())
	_, _, err := w.P.Survey(step, hosted.DefaultTarget)
	expect.OK(t, err)
	end()
	in := w.Instance("i")
	w.Provision(in)
	a := w.bound(in, "b", "")
	w.login(a)
	root := w.server.Root(t)
	mine := func() int { return strings.Count(must(t, root, "CLIENT", "LIST").(string), "name=longshore ") }
	expect.Same(t, "connections of the broker", 1, mine())
	must(t, root, "CLIENT", "KILL", "USER", w.server.Access().User)
	w.Unbind(a.Binding)
	w.Deprovision(in)
	expect.Same(t, "connections of the broker, after its one was cut", 1, mine())
	w.P.Close()
	for n := 0; mine() > 0; n++ { // the server sees it when it comes to it
		if n == 10000 {
			t.Fatal("the connection outlives the provider")
		}
	}
}

// One tenant asks for much and reads none of it: the answers fill the server's memory, so that nobody can write. Its unbind
// frees them. Where the server bounds the memory of clients, it ends that session itself.
func TestAnswersThatNobodyReads(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings []string
		ends     bool
	}{
		"Usual":   {nil, false},
		"Bounded": {[]string{"maxmemory-clients 8mb"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, valkeytest.New(t, append(c.settings, "maxmemory 48mb", "maxmemory-policy noeviction")...))
			attacker, neighbour := w.bound(w.Provisioned("i"), "a", ""), w.bound(w.Provisioned("theirs"), "b", "")
			greedy, session := w.login(attacker), w.login(neighbour)
			for range 100 {
				ten := slices.Repeat([]string{strings.Repeat("x", 1000)}, 10)
				must(t, greedy, append([]string{"RPUSH", attacker.prefix + "l"}, ten...)...)
			}
			refused := ""
			for n := 0; n < 200 && refused == ""; n++ {
				if greedy.Send("LRANGE", attacker.prefix+"l", "0", "-1") != nil {
					break // the server has ended it
				}
				refused = refusedFor(session, "SET", neighbour.prefix+"k", "v")
			}
			if want := map[bool]string{false: "OOM"}[c.ends]; refused != want {
				t.Fatalf("a neighbour's write answered %q, want %q", refused, want)
			}
			w.Unbind(attacker.Binding)
			got := "OOM"
			for n := 0; got == "OOM" && n < 10000; n++ { // the server frees what was the session's when it comes to it
				got = refusedFor(session, "SET", neighbour.prefix+"k", "v")
			}
			expect.Same(t, "after the unbind a neighbour's write answered", "", got)
		})
	}
}

// Facts count the sessions of a tenant's own bindings, whatever names another tenant gives its
// sessions; a login that may not list clients tells the rest.
func TestFactsAreOfOneInstance(t *testing.T) {
	w := newWorld(t, valkeytest.New(t))
	mine, theirs := w.Provisioned("mine"), w.Provisioned("theirs")
	facts := func(in provider.Instance) provider.Facts {
		t.Helper()
		f, err := w.P.Describe(t.Context(), in)
		if err != nil || !strings.HasPrefix(f.Engine, "Valkey 9.") || f.Address == "" {
			t.Fatalf("facts %+v, error %v", f, err)
		}
		return f
	}
	one, two := w.bound(mine, "one", ""), w.bound(theirs, "two", "")
	w.login(one)
	w.login(one)
	stranger := w.login(two)
	for _, name := range []string{"user=" + one.user, "x\tuser=" + one.user} {
		_, _ = stranger.Do("CLIENT", "SETNAME", name) // refused, or counted for nobody
	}
	expect.Same(t, "sessions, where its binding has two", new(int64(2)), facts(mine).Connections)
	expect.Same(t, "sessions, where its binding has one", new(int64(1)), facts(theirs).Connections)
	root := w.server.Root(t)
	expect.Get(root.Do("ACL", "SETUSER", w.server.Access().User, "-client|list"))(t)
	expect.Same(t, "sessions that may not be counted", nil, facts(mine).Connections)
}
