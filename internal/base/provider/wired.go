package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
)

// A Wired is a provider as a program uses it, with its inventory.
type Wired struct {
	Provider Provider
	// Inventory is nil for a provider that makes nothing: all that it keeps is State.
	Inventory Inventory
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

// Times that a provider may change in its Wired.
const (
	DefaultCallTimeout = 20 * time.Second
	DefaultWait        = 15 * time.Second
	MaxWait            = 24 * time.Second
)

// RecordMargin is how much of a function's time is left to record what a call
// came to.
const RecordMargin = 15 * time.Second

// Timeout is when one call ends.
func (w Wired) Timeout() time.Duration { return cmp.Or(w.CallTimeout, DefaultCallTimeout) }

// CheckWired finds the provider, by its name, that is not there, or whose calls do not
// fit into the time of the function that makes them.
func CheckWired(wired map[string]Wired, function time.Duration) error {
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

func reconciles(i Inventory) bool {
	_, ok := i.(Reconciler)
	return ok
}

// A Check is what a provider finds out about a plan when the catalog is
// compiled: whether its settings and the files beside the offering are right.
// It gives the snapshot that instances of the plan record, at most
// limits.Snapshot bytes of JSON, nil for none. It leaves out what is at its default: a
// later version of the provider, which may know more, has not edited the plan. An error
// says what to do; a
// *advice.Error also says where: a File in the offering's folder, or in Name the
// path of a setting in the plan, such as "delay", or a JSON pointer into the plan, such
// as "/schemas". Several are joined by errors.Join.
// It reaches nothing but its input.
type Check func(plan Checked) (snapshot json.RawMessage, err error)

// Checked is the plan that a Check looks at.
type Checked struct {
	Offering, Plan string // their names
	ServiceID      string
	PlanID         string
	Settings       map[string]any
	// Files is the offering's folder, and Folder its name, as problems show it.
	Files  fs.FS
	Folder string
	// Bindable says whether instances of the plan can be bound.
	Bindable bool
	// Deadline is how long an operation may take; 0 if the plan does not say.
	Deadline time.Duration
	// Warn tells the operator of what is no reason to refuse the plan; nil if nobody
	// listens.
	Warn func(advice.Error)
	// Keep has the compiled catalog carry a file, such as a template, by the SHA-256
	// of its content in hex, which it gives; snapshots name it so.
	Keep func(content []byte) (digest string)
	// Describe tells what users may set, where that follows from the offering's files: a
	// plan then has no schemas of its own. A provider that never calls it leaves them to
	// the plan.
	Describe func(Parameters)
	// Lock refuses a plan whose version stands for other files than when it was locked: the
	// digest is of those that a new version is for.
	Lock func(digest string) error
}

// Parameters are what users of a plan may set.
type Parameters struct {
	// Properties are JSON Schemas of draft-04, by the names of parameters.
	Properties map[string]any
	// Required are those that a provision needs, and Fixed those that no update changes.
	Required, Fixed []string
}
