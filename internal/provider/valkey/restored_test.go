package valkey_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/valkey"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// at is where the server is now.
func (w *world) at() target.Epoch {
	w.t.Helper()
	target, at, err := w.p.Survey(w.t.Context(), hosted.DefaultTarget)
	if err != nil || target != w.target {
		w.t.Fatalf("it says that it is %v: %v", target, err)
	}
	return at
}

// raise has the server be at a later epoch, as the worker does after a step.
func (w *world) raise() {
	w.t.Helper()
	now := w.at()
	next := target.Epoch{Count: now.Count + 1, Mark: "m" + strconv.FormatInt(now.Count, 10)}
	if at, err := w.p.Advance(w.t.Context(), w.target, now, next); err != nil || at != next || w.at() != next {
		w.t.Fatalf("it is raised to %v, and is at %v, want %v: %v", at, w.at(), next, err)
	}
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
	w.raise()
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
		"Adopt":       func() error { return w.p.Adopt(t.Context(), first, first.Tags) },
		"Quarantine":  func() error { return w.p.Quarantine(t.Context(), first) },
	} {
		err := step()
		if trouble, ok := errors.AsType[*target.Trouble](err); !ok || trouble.Kind != target.Restored {
			t.Errorf("%s: %v, want the trouble %q", what, err, target.Restored)
		}
	}
	now := w.at()
	if now.Follows(known) {
		t.Fatalf("it is at %v, and has been at %v", now, known)
	}
	next := target.Epoch{Count: known.Count + 1, Mark: "next"}
	if at, err := w.p.Advance(t.Context(), w.target, known, next); err != nil || at != now {
		t.Errorf("it goes on from where it is not, as %v: %v", at, err)
	}
	if at, err := w.p.Advance(t.Context(), w.target, now, next); err != nil || at != next || w.at() != next {
		t.Errorf("it goes on as %v, and is at %v: %v", at, w.at(), err)
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
	w.raise()
	known := w.at()
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
	w.raise()
	at := w.at()
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
	if got, err := valkey.AdvanceBlindly(t.Context(), w.p, w.target, ours); err != nil || got != theirs {
		t.Errorf("of two, this one has it be at %v, want %v: %v", got, theirs, err)
	}
	if got := w.at(); got != theirs {
		t.Errorf("it is at %v, want %v", got, theirs)
	}
	must(t, w.server.Root(t), "ACL", "SETUSER", name(at.Count+1, "ours"), "reset", "off")
	if got := w.at(); got == theirs || got.Mark == "ours" || got.Count != theirs.Count {
		t.Errorf("with two marks it is at %v", got)
	}
	w.raise()
}
