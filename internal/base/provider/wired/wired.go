// Package wired is a provider as a program uses it: with its inventory, its targets and its
// times.
package wired

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// A Provider is one as a program uses it, with its inventory.
type Provider struct {
	Provider provider.Provider
	// Inventory is nil for a provider that makes nothing: all that it keeps is State.
	Inventory provider.Inventory
	// Targets gives the names of the targets that the inventory covers by today's
	// settings; nil for a provider that makes all things in one place and answers no
	// Status.Target. A target that a record names and that is not among them makes
	// the sweep incomplete.
	Targets func(ctx context.Context) ([]string, error)
	// Epochs says that the targets have epochs, and that the inventory is a
	// Reconciler.
	Epochs bool
	// CallTimeout ends one call; zero for DefaultCallTimeout. With 15 s for
	// recording, it must fit into the time of the function that calls.
	CallTimeout time.Duration
	// Wait is how long a synchronous request waits for an operation to settle,
	// MaxWait at most; zero for DefaultWait.
	Wait time.Duration
	// Close ends what the provider keeps open, such as connections; nil for nothing.
	Close func()
}

// Times that a provider may change in its wired.Provider.
const (
	DefaultCallTimeout = 20 * time.Second
	DefaultWait        = 15 * time.Second
	MaxWait            = 24 * time.Second
)

// RecordMargin is how much of a function's time is left to record what a call
// came to.
const RecordMargin = 15 * time.Second

// Timeout is when one call ends.
func (w Provider) Timeout() time.Duration { return cmp.Or(w.CallTimeout, DefaultCallTimeout) }

// Check finds the provider, by its name, that is not there, or whose calls do not
// fit into the time of the function that makes them.
func Check(wired map[string]Provider, function time.Duration) error {
	for name, w := range wired {
		switch {
		case w.Provider == nil:
			return fmt.Errorf("provider %q: wire the provider, not its inventory alone", name)
		case w.Epochs && (w.Targets == nil || !reconciles(w.Inventory)):
			return fmt.Errorf("provider %q: its targets have epochs: wire their names, and an inventory that can reconcile them",
				name)
		case w.Timeout()+RecordMargin > function:
			return fmt.Errorf("provider %q: a call of %v and %v to record it do not fit into the function's %v", name,
				w.Timeout(), RecordMargin,
				function)
		case w.Wait < 0 || w.Wait > MaxWait:
			return fmt.Errorf("provider %q: a wait of %v is not one of up to %v", name, w.Wait, MaxWait)
		}
	}
	return nil
}

func reconciles(i provider.Inventory) bool {
	_, ok := i.(Reconciler)
	return ok
}

// A Reconciler is what an operator needs of a provider whose targets have epochs. An
// Inventory may implement it; Provider.Epochs then says so.
type Reconciler interface {
	// Survey asks the target of that name who it is and which epoch it is at,
	// whatever epoch it has been at. It changes nothing.
	Survey(ctx context.Context, name string) (provider.Target, target.Epoch, error)
	// Holdings is List of one target.
	Holdings(ctx context.Context, target, cursor string) (page []provider.Holding, next string, err error)
	// Advance proves that the target is the one of that identity. It has it be at to, which
	// is of the same line, if it is at from, and else changes nothing. It gives what the
	// target is at then. It may be repeated, also by several at once.
	Advance(ctx context.Context, t provider.Target, from, to target.Epoch) (target.Epoch, error)
}
