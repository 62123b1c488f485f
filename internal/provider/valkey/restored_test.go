package valkey_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/valkey"
	"github.com/longshore/longshore/internal/provider/valkey/valkeytest"
)

// at is where the server is now.
func (w *world) at() provider.Epoch {
	w.t.Helper()
	target, at, err := w.p.Survey(w.t.Context(), hosted.DefaultTarget)
	if err != nil || target != w.target {
		w.t.Fatalf("it says that it is %v: %v", target, err)
	}
	return at
}

// A server whose file of users is put back as it was has the user of a binding that was
// removed since. Nothing is changed on it until each such user is locked.
func TestRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.provision("i")
	removed, kept := w.bind("i", "removed", ""), w.bind("i", "kept", "")
	file := w.server.Kept(t)
	w.clock.Advance(time.Minute)
	w.unbind("i", "removed")
	known := w.at()
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
	for what, step := range map[string]func() error{
		"Provision":   func() error { _, err := w.p.Provision(t.Context(), in); return err },
		"Update":      func() error { _, err := w.p.Update(t.Context(), in); return err },
		"Deprovision": func() error { _, err := w.p.Deprovision(t.Context(), in); return err },
		"Bind":        func() error { _, err := w.p.Bind(t.Context(), b); return err },
		"Unbind":      func() error { _, err := w.p.Unbind(t.Context(), b); return err },
		"Quarantine":  func() error { return w.p.Quarantine(t.Context(), first) },
	} {
		err := step()
		if trouble, ok := errors.AsType[*provider.Trouble](err); !ok || trouble.Kind != provider.TroubleRestored {
			t.Errorf("%s: %v, want the trouble %q", what, err, provider.TroubleRestored)
		}
	}
	now := w.at()
	if now.Follows(known) {
		t.Fatalf("it is at %v, and has been at %v", now, known)
	}
	if _, err := w.p.Advance(t.Context(), w.target, known, known); err == nil {
		t.Error("an epoch goes on from where it is not")
	}
	next, err := w.p.Advance(t.Context(), w.target, now, known)
	if err != nil || !next.Follows(known) || next.Count <= known.Count || w.at() != next {
		t.Errorf("it goes on as %v, and is at %v: %v", next, w.at(), err)
	}
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
	var trouble *provider.Trouble
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
	w.clock.Advance(time.Minute)
	w.unbind("i", "removed")
	known := w.at()
	s.PutBack(t, file)
	w.login(removed) // else nothing is shown
	for _, id := range []string{"a", "b", "c"} {
		other.clock.Advance(time.Minute)
		other.bind("i", id, "")
	}
	if now := w.at(); now.Follows(known) {
		t.Errorf("another broker's changes have it be at %v, after %v", now, known)
	}
}

// The epoch is raised by a change, and not by each, nor by a step that changes nothing;
// a command that comes late does not lower it.
func TestEpochsAreRaisedNowAndThen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, valkeytest.New(t))
	w.provision("i")
	first := w.at()
	w.bind("i", "b", "")
	if first.Count != 1 || w.at() != first {
		t.Errorf("two changes at once have it be at %v and %v", first, w.at())
	}
	w.clock.Advance(time.Minute)
	w.unbind("i", "b")
	if got := w.at().Count; got != 2 {
		t.Errorf("a later change has it be at %d", got)
	}
	w.clock.Advance(time.Minute)
	w.unbind("i", "b") // which changes nothing
	late := "longshore." + hosted.Name("", provider.Tags{Broker: w.broker}) + ".1.0"
	must(t, w.server.Root(t), "ACL", "SETUSER", late, "reset", "off")
	if got := w.at().Count; got != 2 {
		t.Errorf("without a change it is at %d", got)
	}
	w.bind("i", "c", "")
	if got := w.at().Count; got != 3 {
		t.Errorf("after what came late a change has it be at %d", got)
	}
}
