package demo

import (
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// The bounds of when to ask again.
const (
	minAfter = 50 * time.Millisecond
	maxAfter = 10 * time.Second
)

var doing = map[provider.Kind]string{
	provider.KindProvision:   "Creating the instance",
	provider.KindUpdate:      "Updating the instance",
	provider.KindDeprovision: "Deleting the instance",
	provider.KindBind:        "Creating the binding",
	provider.KindUnbind:      "Deleting the binding",
}

var did = map[provider.Kind]string{
	provider.KindProvision:   "The instance is ready.",
	provider.KindUpdate:      "The instance is updated.",
	provider.KindDeprovision: "The instance is deleted.",
	provider.KindBind:        "The binding is ready.",
	provider.KindUnbind:      "The binding is deleted.",
}

func (s step) done() provider.Status {
	return provider.Status{Done: true, Percent: 100, Description: did[s.op.Kind]}
}

func (s step) progress(c Change) provider.Status {
	left := c.Ends.Sub(s.now)
	if c.Kind == provider.KindDeprovision && s.noun == roleBinding {
		// How many bindings there are is not known here. A time for each of them
		// would begin anew again and again, and be longest in the end, for the
		// instance.
		return provider.Status{Description: "Deleting the bindings of the instance", After: after(left)}
	}
	percent := 0
	if total := c.Ends.Sub(c.Began); total > 0 {
		percent = int(100 * (1 - float64(left)/float64(total)))
	}
	return provider.Status{
		Percent:     min(max(percent, 0), 99),
		Description: fmt.Sprintf("%s, about %s left", doing[c.Kind], roughly(left)),
		After:       after(left),
	}
}

// waiting is for work that has to let other work on t end first.
func (s step) waiting(t Thing) provider.Status {
	until := t.Ready
	if t.Change != nil && t.Change.Ends.After(until) {
		until = t.Change.Ends
	}
	return provider.Status{
		Description: fmt.Sprintf("Waiting for other work on the %s, about %s left", s.noun, roughly(until.Sub(s.now))),
		After:       after(until.Sub(s.now)),
	}
}

func after(left time.Duration) time.Duration { return min(max(left, minAfter), maxAfter) }

// roughly writes a duration as people say it, never less than is left.
func roughly(d time.Duration) string {
	up := func(unit time.Duration) int64 { return max(int64((d+unit-1)/unit), 1) }
	switch {
	case d <= 90*time.Second:
		return fmt.Sprintf("%d s", up(time.Second))
	case d <= 90*time.Minute:
		return fmt.Sprintf("%d min", up(time.Minute))
	default:
		return fmt.Sprintf("%d h", up(time.Hour))
	}
}

// asked is the failure that the plan or the user asked for.
func (s step) asked() *provider.Failure {
	f := provider.Failf("The demo failed this %s because the plan or the parameter \"fail\" asks for it.", s.op.Kind)
	switch s.op.Kind {
	case provider.KindUpdate:
		f.Message += " The instance is as it was. Leave the parameter out, or set it to false, and update again."
		f.InstanceUsable, f.UpdateRepeatable = new(true), new(true)
	case provider.KindDeprovision:
		f.Message += " Delete the instance again: a deletion fails only once."
		f.InstanceUsable = new(true)
	case provider.KindUnbind:
		f.Message += " Delete the binding again: a deletion fails only once."
	default:
		f.Message += " Leave the parameter out or choose another plan."
	}
	return f
}

// unusable is the failure of a step that needs the wanted instance and finds
// t, which may be absent; nil if t is the one, ready or still in the making.
func (s step) unusable(t Thing, exists bool) *provider.Failure {
	switch {
	case !exists:
		return provider.Failf("The instance does not exist. Create it first.")
	case t.Tags != s.wanted.Tags:
		return s.notOurs()
	case t.Ready.IsZero():
		return provider.Failf("The instance was not created successfully. Delete it and create it again.")
	case t.settled(s.now).deleting():
		return provider.Failf("The instance is being deleted.")
	default:
		return nil
	}
}

func (s step) notOurs() *provider.Failure {
	return provider.Failf("The name %s of this %s is taken by something that does not belong to it, which was left as it is. Ask the "+
		"operator of the service.", s.wanted.Name, s.noun)
}

// harmless marks a failed update that has changed nothing.
func harmless(err error) error {
	if f, ok := errors.AsType[*provider.Failure](err); ok {
		f.InstanceUsable, f.UpdateRepeatable = new(true), new(true)
	}
	return err
}

func (s step) contended() error {
	return fmt.Errorf("thing %q was changed by others %d times in one step", s.wanted.Name, maxTries)
}
