package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/work/reaper"
)

// A Rebuilt says which records were rebuilt, and which could not be.
type Rebuilt struct {
	Instances []string `json:"instances,omitempty"`
	Bindings  []string `json:"bindings,omitempty"`
	// Rotate are bindings whose credentials are lost. Applications that have the credentials go on
	// working, but nobody can fetch them any more.
	Rotate []string `json:"rotate,omitempty"`
	// Parameters are instances whose parameters are lost. Like Rotate and Failed, the list includes
	// what an earlier run has found.
	Parameters []string `json:"parameters,omitempty"`
	// Failed are instances and bindings whose running operation needed a value that no longer opens.
	Failed []string `json:"failed,omitempty"`
	// Damaged describes the records that could not be read, and are lost.
	Damaged []string `json:"damaged,omitempty"`
	// Kept counts the things that had a record.
	Kept int `json:"kept"`
	// Gone are instances that have a record but do not exist: they were deleted after the time to
	// which the table was restored.
	Gone []string `json:"gone,omitempty"`
	// Released are things that have a record again, and were taken out of quarantine.
	Released []string `json:"released,omitempty"`
	// Retained are retained things that have a record again.
	Retained []string `json:"retained,omitempty"`
	// Unknown are things whose tags say too little, each with the reason.
	Unknown []string `json:"unknown,omitempty"`
	// Restless is the number of listings if each differed from the one before, so that each may
	// have missed something; zero if two in a row were equal.
	Restless int `json:"restless,omitempty"`
}

// passes bounds how often everything is listed. A listing may miss things that exist: while
// others make and delete things, an item may move from a later page to one that was read before.
const passes = 10

// A rebuilding is one run of Rebuild.
type rebuilding struct {
	*Console
	out     Rebuilt
	derived map[lifecycle.Key]bool
	settled bool                   // a pass has had nothing to do so far
	exists  map[lifecycle.Key]bool // everything that any pass has listed, by key and incarnation
}

// Rebuild gives a record to every existing thing that has none, from its tags and its plan.
// Existing records stay, but lose the sealed values that do not open because their key is lost.
// Rebuild lists everything until two passes in a row have found the same and the last one had nothing
// to do. It then records whose table this is, and the reaper resumes. If that never happens, the
// result says so, and the reaper stays halted. Rebuild may be stopped at any point and run again.
func (c *Console) Rebuild(ctx context.Context, _ None) (Rebuilt, error) {
	out, err := c.rebuild(ctx)
	out.Damaged = c.Damaged
	if err == nil && c.Rebuilt != nil {
		err = c.Rebuilt(ctx)
	}
	return out, err
}

func (c *Console) rebuild(ctx context.Context) (Rebuilt, error) {
	r := &rebuilding{Console: c, derived: map[lifecycle.Key]bool{}, exists: map[lifecycle.Key]bool{}}
	var before []lifecycle.Record
	var faults error
	for rec, err := range c.Records.Scan(ctx) {
		if err != nil {
			faults = errors.Join(faults, err)
			continue
		}
		before = append(before, rec)
	}
	if ctx.Err() != nil {
		return r.out, ctx.Err()
	}
	var unread []string
	if faults != nil { // records that cannot be read do not stop the rest
		unread = []string{fmt.Sprintf("records that cannot be read: %v", faults)}
	}
	if err := r.takeOver(ctx); err != nil {
		return r.out, err
	}
	var last map[string]bool
	rests := false
	for n := 0; n < passes && !rests; n++ {
		r.out.Kept, r.out.Unknown = 0, slices.Clone(unread)
		things, err := r.list(ctx)
		if err == nil && n == 0 { // nothing is given up before everything can be listed
			err = r.lose(ctx, before)
		}
		if err != nil {
			return r.out, err
		}
		seen, err := r.pass(ctx, things)
		if err != nil {
			return r.out, err
		}
		rests = r.settled && maps.Equal(seen, last)
		last = seen
	}
	if !rests {
		r.out.Restless = passes
	}
	if err := r.release(ctx); err != nil {
		return r.out, err
	}
	if err := r.gone(ctx, before); err != nil {
		return r.out, err
	}
	if err := c.Records.Relist(ctx, before); err != nil {
		return r.out, err
	}
	if !rests { // a thing that was missed must not be taken for an orphan
		return r.out, nil
	}
	return r.out, reaper.Resume(ctx, c.Records, c.Whose, c.Now())
}

