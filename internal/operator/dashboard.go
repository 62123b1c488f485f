package operator

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/front/pages"
	"github.com/longshore/longshore/internal/lifecycle"
)

// A Viewing names the instance whose page is to be opened.
type Viewing struct {
	ID string `json:"id"`
	// Platform is the id or the name of the instance's platform; empty if only one has it.
	Platform string `json:"platform,omitempty"`
	// Acts lets the session order what a manager on the platform may.
	Acts bool `json:"acts,omitempty"`
}

// A DashboardLink is a link that opens a page, once.
type DashboardLink struct {
	URL   string    `json:"url"`
	Until time.Time `json:"until"`
}

// Dashboard makes a link to the page of an instance.
func (c *Console) Dashboard(ctx context.Context, v Viewing) (link DashboardLink, _ error) {
	if c.Origin == "" {
		return link, errStopped
	}
	key, err := c.keyOf(ctx, v)
	if err != nil {
		return link, err
	}
	scope := pages.ScopeOf(key)
	scope.Acts = v.Acts
	return c.link(ctx, scope)
}

// errStopped refuses a link while no broker runs that could show the page.
var errStopped = refuse("no broker runs on this folder that could show a page: start it by `longshore serve`")

// A Watch describes the session of the console that is asked for.
type Watch struct {
	// Acts lets the session change something.
	Acts bool `json:"acts,omitempty"`
}

// Watched makes a link to the console in the browser.
func (c *Console) Watched(ctx context.Context, w Watch) (link DashboardLink, _ error) {
	if c.Origin == "" {
		return link, errStopped
	}
	return c.link(ctx, pages.Scope{Console: true, Acts: w.Acts})
}

// link makes a link that opens a scope.
func (c *Console) link(ctx context.Context, of pages.Scope) (link DashboardLink, _ error) {
	link.Until = c.Now().Add(pages.LinkTime)
	sealed, err := pages.Link{Scope: of, ID: c.NewID(), Until: link.Until}.Seal(ctx, c.datakey)
	link.URL = strings.TrimSuffix(c.Origin, "/") + pages.EnterPath(sealed)
	return link, err
}

// keyOf finds the instance with an id, on one platform or on all.
func (c *Console) keyOf(ctx context.Context, v Viewing) (found lifecycle.Key, _ error) {
	known := c.known(ctx)
	only, err := platformID(known, v.Platform)
	if err != nil {
		return found, err
	}
	among := slices.Collect(maps.Keys(known))
	switch {
	case only != "":
		among = []string{only}
	case known == nil:
		return found, refuse("the platforms cannot be read: name the instance's platform with --platform")
	}
	for _, id := range among {
		key := lifecycle.Key{Platform: id, Instance: v.ID}
		r, err := c.read(ctx, key)
		switch {
		case err != nil:
			return found, err
		case r.State == lifecycle.Absent:
		case found.Instance != "":
			return found, refuse("several platforms have an instance %q: name one by --platform", v.ID)
		default:
			found = key
		}
	}
	if found.Instance == "" {
		return found, refuse("there is no instance %q: `longshore instances` lists their ids", v.ID)
	}
	return found, nil
}
