package operator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/lifecycle"
)

// A Row is an instance, a binding or an operation.
type Row struct {
	Platform string `json:"platform_id"`
	// PlatformName is empty for a platform that is not known any more.
	PlatformName string `json:"platform,omitempty"`
	Organization string `json:"organization,omitempty"` // its id
	Space        string `json:"space,omitempty"`        // its id
	// InstanceName is the name that the platform's users know; for bindings and operations it is
	// set only if the query names an ID, an organization or a space.
	InstanceName     string `json:"instance_name,omitempty"`
	OrganizationName string `json:"organization_name,omitempty"`
	SpaceName        string `json:"space_name,omitempty"`
	// Provider made the thing, on Target, under the names in Made: those of a database and its
	// roles, or of a stack.
	Provider string   `json:"provider,omitempty"`
	Target   string   `json:"target,omitempty"`
	Made     []string `json:"made,omitempty"`
	Instance string   `json:"instance"`
	Binding  string   `json:"binding,omitempty"`
	// Life is the incarnation of a former life, whose id another life has or may get; empty for the
	// current holder of the id.
	Life  string `json:"life,omitempty"`
	State string `json:"state,omitempty"`
	// Kept says until when a former life is kept out of use.
	Kept      *lifecycle.Kept `json:"kept,omitempty"`
	Service   string          `json:"offering,omitempty"`
	Plan      string          `json:"plan,omitempty"`
	Created   time.Time       `json:"created,omitzero"`
	Updated   time.Time       `json:"updated,omitzero"`
	Unusable  bool            `json:"unusable,omitempty"`
	Operation *Operation      `json:"operation,omitempty"`
	// Note says what happens to the row without an operator.
	Note string `json:"note,omitempty"`
	// IsAt is the maintenance version of the instance, and PlanIsAt that of its plan, each empty if there is none; Upgrades
	// alone sets them.
	IsAt     string `json:"is_at,omitempty"`
	PlanIsAt string `json:"plan_is_at,omitempty"`
	// Edited says that the plan has changed its meaning under the same version: platforms can ask
	// for the upgrade only once the operator gives the plan a new version.
	Edited bool `json:"edited,omitempty"`
}

// at formats a time for a note.
func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// plan returns the plan of a record, and its offering, unless it has left the catalog.
func (c *Console) plan(of lifecycle.Attributes) (catalog.Offering, catalog.Plan, bool) {
	return c.Catalog(of.ServiceID, of.PlanID)
}

func (c *Console) row(r lifecycle.Record) Row {
	service, plan := r.Attributes.ServiceID, r.Attributes.PlanID
	if offered, its, ok := c.plan(r.Attributes); ok {
		service, plan = offered.Name, its.Name
	}
	row := Row{
		Platform: r.Key.Platform, Instance: r.Key.Instance, Binding: r.Key.Binding, Life: r.Key.Life,
		State: string(r.State), Kept: r.Kept,
		Organization: r.Attributes.OrganizationGUID, Space: r.Attributes.SpaceGUID,
		Provider: r.Provider, Target: r.Made.Target.Name, Made: c.made(r),
		Service: service, Plan: plan, Created: r.Created, Updated: r.Updated, Unusable: r.Unusable,
		Operation: operationOf(r.Key, r.Operation),
	}
	switch {
	case r.InProgress():
		row.Note = "the broker looks at it again by " + at(r.Due)
	case r.State == lifecycle.CreateFailed, r.State == lifecycle.DeleteFailed:
		row.Note = "is removed by the broker itself from " + at(r.Due) + " on"
	case r.IsReleased():
		row.State = stateReleased
		row.Note = "no record explains it, and an operator released it: the broker leaves it alone"
	case r.State == lifecycle.Quarantined && r.OfOrphan():
		row.Note = "no record explains it: it is deleted from " + at(r.Kept.Until) +
			" on; `longshore reaper quarantine` lists it"
	case r.State == lifecycle.Quarantined:
		row.Note = "its instance is deleted; it is kept until " + at(r.Kept.Until) +
			"; `longshore undelete` gives it back"
	case r.State == lifecycle.Deleted:
		row.Note = "is remembered until " + at(r.Expires)
	}
	if r.State != lifecycle.CreateFailed && r.FailedCreation() != nil {
		row.Note += "; until the platform deletes it, it is told that the creation failed"
	}
	return row
}

// tagsOf returns the tags on what was made for a record.
func tagsOf(r lifecycle.Record) provider.Tags {
	tags := provider.Tags{
		Broker: r.Made.Broker, Platform: r.Key.Platform, Instance: r.Key.Instance, Binding: r.Key.Binding,
		Incarnation: r.Incarnation, Of: r.InstanceIncarnation,
	}
	if !r.IsBinding() {
		tags.Origin = r.Made.Origin
	}
	return tags
}

// made returns the names of what was made for a record.
func (c *Console) made(r lifecycle.Record) []string {
	derive := c.Names[r.Provider]
	switch {
	case r.OfOrphan():
		return []string{r.Kept.Name}
	case derive == nil || r.Incarnation == "":
		return nil
	}
	return derive(tagsOf(r))
}

// openName adds the name that the platform's users know, and where the instance was ordered. A
// failure leaves the row as it is.
func (c *Console) openName(ctx context.Context, row *Row) {
	if row.Life != "" && row.Binding != "" {
		return // another instance may have the id by now
	}
	r, err := c.read(ctx, lifecycle.Key{Platform: row.Platform, Instance: row.Instance, Life: row.Life})
	if err == nil {
		row.Organization = cmp.Or(row.Organization, r.Attributes.OrganizationGUID)
		row.Space = cmp.Or(row.Space, r.Attributes.SpaceGUID)
		_ = c.nameIn(ctx, row, r)
	}
}

// nameIn does the same as openName from the record of the instance.
func (c *Console) nameIn(ctx context.Context, row *Row, r lifecycle.Record) error {
	n, err := c.datakey.Names(ctx, r)
	row.InstanceName, row.OrganizationName, row.SpaceName = n.Instance, n.Organization, n.Space
	return err
}

// known returns the names of the platforms by id; nil if they cannot be read, such as without the
// right to read the stack's secret.
func (c *Console) known(ctx context.Context) map[string]string {
	if c.Platforms == nil {
		return nil
	}
	all, _ := c.Platforms(ctx)
	return all
}

// platforms returns what known does, and puts the id of the query's platform in place of its name. Over a stack each call
// reads a secret, so a page calls it once.
func (c *Console) platforms(ctx context.Context, q *Query) (known map[string]string, err error) {
	known = c.known(ctx)
	q.Platform, err = platformID(known, q.Platform)
	return known, err
}

// platformID returns the id of the platform with this id or name. It refuses an unknown one: an
// empty list would suggest that the platform has nothing. While no name is known, it takes what looks like an id.
func platformID(known map[string]string, given string) (id string, _ error) {
	if _, isID := known[given]; given == "" || isID || known == nil && platforms.IsID(given) {
		return given, nil
	}
	if known == nil {
		return "", refuse("the platforms cannot be read, so the broker does not know the name %q: run `longshore platform "+
			"list`, and mend the fault that it reports, or give the platform's id, such as p-abcdefghijkl, as "+
			"`longshore instances -o wide` shows it", given)
	}
	for id, name := range known {
		if name == given {
			return id, nil
		}
	}
	return "", refuse("there is no platform %q: the known ones are %s", given,
		strings.Join(slices.Sorted(maps.Values(known)), ", "))
}
