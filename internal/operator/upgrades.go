package operator

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
)

// An Upgrade is an instance that is behind its plan: of an earlier version than the
// plan's maintenance_info, or made when the plan meant something else.
type Upgrade struct {
	Platform string `json:"platform"` // its id
	// PlatformName is empty for a platform that is not known any more.
	PlatformName string `json:"platform_name,omitempty"`
	Instance     string `json:"instance"`
	State        string `json:"state"`
	Service      string `json:"service"`
	Plan         string `json:"plan"`
	// Recorded is the maintenance version of the instance, and Current that of its plan;
	// empty if there is none.
	Recorded string `json:"recorded_version,omitempty"`
	Current  string `json:"current_version,omitempty"`
	// Unpublished says that the plan has changed its meaning under the same version:
	// platforms can ask for the upgrade only once the operator gives the plan a newer
	// version.
	Unpublished bool `json:"unpublished,omitempty"`
}

// Upgrades gives a page of the instances that are behind their plan; a page may be
// empty. The cursor is empty for the first page, and then the next of the last page;
// next is empty at the end. Instances that are deleted or being deleted are left out,
// and those whose plan has left the catalog. The error tells what could not be read;
// the rest is listed.
func (c *Console) Upgrades(ctx context.Context, cursor string) (found []Upgrade, next string, err error) {
	page, next, err := c.existing("")(ctx, cursor)
	known := c.known(ctx)
	for _, r := range page {
		if u, behind := c.upgrade(r); behind {
			u.PlatformName = known[u.Platform]
			found = append(found, u)
		}
	}
	return found, next, err
}

// upgrade tells whether an instance is behind its plan.
func (c *Console) upgrade(r lifecycle.Record) (Upgrade, bool) {
	if r.IsBinding() || r.State != lifecycle.Ready && r.State != lifecycle.Updating {
		return Upgrade{}, false
	}
	offering, plan, ok := c.Catalog(r.Attributes.ServiceID, r.Attributes.PlanID)
	if !ok {
		return Upgrade{}, false
	}
	u := Upgrade{
		Platform: r.Key.Platform, Instance: r.Key.Instance, State: string(r.State), Service: offering.Name, Plan: plan.Name,
		Recorded: r.Attributes.MaintenanceVersion, Current: versionOf(plan),
	}
	if u.Recorded != u.Current {
		return u, true
	}
	u.Unpublished = !sameJSON(r.Attributes.Snapshot, plan.Snapshot)
	return u, u.Unpublished
}

func versionOf(p catalog.Plan) string {
	if p.MaintenanceInfo == nil {
		return ""
	}
	return p.MaintenanceInfo.Version
}

// sameJSON compares two texts but for white space, since a store may write its own. No
// text is the same as an object without members.
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
