// Package wired defines providers as programs use them: with inventory, targets and times.
package wired

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// A Provider is a provider as a program uses it.
type Provider struct {
	Provider provider.Provider
	// Inventory is nil for a provider that makes nothing and keeps only State.
	Inventory provider.Inventory
	// A provider may implement more interfaces; each is nil if it does not (see Of). The
	// targets of a provider with a Reconciler have epochs.
	Identifier  provider.Identifier
	Refuser     provider.Refuser
	Quarantiner provider.Quarantiner
	Adopter     provider.Adopter
	Describer   provider.Describer
	Reconciler  Reconciler
	// Targets names the targets that the inventory covers according to today's settings; nil
	// for a provider that makes all things in one place and returns no Status.Target. If a
	// record names another target, the sweep is incomplete.
	Targets func(ctx context.Context) ([]string, error)
	// CallTimeout ends a call; zero for DefaultCallTimeout. Together with 15 s for recording,
	// it must fit into the time of the calling function.
	CallTimeout time.Duration
	// Close ends the provider's connections and the like; nil for none.
	Close func()
	// Absent is why nobody may call the provider; nil if it can be called. See Absent.
	Absent error
}

// Of returns a provider wired with every interface that it implements.
func Of(p provider.Provider) Provider {
	w := Provider{Provider: p}
	w.Inventory, _ = p.(provider.Inventory)
	w.Identifier, _ = p.(provider.Identifier)
	w.Refuser, _ = p.(provider.Refuser)
	w.Quarantiner, _ = p.(provider.Quarantiner)
	w.Adopter, _ = p.(provider.Adopter)
	w.Describer, _ = p.(provider.Describer)
	w.Reconciler, _ = p.(Reconciler)
	return w
}

// Absent returns what stands for a provider without which a program starts: it is not set up, or cannot be reached.
// Its operations wait, since nothing of it is ever called, and its inventory is a target that cannot be listed.
func Absent(why error) Provider { return Provider{Absent: why, Inventory: unlisted{why}} }

// An unlisted inventory says why it cannot be listed. Without an inventory, all things would seem to be gone.
type unlisted struct{ why error }

// List implements provider.Inventory.
func (u unlisted) List(context.Context, string) ([]provider.Holding, string, error) {
	return nil, "", u.why
}

// Prove asks the target of an instance for its identity, before a step trusts what it finds or
// misses there. The first step of an instance learns the identity, and makes nothing: later steps
// look under that identity for the things that they make. Another identity is a passing error.
func (w Provider) Prove(ctx context.Context, in provider.Instance) (learnt *provider.Status, err error) {
	if w.Identifier == nil {
		return nil, nil
	}
	is, err := w.Identifier.Identify(ctx, in)
	switch {
	case err != nil:
		return nil, err
	case in.Target.Identity == "":
		return &provider.Status{Target: &is, Description: "Found the account", After: time.Second}, nil
	case in.Target.Identity != is.Identity:
		return nil, &target.Trouble{Kind: target.Other, Target: is.Name, Message: fmt.Sprintf(
			"it answers as %q, and this was made in %q: other credentials, or another address. Have the settings lead to the "+
				"right one", is.Identity, in.Target.Identity)}
	}
	return nil, nil
}

// The default times of a provider. A synchronous request waits for an operation to settle, at most MaxWait.
const (
	DefaultCallTimeout = 20 * time.Second
	DefaultWait        = 15 * time.Second
	MaxWait            = 24 * time.Second
)

// RecordMargin is how much of a function's time is left to record the result of a call.
const RecordMargin = 15 * time.Second

// Timeout returns how long one call may take.
func (w Provider) Timeout() time.Duration { return cmp.Or(w.CallTimeout, DefaultCallTimeout) }

// Check refuses a provider that is wired wrongly, or whose calls do not fit into the time of the function
// that makes them.
func Check(wired map[string]Provider, function time.Duration) error {
	for name, w := range wired {
		switch {
		case w.Absent != nil:
		case w.Provider == nil:
			return fmt.Errorf("provider %q: wire the provider, not its inventory alone", name)
		case w.Reconciler != nil && (w.Targets == nil || w.Inventory == nil):
			return fmt.Errorf("provider %q: its targets have epochs: wire their names, and an inventory", name)
		case w.Timeout()+RecordMargin > function:
			return fmt.Errorf("provider %q: a call of %v and %v to record it do not fit into the function's %v", name,
				w.Timeout(), RecordMargin,
				function)
		}
	}
	return nil
}

// A Reconciler is a provider whose targets have epochs, with the methods that an operator needs.
type Reconciler interface {
	// Survey asks the target with a name for its identity and its epoch, and accepts every
	// epoch. It changes nothing.
	Survey(ctx context.Context, name string) (provider.Target, target.Epoch, error)
	// Holdings is like List, for one target.
	Holdings(ctx context.Context, target, cursor string) (page []provider.Holding, next string, err error)
	// Advance proves the target's identity. If the target is at from, Advance raises it to to,
	// which is on the same line; otherwise it changes nothing. It returns the target's epoch
	// after that. It may be repeated, even by several callers at once.
	Advance(ctx context.Context, t provider.Target, from, to target.Epoch) (target.Epoch, error)
}
