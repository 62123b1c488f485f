package valkey_test

import (
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/valkey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// A server whose file of users is put back as it was has the user of a binding that was removed since.
func TestRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.Restored(func(g *provider.Grant) bool { return opens(t, w.server, g) }, func() func() {
		file := w.server.Kept(t)
		return func() { w.server.PutBack(t, file) }
	})
}

// A broker that shares the server, and changes it before and after the file was put back,
// hides from no other one that it was.
func TestRestoredForOneOfTwoBrokers(t *testing.T) {
	t.Parallel()
	s := valkeytest.New(t)
	w, other := newWorld(t, s), newWorld(t, s)
	in, its := w.Provisioned("i"), other.Provisioned("i")
	removed := w.bound(in, "removed", "")
	file := s.Kept(t)
	w.Unbind(removed.Binding)
	known := w.Raise()
	s.PutBack(t, file)
	w.login(removed) // else nothing is shown
	for _, id := range []string{"a", "b", "c"} {
		other.bound(its, id, "")
		other.Raise()
	}
	if now := w.At(); now.Follows(known) {
		t.Errorf("another broker's changes have it be at %v, after %v", now, known)
	}
}

// A command that comes late does not lower the epoch. Of two brokers that raise it at
// once, none is as if it had been alone: until one takes its mark back, it is at neither.
func TestEpochsOfTwoAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.Provisioned("i")
	w.Raise()
	at := w.Raise()
	raised := func(count int64, mark string) {
		name := fmt.Sprintf("longshore.%s.%d.%s", hosted.Name("", provider.Tags{Broker: w.Broker}), count, mark)
		must(t, w.server.Root(t), "ACL", "SETUSER", name, "reset", "off")
	}
	raised(1, "late")
	expect.Same(t, "after what came late, it is at", at, w.At())
	// Another broker raises it between a look and the change.
	raised(at.Count+1, "theirs")
	theirs := target.Epoch{Count: at.Count + 1, Mark: "theirs"}
	ours := target.Epoch{Count: at.Count + 1, Mark: "ours"}
	if did, err := valkey.AdvanceBlindly(t.Context(), w.P, w.Target, ours); err != nil || did {
		t.Errorf("of two at once, the second says that it raised the epoch (%t): %v", did, err)
	}
	expect.Same(t, "it is at", theirs, w.At())
	raised(at.Count+1, "ours")
	if got := w.At(); got == theirs || got.Mark == "ours" || got.Count != theirs.Count {
		t.Errorf("with two marks it is at %v", got)
	}
	w.Raise()
}
