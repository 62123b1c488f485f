package valkey_test

import (
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

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
	if _, err := root.Do("ACL", "SETUSER", w.server.Access().User, "-client|list"); err != nil {
		t.Fatal(err)
	}
	if f := facts("mine"); f.Connections != nil {
		t.Errorf("connections %d, which nobody may count", *f.Connections)
	}
}
