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
	functions := w.p
	w.p = w.pooled(w.server.Access(), 8)
	w.provision("mine")
	w.provision("theirs")
	attacker := w.bind("mine", "a", "")
	w.bind("mine", "quiet", "")
	w.crowd(attacker)

	for range 20 {
		b := w.binding("mine", "a")
		_, err := functions.Unbind(t.Context(), b)
		trouble, ok := errors.AsType[*target.Trouble](err)
		if !ok || trouble.Kind != target.Connections || !strings.Contains(trouble.Message, "CLIENT KILL") {
			t.Fatalf("without a connection: %v, want the trouble %q", err, target.Connections)
		}
	}
	w.bind("theirs", "b", "") // nobody can log in with it yet
	if page, _, err := w.p.List(t.Context(), ""); err != nil || len(page) != 5 {
		t.Errorf("it lists %v: %v", page, err)
	}
	w.unbind("mine", "a")
	w.login(w.bind("theirs", "c", ""))
	if _, _, err := functions.Survey(t.Context(), hosted.DefaultTarget); err != nil {
		t.Errorf("after the unbind: %v", err)
	}
	w.deprovision("mine")
	w.deprovision("theirs")
}

// The connection that is kept opens itself anew when it was cut, and ends with the provider.
func TestTheKeptConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.p = w.pooled(w.server.Access(), 8)
	step, end := context.WithCancel(t.Context())
	if _, _, err := w.p.Survey(step, hosted.DefaultTarget); err != nil {
		t.Fatal(err)
	}
	end()
	w.provision("i")
	w.login(w.bind("i", "b", ""))
	root := w.server.Root(t)
	mine := func() int { return strings.Count(must(t, root, "CLIENT", "LIST").(string), "name=longshore ") }
	if n := mine(); n != 1 {
		t.Errorf("the broker has %d connections, want one", n)
	}
	must(t, root, "CLIENT", "KILL", "USER", w.server.Access().User)
	w.unbind("i", "b")
	w.deprovision("i")
	if n := mine(); n != 1 {
		t.Errorf("after it was cut, the broker has %d connections, want one", n)
	}
	w.p.Close()
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
			w.provision("i")
			w.provision("theirs")
			attacker, neighbour := w.bind("i", "a", ""), w.bind("theirs", "b", "")
			greedy, session := w.login(attacker), w.login(neighbour)
			for range 100 {
				must(t, greedy, append([]string{"RPUSH", attacker.prefix + "l"}, slices.Repeat([]string{strings.Repeat("x",
					1000)}, 10)...)...)
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
			w.unbind("i", "a")
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
	w.provision("mine")
	w.provision("theirs")
	facts := func(id string) provider.Facts {
		t.Helper()
		f, err := w.p.Describe(t.Context(), w.instance(id))
		if err != nil || !strings.HasPrefix(f.Engine, "Valkey 9.") || f.Address == "" {
			t.Fatalf("facts %+v, error %v", f, err)
		}
		return f
	}
	one, two := w.bind("mine", "one", ""), w.bind("theirs", "two", "")
	w.login(one)
	w.login(one)
	stranger := w.login(two)
	for _, name := range []string{"user=" + one.user, "x\tuser=" + one.user} {
		_, _ = stranger.Do("CLIENT", "SETNAME", name) // refused, or counted for nobody
	}
	if f := facts("mine"); f.Connections == nil || *f.Connections != 2 {
		t.Errorf("two sessions of its bindings: %v", f.Connections)
	}
	if f := facts("theirs"); f.Connections == nil || *f.Connections != 1 {
		t.Errorf("one session of its bindings: %v", f.Connections)
	}
	root := w.server.Root(t)
	expect.Get(root.Do("ACL", "SETUSER", w.server.Access().User, "-client|list"))(t)
	if f := facts("mine"); f.Connections != nil {
		t.Errorf("connections %d, which nobody may count", *f.Connections)
	}
}
