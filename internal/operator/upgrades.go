package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/longshore/longshore/internal/lifecycle"
)

// Upgrades returns a page of the instances that are behind their plan and that the query chooses: their version differs
// from the plan's maintenance_info, or they were made when the plan had another meaning. A page may be empty, and next is
// empty at the end. It leaves out instances that are deleted or being deleted, and those whose plan has left the
// catalog. The error says what could not be read; the rest is listed.
func (c *Console) Upgrades(ctx context.Context, q Query) (all []Row, next string, err error) {
	return c.rows(ctx, &q, func(ctx context.Context, after string) ([]lifecycle.Record, string, error) {
		page, next, err := c.existing(&q)(ctx, after)
		return slices.DeleteFunc(page, func(r lifecycle.Record) bool { return !c.behind(r) }), next, err
	}, func(row *Row, r lifecycle.Record) {
		_, plan, _ := c.plan(r.Attributes)
		row.IsAt, row.PlanIsAt = r.Attributes.MaintenanceVersion, plan.Version()
		row.Edited = row.IsAt == row.PlanIsAt
	})
}

// behind reports whether an instance is behind its plan.
func (c *Console) behind(r lifecycle.Record) bool {
	_, plan, ok := c.plan(r.Attributes)
	return ok && (r.State == lifecycle.Ready || r.State == lifecycle.Updating) &&
		(r.Attributes.MaintenanceVersion != plan.Version() || compact(r.Attributes.Snapshot) != compact(plan.Snapshot))
}

// compact removes the white space of a text in JSON, since a store may write its own. An empty text is an object without
// members.
func compact(text json.RawMessage) string {
	var b bytes.Buffer
	if len(text) == 0 {
		return "{}"
	}
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}
