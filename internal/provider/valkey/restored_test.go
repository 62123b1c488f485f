package valkey_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/valkey"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// at is where the server is now.
func (w *world) at() target.Epoch {
	w.t.Helper()
	return providertest.At(w.t, w.p, w.target)
}

// raise has the server be at a later epoch.
func (w *world) raise() target.Epoch {
	w.t.Helper()
	return providertest.Raise(w.t, w.p, w.target)
}

// A server whose file of users is put back as it was has the user of a binding that was
// removed since. Nothing is changed on it until each such user is locked.
func TestRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.provision("i")
	removed, kept := w.bind("i", "removed", ""), w.bind("i", "kept", "")
	file := w.server.Kept(t)
	w.unbind("i", "removed")
	known := w.raise()
	w.server.PutBack(t, file)
	w.login(removed) // else nothing is shown
	in, b := w.instance("i"), w.binding("i", "kept")
	in.Epoch, b.Instance.Epoch = known, known
	page, _, err := w.p.Holdings(t.Context(), hosted.DefaultTarget, "")
	if err != nil || len(page) != 3 {
		t.Fatalf("it lists %+v: %v", page, err)
	}
	first := page[0]
	first.Epoch = known
	providertest.RefusesAll(t, w.p, in, b, b)
	providertest.Troubled(t, "Adopt", target.Restored, w.p.Adopt(t.Context(), first, first.Tags))
	providertest.Troubled(t, "Quarantine", target.Restored, w.p.Quarantine(t.Context(), first))
	next := providertest.GoesOn(t, w.p, w.target, known)
	for _, h := range page {
		if h.Epoch = next; h.Tags.Binding == "removed" {
			if err := w.p.Quarantine(t.Context(), h); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := w.server.Login(t, removed.user, removed.password); err == nil {
		t.Error("a user that was locked logs in")
	}
	w.login(kept)
	in.Epoch = next
	w.drive(&in, func() (provider.Status, error) { return w.p.Deprovision(t.Context(), in) })
}

// A broker that ends in the middle of a call blames no server, and rings no alarm.
func TestCanceledIsNoTrouble(t *testing.T) {
	t.Parallel()
	var trouble *target.Trouble
	err := valkey.Explain("t", &net.OpError{Op: "dial", Err: context.Canceled})
	if !errors.Is(err, context.Canceled) || errors.As(err, &trouble) {
		t.Errorf("a call that was canceled is %v", err)
	}
}

// A broker that shares the server, and changes it before and after the file was put back,
// hides from no other one that it was.
func TestRestoredForOneOfTwoBrokers(t *testing.T) {
	t.Parallel()
	s := valkeytest.New(t)
	w, other := newWorld(t, s), newWorld(t, s)
	w.provision("i")
	other.provision("i")
	removed := w.bind("i", "removed", "")
	file := s.Kept(t)
	w.unbind("i", "removed")
	known := w.raise()
	s.PutBack(t, file)
	w.login(removed) // else nothing is shown
	for _, id := range []string{"a", "b", "c"} {
		other.bind("i", id, "")
		other.raise()
	}
	if now := w.at(); now.Follows(known) {
		t.Errorf("another broker's changes have it be at %v, after %v", now, known)
	}
}

// A command that comes late does not lower the epoch. Of two brokers that raise it at
// once, none is as if it had been alone: until one takes its mark back, it is at neither.
func TestEpochsOfTwoAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.provision("i")
	w.raise()
	at := w.raise()
	name := func(count int64, mark string) string {
		return fmt.Sprintf("longshore.%s.%d.%s", hosted.Name("", provider.Tags{Broker: w.broker}), count, mark)
	}
	must(t, w.server.Root(t), "ACL", "SETUSER", name(1, "late"), "reset", "off")
	if got := w.at(); got != at {
		t.Errorf("after what came late it is at %v, and was at %v", got, at)
	}
	// Another broker raises it between a look and the change.
	must(t, w.server.Root(t), "ACL", "SETUSER", name(at.Count+1, "theirs"), "reset", "off")
	theirs := target.Epoch{Count: at.Count + 1, Mark: "theirs"}
	ours := target.Epoch{Count: at.Count + 1, Mark: "ours"}
	if did, err := valkey.AdvanceBlindly(t.Context(), w.p, w.target, ours); err != nil || did {
		t.Errorf("of two at once, the second says that it raised the epoch (%t): %v", did, err)
	}
	expect.Same(t, "it is at", theirs, w.at())
	must(t, w.server.Root(t), "ACL", "SETUSER", name(at.Count+1, "ours"), "reset", "off")
	if got := w.at(); got == theirs || got.Mark == "ours" || got.Count != theirs.Count {
		t.Errorf("with two marks it is at %v", got)
	}
	w.raise()
}
