package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/sorted"
)

// Owner finds the record that a name on a server or in an account belongs to. If no record derives
// that name, the inventories may know it from the label of the thing. Tombstones come last: what
// is kept of a former life, or was undeleted from it, has the name that the tombstone of that life
// derives. Owner reads all records.
func (c *Console) Owner(ctx context.Context, name string) (Row, error) {
	name = named(name)
	row, err := c.ofRecord(ctx, name, true)
	if err == nil && row.Instance == "" {
		row, err = c.ofLabel(ctx, name)
	}
	if err == nil && row.Instance == "" {
		row, err = c.ofRecord(ctx, name, false)
	}
	if err == nil && row.Instance == "" {
		err = refuse("nothing of this broker is called %q: it belongs to another broker or to somebody else, or was deleted "+
			"and forgotten", name)
	}
	row.PlatformName = c.known(ctx)[row.Platform]
	return row, err
}

// named reduces a name as engines and AWS write it to the name itself: it removes the rest of an
// ARN, the braces of a key's prefix, and PostgreSQL's quotes.
func named(text string) string {
	if strings.HasPrefix(text, "arn:") {
		parts := strings.Split(text, "/")
		if strings.Contains(parts[0], ":cloudformation:") && len(parts) > 1 {
			return parts[1]
		}
		return parts[len(parts)-1]
	}
	if prefix, ok := strings.CutPrefix(text, "{"); ok {
		text, _, _ = strings.Cut(prefix, "}")
	}
	return strings.Trim(text, "\"`")
}

// ofRecord looks among the names that derive from records, either of what exists or of what is deleted.
func (c *Console) ofRecord(ctx context.Context, name string, exists bool) (Row, error) {
	var unread []error
	for r, err := range c.Records.Scan(ctx) {
		if err != nil {
			unread = append(unread, err)
		} else if r.Exists() == exists && slices.Contains(c.made(r), name) {
			row := c.row(r)
			if !exists {
				row.Note += "; what was undeleted from it may have this name, too"
			}
			c.openName(ctx, &row)
			return row, nil
		}
	}
	return Row{}, errors.Join(unread...)
}

// ofLabel asks the inventories. If one of them cannot be listed, the name may be in that one.
func (c *Console) ofLabel(ctx context.Context, name string) (Row, error) {
	var unread []error
	for provider, inventory := range sorted.Map(c.Inventories) {
		for h, err := range paging.All(ctx, inventory.List) {
			if err != nil {
				unread = append(unread, err)
				continue
			}
			if h.Name != name {
				continue
			}
			r, err := c.read(ctx, keyOf(h))
			if err == nil && r.Incarnation != h.Tags.Incarnation {
				r, err = c.read(ctx, keyOf(h).Former(h.Tags.Incarnation))
			}
			if err != nil {
				return Row{}, err
			}
			row := c.row(r)
			row.Provider, row.Target, row.Made = provider, h.Target.Name, []string{name}
			if !r.Exists() {
				row.Note = "its label says so, and no record does: the reaper deals with it"
			} else {
				c.openName(ctx, &row)
			}
			return row, nil
		}
	}
	if err := errors.Join(unread...); err != nil {
		return Row{}, fmt.Errorf("no record leads to %q, and not every server could be asked: start the broker if it is "+
			"stopped: %w", name, err)
	}
	return Row{}, nil
}
