package providertest

import (
	"context"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// A Restorable is a provider on servers that know how far they are.
type Restorable interface {
	provider.Provider
	Survey(ctx context.Context, name string) (provider.Target, target.Epoch, error)
	Advance(ctx context.Context, of provider.Target, from, to target.Epoch) (target.Epoch, error)
}

// At is where a server is now.
func At(t testing.TB, p Restorable, of provider.Target) target.Epoch {
	t.Helper()
	server, at, err := p.Survey(t.Context(), of.Name)
	if err != nil || server != of {
		t.Fatalf("it says that it is %v, want %v: %v", server, of, err)
	}
	return at
}

// Raise has a server be at a later epoch, as the worker does after a step.
func Raise(t testing.TB, p Restorable, of provider.Target) target.Epoch {
	t.Helper()
	now := At(t, p, of)
	next := target.Epoch{Line: now.Line, Count: now.Count + 1, Mark: fmt.Sprint("m", now.Count)}
	if at, err := p.Advance(t.Context(), of, now, next); err != nil || at != next || At(t, p, of) != next {
		t.Fatalf("it is raised to %v, and is at %v, want %v: %v", at, At(t, p, of), next, err)
	}
	return next
}

// RefusesAll requires that a server that was restored is changed by no step: of the instance, of a binding that is new
// and of one that it has.
func RefusesAll(t testing.TB, p Restorable, in provider.Instance, anew, kept provider.Binding) {
	t.Helper()
	for what, step := range map[string]func() (provider.Status, error){
		"Provision":   func() (provider.Status, error) { return p.Provision(t.Context(), in) },
		"Update":      func() (provider.Status, error) { return p.Update(t.Context(), in) },
		"Deprovision": func() (provider.Status, error) { return p.Deprovision(t.Context(), in) },
		"Bind":        func() (provider.Status, error) { return p.Bind(t.Context(), anew) },
		"Unbind":      func() (provider.Status, error) { return p.Unbind(t.Context(), kept) },
	} {
		_, err := step()
		Troubled(t, what, target.Restored, err)
	}
}

// GoesOn requires that a server that was restored is behind where it is known to have been, and goes on from where it is
// and from nowhere else. It is at what GoesOn gives then.
func GoesOn(t testing.TB, p Restorable, of provider.Target, known target.Epoch) target.Epoch {
	t.Helper()
	now := At(t, p, of)
	if now.Follows(known) {
		t.Fatalf("it is at %v, and has been at %v", now, known)
	}
	next := target.Epoch{Line: now.Line, Count: known.Count + 1, Mark: "next"}
	if at, err := p.Advance(t.Context(), of, known, next); err != nil || at != now {
		t.Errorf("it goes on from where it is not, as %v: %v", at, err)
	}
	if at, err := p.Advance(t.Context(), of, now, next); err != nil || at != next || At(t, p, of) != next {
		t.Errorf("it goes on as %v, and is at %v: %v", at, At(t, p, of), err)
	}
	return next
}
