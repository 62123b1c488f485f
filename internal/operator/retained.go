package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// A Kept is what is kept of a deleted instance.
type Kept struct {
	lifecycle.Retained
	// PlatformName is empty for a platform that is not known any more.
	PlatformName string `json:"platform_name,omitempty"`
}

// Retained reads one page of what is kept of deleted instances. The error tells what could
// not be read; the rest is listed.
func (c *Console) Retained(ctx context.Context, after string) (all []Kept, next string, err error) {
	page, next, err := c.Records.AllRetained(ctx, after)
	known := c.known(ctx)
	for _, r := range page {
		r.Made.State, r.Made.Found = nil, nil // of no use to people
		all = append(all, Kept{r, known[r.Key.Platform]})
	}
	return all, next, err
}

// An Undeletion says what is to be given back.
type Undeletion struct {
	// ID is the id of the deleted instance, or its handle, which names one incarnation.
	ID string `json:"id"`
	// Platform is the id or the name of the only one that is looked at; empty for all.
	Platform string `json:"platform,omitempty"`
	// Organization and Space replace those in which it was ordered.
	Organization string `json:"organization,omitempty"`
	Space        string `json:"space,omitempty"`
}

// An Undeleted is what a developer may have back, and what to order for it.
type Undeleted struct {
	Retained  lifecycle.Retained `json:"retained"`
	Service   string             `json:"service"`
	Plan      string             `json:"plan"`
	Parameter string             `json:"parameter"`
	Handle    string             `json:"handle"`
}

// Undelete allows to make a new instance of the same offering from a retained thing.
// The developer orders it by its handle, in the place where the deleted instance was. A
// thing that is being restored or removed stays as it is.
func (c *Console) Undelete(ctx context.Context, u Undeletion) (Undeleted, error) {
	return decide(ctx, func() (Undeleted, error) {
		r, err := c.retained(ctx, u)
		if err != nil {
			return Undeleted{}, err
		}
		out := Undeleted{Handle: r.Handle()}
		if err := c.takes(r, &out); err != nil {
			return out, err
		}
		r.OrganizationGUID, r.SpaceGUID = cmp.Or(u.Organization, r.OrganizationGUID), cmp.Or(u.Space, r.SpaceGUID)
		if r.SpaceGUID == "" {
			return out, refuse("it is not known any more where it was ordered: name the organization and the space that may have it")
		}
		if u.Organization != "" || u.Space != "" {
			r.Context = nil // it told of the other place
		}
		r, free := r.Free(c.Now())
		switch {
		case free:
		case r.Phase == lifecycle.Restoring:
			return out, refuse("it is being given back as instance %q", r.Into.Instance)
		default:
			return out, refuse("its time was over, and it is being removed: there is no way back")
		}
		if err := c.Records.Commit(ctx, ledger.Put(r)); err != nil {
			return out, err
		}
		r.Made.State, r.Made.Found = nil, nil
		out.Retained = r
		return out, nil
	})
}

// takes finds a plan of the same offering that can restore the retained thing, its own
// plan first.
func (c *Console) takes(r lifecycle.Retained, out *Undeleted) error {
	service := r.ServiceID
	if service == "" { // its record was rebuilt
		service, _ = c.ServiceOf(r.PlanID)
	}
	offering, own, _ := c.Catalog(service, r.PlanID)
	for _, plan := range append([]catalog.Plan{own}, offering.Plans...) {
		if plan.RestoreParameter != "" {
			out.Service, out.Plan, out.Parameter = offering.Name, plan.Name, plan.RestoreParameter
			return nil
		}
	}
	return refuse("no plan of its offering can be restored: give one a restore_parameter")
}

// retained finds what is retained of an instance. Where a record cannot be read, it may be
// that of another of its lives.
func (c *Console) retained(ctx context.Context, u Undeletion) (found lifecycle.Retained, err error) {
	platform, err := platformID(c.known(ctx), u.Platform)
	if err != nil {
		return found, err
	}
	var unread error
	for r, err := range paging.All(ctx, c.Records.AllRetained) {
		switch {
		case err != nil:
			unread = errors.Join(unread, err)
		case platform != "" && r.Key.Platform != platform, r.Key.Instance != u.ID && r.Handle() != u.ID:
		case found.Version > 0 && found.Key.Platform != r.Key.Platform:
			return found, refuse("two platforms had an instance %q: name the platform", u.ID)
		case found.Version > 0:
			return found, refuse("several lives of instance %q are retained: name one of them, such as %q or %q", u.ID, found.Handle(), r.Handle())
		default:
			found = r
		}
	}
	if unread != nil && found.Handle() != u.ID {
		return found, fmt.Errorf("not everything that is retained can be read: name one life, as `longshore retained` does: %w", unread)
	}
	if found.Version == 0 {
		return found, refuse("nothing is retained of an instance %q: `longshore retained` lists what is", u.ID)
	}
	return found, nil
}

// rebuildRetained rebuilds the record of a retained thing.
func (r *rebuilding) rebuildRetained(ctx context.Context, found lifecycle.Orphan, h provider.Holding) (did bool, _ error) {
	was, err := r.Records.Retained(ctx, found.Key, found.Incarnation)
	if err != nil {
		return false, err
	}
	if was.Version > 0 {
		r.out.Kept++
		return r.loseRetained(ctx, was, found)
	}
	is := lifecycle.RetainedFound(found, h.Name, h.PlanID, h.RetainedUntil, r.Now())
	switch err := r.Records.Commit(ctx, ledger.Put(is)); {
	case errors.Is(err, ledger.ErrConflict):
		return true, nil
	case err != nil:
		return false, err
	}
	r.out.Retained = append(r.out.Retained, is.Handle())
	return true, nil
}

// loseRetained replaces a state that does not open, since its key is lost, with what
// the thing itself says: otherwise nobody could have it back.
func (r *rebuilding) loseRetained(ctx context.Context, was lifecycle.Retained, found lifecycle.Orphan) (did bool, _ error) {
	if was.Made.State == nil {
		return false, nil
	}
	label := vault.Label{Key: was.Key, Member: vault.State}
	lost, err := r.lost(ctx, []vault.Value{{Label: label, Sealed: was.Made.State}})
	if err != nil || len(lost) == 0 {
		return false, err
	}
	was.Made.State, was.Made.Found = nil, found.State
	if err = r.Records.Commit(ctx, ledger.Put(was)); errors.Is(err, ledger.ErrConflict) {
		return true, nil // the next pass looks again
	}
	return true, err
}
