package operator

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
)

// An Upgrade is an instance that is behind its plan: its version differs from the plan's
// maintenance_info, or it was made when the plan had another meaning.
type Upgrade struct {
	Row
	// IsAt is the maintenance version of the instance, and PlanIsAt that of its plan; each is empty if there is none.
	IsAt     string `json:"is_at,omitempty"`
	PlanIsAt string `json:"plan_is_at,omitempty"`
	// Edited says that the plan has changed its meaning under the same version: platforms can ask
	// for the upgrade only once the operator gives the plan a new version.
	Edited bool `json:"edited,omitempty"`
}

// Upgrades returns a page of the instances that are behind their plan and that the query chooses; a page
// may be empty, and next is empty at the end. It leaves out instances that are deleted or being deleted,
// and those whose plan has left the catalog. The error says what could not be read; the rest is listed.
func (c *Console) Upgrades(ctx context.Context, q Query) (found []Upgrade, next string, err error) {
	known := c.known(ctx)
	if q.Platform, err = platformID(known, q.Platform); err != nil {
		return nil, "", err
	}
	page, next, err := c.existing(q.Platform)(ctx, q.After)
	for _, r := range page {
		if u, behind := c.upgrade(r); behind && q.chooses(u.Row) {
			u.PlatformName = known[u.Platform]
			found = append(found, u)
		}
	}
	return found, next, err
}

// upgrade reports whether an instance is behind its plan.
func (c *Console) upgrade(r lifecycle.Record) (u Upgrade, behind bool) {
	if r.IsBinding() || r.State != lifecycle.Ready && r.State != lifecycle.Updating {
		return u, false
	}
	_, plan, ok := c.Catalog(r.Attributes.ServiceID, r.Attributes.PlanID)
	if !ok {
		return u, false
	}
	u.Row = c.row(r)
	u.IsAt, u.PlanIsAt = r.Attributes.MaintenanceVersion, versionOf(plan)
	if u.IsAt != u.PlanIsAt {
		return u, true
	}
	u.Edited = !sameJSON(r.Attributes.Snapshot, plan.Snapshot)
	return u, u.Edited
}

func versionOf(p catalog.Plan) string {
	if p.MaintenanceInfo == nil {
		return ""
	}
	return p.MaintenanceInfo.Version
}

// sameJSON compares two texts regardless of white space, since a store may write its own. An empty
// text equals an object without members.
func sameJSON(a, b json.RawMessage) bool {
	if len(a) == 0 {
		a = json.RawMessage("{}")
	}
	if len(b) == 0 {
		b = json.RawMessage("{}")
	}
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}
