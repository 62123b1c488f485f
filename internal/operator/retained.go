package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/broker/acts"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// Retained reads one page of the deleted instances whose data is kept, as far as the query chooses them, in
// the order of the dates until which they are kept. The error says what could not be read; the rest is listed.
func (c *Console) Retained(ctx context.Context, q Query) (all []Row, next string, err error) {
	return c.rows(ctx, &q, c.kept, nil)
}

// kept reads one page of the former lives that plans keep.
func (c *Console) kept(ctx context.Context, after string) (all []lifecycle.Record, next string, err error) {
	return c.due(ctx, after, lifecycle.Record.IsRetained)
}

// An Undeletion says which instance to give back.
type Undeletion struct {
	// ID is the id of the deleted instance, or its handle, which names one incarnation.
	ID string `json:"id"`
	// Platform is the id or the name of the only platform to look at; empty for all.
	Platform string `json:"platform,omitempty"`
	// Organization and Space replace those in which the instance was ordered.
	Organization string `json:"organization,omitempty"`
	Space        string `json:"space,omitempty"`
}

// An Undeleted says what a developer may have back, and what to order for it.
type Undeleted struct {
	Kept      Row    `json:"kept"`
	Service   string `json:"service"`
	Plan      string `json:"plan"`
	Parameter string `json:"parameter"`
}

// Undelete allows a new instance of the same offering to be made from what is kept of a deleted
// one. The developer orders it by the handle, in the place where the deleted instance was. A final
// deletion that has begun goes on.
func (c *Console) Undelete(ctx context.Context, u Undeletion) (Undeleted, error) {
	return acts.Decide(ctx, func() (out Undeleted, _ error) {
		r, err := c.keptOf(ctx, u)
		if err != nil {
			return out, err
		}
		if err := c.takes(r, &out); err != nil {
			return out, err
		}
		r, free := r.Free(lifecycle.Attributes{OrganizationGUID: u.Organization, SpaceGUID: u.Space}, c.Now())
		switch {
		case !free:
			return out, refuse("its time is over and it is being removed: it cannot be given back")
		case r.Attributes.SpaceGUID == "":
			return out, refuse("the broker no longer knows where it was ordered: say who may have it with --organization " +
				"and --space")
		}
		out.Kept = c.row(r)
		return out, c.Records.Commit(ctx, ledger.Put(r), ledger.Put(r.Acted("allow undelete", c.NewID(), c.Now())))
	})
}

// takes finds a plan of the same offering that can restore what is kept, preferably its own plan.
func (c *Console) takes(r lifecycle.Record, out *Undeleted) error {
	service := r.Attributes.ServiceID
	if service == "" { // its record was rebuilt
		service, _ = c.ServiceOf(r.Attributes.PlanID)
	}
	offering, own, _ := c.Catalog(service, r.Attributes.PlanID)
	for _, plan := range append([]catalog.Plan{own}, offering.Plans...) {
		if plan.RestoreParameter != "" {
			out.Service, out.Plan, out.Parameter = offering.Name, plan.Name, plan.RestoreParameter
			return nil
		}
	}
	return refuse("no plan of its offering can be restored: give one a restore_parameter")
}

// keptOf finds the kept life of an instance. A record that cannot be read may be that of another of its lives.
func (c *Console) keptOf(ctx context.Context, u Undeletion) (found lifecycle.Record, err error) {
	platform, err := platformID(c.known(ctx), u.Platform)
	if err != nil {
		return found, err
	}
	var unread error
	for r, err := range paging.All(ctx, c.kept) {
		switch {
		case err != nil:
			unread = errors.Join(unread, err)
		case platform != "" && r.Key.Platform != platform, r.Key.Instance != u.ID && r.Handle() != u.ID:
		case found.Version > 0 && found.Key.Platform != r.Key.Platform:
			return found, refuse("two platforms had an instance %q: say which with --platform", u.ID)
		case found.Version > 0:
			return found, refuse("several lives of instance %q are retained: name one of them, such as %q or %q",
				u.ID, found.Handle(), r.Handle())
		default:
			found = r
		}
	}
	if unread != nil && found.Handle() != u.ID {
		return found, fmt.Errorf("not everything retained can be read: name one life, as `longshore retained` does: %w", unread)
	}
	if found.Version == 0 {
		return found, refuse("nothing is retained of an instance %q: `longshore retained` lists everything retained", u.ID)
	}
	return found, nil
}

// rebuildKept gives a kept life its record again. The next pass records that it is in its target.
func (r *rebuilding) rebuildKept(ctx context.Context, found lifecycle.Thing) error {
	was, err := r.read(ctx, found.Key.Former(found.Incarnation))
	if err != nil {
		return err
	}
	if was.Exists() {
		r.out.Kept++
		return r.mendUse(ctx, was)
	}
	service, _ := r.ServiceOf(found.PlanID)
	is, err := was.RebuildKept(found, lifecycle.Attributes{ServiceID: service, PlanID: found.PlanID}, r.Now())
	if err == nil {
		err = r.Records.Commit(ctx, ledger.Put(is))
	}
	if err != nil {
		return err
	}
	r.settled, r.out.Retained = false, append(r.out.Retained, is.Handle())
	return nil
}
