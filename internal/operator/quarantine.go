package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
)

// Quarantined reads one page of the orphans that are in quarantine, or were released from it, as
// far as the query chooses them. The error says what could not be read; the rest is listed.
func (c *Console) Quarantined(ctx context.Context, q Query) (all []Row, next string, err error) {
	return c.rows(ctx, &q, c.orphans, nil)
}

// orphans reads one page of the orphans that are in quarantine, or were released from it.
func (c *Console) orphans(ctx context.Context, after string) (all []lifecycle.Record, next string, err error) {
	return c.due(ctx, after, lifecycle.Record.OrphanStands)
}

// Release puts a thing in quarantine into use again; see acts.Release.
func (c *Console) Release(ctx context.Context, name string) (Row, error) {
	former, err := c.orphan(ctx, name)
	if err != nil {
		return Row{}, err
	}
	return c.did(c.Acts.Release(ctx, former.Key))
}

// Discard begins at once to delete a thing in quarantine; see acts.Discard.
func (c *Console) Discard(ctx context.Context, name string) (Row, error) {
	former, err := c.orphan(ctx, name)
	if err != nil {
		return Row{}, err
	}
	return c.did(c.Acts.Discard(ctx, former.Key))
}

// orphan finds an orphan by its name. Things of several providers may have the
// same name, and a record that cannot be read may be one of them.
func (c *Console) orphan(ctx context.Context, name string) (found lifecycle.Record, _ error) {
	var unread error
	for r, err := range paging.All(ctx, c.orphans) {
		switch {
		case err != nil:
			unread = errors.Join(unread, err)
		case r.Provider+"/"+r.Kept.Name == name:
			return r, nil
		case r.Kept.Name != name:
		case found.Version > 0:
			return found, refuse("several providers have a thing %q in quarantine: name it as PROVIDER/NAME", name)
		default:
			found = r
		}
	}
	if unread != nil {
		return found, fmt.Errorf("not everything in quarantine can be read: name it as PROVIDER/NAME: %w", unread)
	}
	if found.Version == 0 {
		return found, refuse("nothing in quarantine is called %q: `longshore reaper quarantine` lists what is there", name)
	}
	return found, nil
}
