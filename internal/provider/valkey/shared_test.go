package valkey_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/valkey/valkeytest"
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
		trouble, ok := errors.AsType[*provider.Trouble](err)
		if !ok || trouble.Kind != provider.TroubleConnections || !strings.Contains(trouble.Message, "CLIENT KILL") {
			t.Fatalf("without a connection: %v, want the trouble %q", err, provider.TroubleConnections)
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

// The connection that is kept opens itself anew when it was cut, and ends with the
// provider.
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
	for mine() > 0 { // the server sees it when it sees it
	}
}
