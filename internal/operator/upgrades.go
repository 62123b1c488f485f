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
	Platform string `json:"platform"`
	Instance string `json:"instance"`
	State    string `json:"state"`
	Service  string `json:"service"`
	Plan     string `json:"plan"`
	// Recorded is the maintenance version that the instance is at, and Current the
	// plan's; each is empty where there is none.
	Recorded string `json:"recorded_version,omitempty"`
	Current  string `json:"current_version,omitempty"`
	// Unpublished says that the plan means something else under the same version: no
	// platform can ask for it until the operator gives the plan a newer one.
	Unpublished bool `json:"unpublished,omitempty"`
}

// Upgrades gives a page of the instances that are behind, which may be empty. Cursor
// is empty for the first page, then the next of the last; next is empty at the end.
// What is deleted, or on its way out, is not listed, nor what is of a plan that has
// left the catalog. What cannot be read is in the error beside the rest.
func (c *Console) Upgrades(ctx context.Context, cursor string) (found []Upgrade, next string, err error) {
	page, next, err := c.Records.ScanPage(ctx, cursor)
	for _, r := range page.Records {
		if u, behind := c.upgrade(r); behind {
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

// sameJSON compares but for spaces: a store may write its own.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}