// list reads all pages of all providers. Of two lives of an id, the later one comes first: it gets the record.
func (r *rebuilding) list(ctx context.Context) (all []lifecycle.Thing, _ error) {
	for name, inventory := range r.Inventories {
		for h, err := range paging.All(ctx, inventory.List) {
			if err != nil {
				return nil, fmt.Errorf("listing what provider %q holds: %w", name, err)
			}
			if h.Tags.Broker != "" && h.Tags.Broker != r.Whose.Broker {
				continue // another broker's: with a record here, this broker would delete it one day
			}
			t := lifecycle.Thing{Name: h.Name, Key: keyOf(h), Incarnation: h.Tags.Incarnation, Of: h.Tags.Of, Provider: name,
				Broker: h.Tags.Broker, Target: h.Target, Origin: h.Tags.Origin, State: h.State.Encode(), Created: h.Created,
				KeptUntil: h.RetainedUntil, PlanID: h.PlanID}
			all = append(all, t)
			if t.KeptUntil.IsZero() { // otherwise its instance is deleted
				r.exists[t.Key.Former(t.Incarnation)] = true
			}
		}
	}
	slices.SortStableFunc(all, func(a, b lifecycle.Thing) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), b.Created.Compare(a.Created))
	})
	return all, nil
}

func keyOf(h provider.Holding) lifecycle.Key {
	return lifecycle.Key{Platform: h.Tags.Platform, Instance: h.Tags.Instance, Binding: h.Tags.Binding}
}

// pass rebuilds the record of each thing that has none. It returns the things that it saw.
func (r *rebuilding) pass(ctx context.Context, things []lifecycle.Thing) (map[string]bool, error) {
	seen := map[string]bool{}
	r.settled = true
	// Instances come first: a binding takes the incarnation of its instance.
	for _, bindings := range []bool{false, true} {
		for _, t := range things {
			if t.Key.IsBinding() != bindings {
				continue
			}
			seen[t.Provider+" "+t.Name] = true
			if t.KeptUntil.IsZero() && r.derived[t.Key] {
				continue
			}
			switch err := r.restore(ctx, t); {
			case errors.Is(err, ledger.ErrUnreadable):
				r.unknown(t, fmt.Sprintf("its record cannot be read: %v", err))
			case errors.Is(err, ledger.ErrConflict): // somebody else wrote the record: the next pass looks again
				r.settled = false
			case err != nil:
				return seen, err
			}
		}
	}
	return seen, nil
}

// gone finds the instances that were ready before anything was listed, still are ready, and are in no listing.
func (r *rebuilding) gone(ctx context.Context, before []lifecycle.Record) error {
	for _, was := range before {
		offering, _, _ := r.plan(was.Attributes) // none if its plan has left the catalog
		if was.IsBinding() || was.Key.Life != "" || r.Inventories[offering.Provider] == nil || was.State != lifecycle.Ready ||
			r.exists[was.Key.Former(was.Incarnation)] {
			continue
		}
		i, err := r.read(ctx, was.Key)
		if err != nil {
			return err
		}
		if i.State == lifecycle.Ready && i.Incarnation == was.Incarnation {
			r.out.Gone = append(r.out.Gone, was.Key.Instance)
		}
	}
	return nil
}

// release takes things that have a record again out of quarantine.
func (r *rebuilding) release(ctx context.Context) error {
	for former, err := range paging.All(ctx, r.orphans) {
		if errors.Is(err, ledger.ErrUnreadable) {
			continue // the result names it
		}
		if err != nil {
			return err
		}
		i, err := r.read(ctx, former.Key.Current())
		if err != nil {
			return err
		}
		if i.State != lifecycle.Ready || i.Incarnation != former.Incarnation {
			continue
		}
		if former, err = former.BeginRelease(r.Begin(r.OperationTimeout)); err != nil {
			continue // it is released
		}
		_, err = r.drive(ctx, "rebuild", former, ledger.Check(i))
		if errors.Is(err, ledger.ErrConflict) { // the reaper finds it
			continue
		}
		if err != nil {
			return err
		}
		r.out.Released = append(r.out.Released, former.Kept.Name)
	}
	return nil
}

