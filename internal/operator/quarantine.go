package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// A Quarantine is a thing in quarantine.
type Quarantine struct {
	lifecycle.Quarantine
	// PlatformName is empty for a platform that is not known any more.
	PlatformName string `json:"platform_name,omitempty"`
}

// Quarantined reads one page of the things that are in quarantine, or were released
// from it. The error tells what could not be read; the rest is listed.
func (c *Console) Quarantined(ctx context.Context, after string) (all []Quarantine, next string, err error) {
	page, next, err := c.Records.Quarantines(ctx, after)
	known := c.known(ctx)
	for _, q := range page {
		all = append(all, Quarantine{q, known[q.Key.Platform]})
	}
	return all, next, err
}

// Release puts a thing in quarantine into use again. From then on it is left alone,
// whether it has a record or not.
func (c *Console) Release(ctx context.Context, name string) (lifecycle.Quarantine, error) {
	return decide(ctx, func() (lifecycle.Quarantine, error) {
		q, err := c.quarantined(ctx, name)
		if err != nil {
			return q, err
		}
		q, changed := q.Release(c.Now())
		if !changed {
			return q, refuse("%q is released already", name)
		}
		return q, c.driveQuarantine(ctx, q)
	})
}

// Discard begins at once the deletion of a thing that is in quarantine, or was released
// from it.
func (c *Console) Discard(ctx context.Context, name string) (Row, error) {
	return decide(ctx, func() (Row, error) {
		q, err := c.quarantined(ctx, name)
		if err != nil {
			return Row{}, err
		}
		is, err := c.Records.Record(ctx, q.Key, c.Now())
		if err != nil {
			return Row{}, err
		}
		if is.Exists() && is.Incarnation == q.Incarnation {
			return Row{}, refuse("what %q was made for has a record, which is %q: have its platform delete it", name, is.State)
		}
		former, err := c.Records.Record(ctx, q.Key.Former(q.Incarnation), c.Now())
		if err != nil {
			return Row{}, err
		}
		if former, err = former.BeginOrphanDeletion(c.start(c.OperationTimeout), q.Orphan); err != nil {
			return Row{}, err
		}
		return c.drive(ctx, former, ledger.Check(is), ledger.Delete(q))
	})
}

// quarantined finds a thing by its name. Things of several providers may have the same
// name: where a record cannot be read, it may be that of another one.
func (c *Console) quarantined(ctx context.Context, name string) (found lifecycle.Quarantine, _ error) {
	var unread error
	for q, err := range paging.All(ctx, c.Records.Quarantines) {
		switch {
		case err != nil:
			unread = errors.Join(unread, err)
		case q.Provider+"/"+q.Name == name:
			return q, nil
		case q.Name != name:
		case found.Version > 0:
			return found, refuse("several providers have a thing %q in quarantine: name it as PROVIDER/NAME", name)
		default:
			found = q
		}
	}
	if unread != nil {
		return found, fmt.Errorf("not everything in quarantine can be read: name it as PROVIDER/NAME: %w", unread)
	}
	if found.Version == 0 {
		return found, refuse("nothing of the name %q is in quarantine: `longshore reaper quarantine` lists what is", name)
	}
	return found, nil
}

// driveQuarantine commits what an operator asked for, and starts its execution. If the
// start fails, the reaper repeats it.
func (c *Console) driveQuarantine(ctx context.Context, q lifecycle.Quarantine, more ...ledger.Change) error {
	if err := c.Records.Commit(ctx, append(more, ledger.Put(q))...); err != nil {
		return fmt.Errorf("releasing %q: %w", q.Name, err)
	}
	if c.Start != nil {
		_ = c.Start(ctx, workflow.Ref{Token: q.Token(), Attempt: q.Attempt})
	}
	return nil
}