// restore rebuilds the record of one thing that has none.
func (r *rebuilding) restore(ctx context.Context, found lifecycle.Thing) error {
	now := r.Now()
	if found.Broker == "" || found.Key.Platform == "" || found.Key.Instance == "" || found.Incarnation == "" {
		r.unknown(found, "its tags do not name an owner")
		return nil
	}
	if !found.KeptUntil.IsZero() {
		return r.rebuildKept(ctx, found)
	}
	i, err := r.read(ctx, found.Key.InstanceKey())
	if err != nil {
		return err
	}
	if found.Key.IsBinding() {
		return r.rebuildBinding(ctx, found, i)
	}
	if i.State != lifecycle.Absent {
		r.out.Kept++
		return r.mendUse(ctx, i)
	}
	service, ok := r.ServiceOf(found.PlanID)
	if !ok {
		r.unknown(found, fmt.Sprintf("no offering has its plan %q", found.PlanID))
		return nil
	}
	offering, _, _ := r.Catalog(service, found.PlanID)
	a := lifecycle.Attributes{ServiceID: service, PlanID: found.PlanID, DashboardURL: offering.DashboardOf(found.Key.Instance)}
	if i, err = i.Rebuild(found, a, now); err != nil {
		return err
	}
	changes := []ledger.Change{ledger.Put(i)}
	if i.Made.Target.Name != "" {
		use, err := r.Records.TargetUse(ctx, i.TargetUse(now))
		if err != nil {
			return err
		}
		changes = append(changes, ledger.Put(use))
	}
	return r.rebuilt(ctx, i, changes...)
}

// mendUse records that an instance or a kept life is in its target, if nothing says so.
func (r *rebuilding) mendUse(ctx context.Context, i lifecycle.Record) error {
	if !i.Exists() || i.Made.Target.Name == "" {
		return nil
	}
	use, err := r.Records.TargetUse(ctx, i.TargetUse(r.Now()))
	if err != nil || use.Version > 0 {
		return err
	}
	return r.Records.Commit(ctx, ledger.Put(use), ledger.Check(i))
}

func (r *rebuilding) unknown(found lifecycle.Thing, why string) {
	r.out.Unknown = append(r.out.Unknown, found.Name+": "+why)
}

// rebuilt commits and notes a rebuilt record.
func (r *rebuilding) rebuilt(ctx context.Context, is lifecycle.Record, changes ...ledger.Change) error {
	if err := r.Records.Commit(ctx, changes...); err != nil {
		return err
	}
	key := is.Key
	r.derived[key], r.settled = true, false
	if key.IsBinding() {
		r.out.Bindings = append(r.out.Bindings, nameOf(key))
	} else {
		r.out.Instances = append(r.out.Instances, nameOf(key))
	}
	r.note(is)
	return nil
}

func (r *rebuilding) rebuildBinding(ctx context.Context, found lifecycle.Thing, i lifecycle.Record) error {
	b, err := r.read(ctx, found.Key)
	if err != nil {
		return err
	}
	pointer, err := r.Records.Pointer(ctx, found.Key.Platform, found.Key.Binding)
	switch {
	case err != nil:
		return err
	case b.State != lifecycle.Absent:
		r.out.Kept++
		if !b.Exists() || pointer.Version > 0 {
			return nil
		}
		return r.Records.Commit(ctx, ledger.Put(lifecycle.Pointer{Key: found.Key}), ledger.Check(b))
	case i.State != lifecycle.Ready || i.Incarnation != found.Of:
		r.unknown(found, "its instance does not exist, or is being changed")
		return nil
	case pointer.Version > 0 && pointer.Key != found.Key:
		r.unknown(found, "another instance has a binding with its id")
		return nil
	}
	b, err = b.Rebuild(found, lifecycle.Attributes{ServiceID: i.Attributes.ServiceID, PlanID: i.Attributes.PlanID}, r.Now())
	if err != nil {
		return err
	}
	return r.rebuilt(ctx, b, ledger.Put(b), ledger.Put(lifecycle.Pointer{Version: pointer.Version, Key: found.Key}),
		ledger.Check(i))
}
