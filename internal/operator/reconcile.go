package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/pages"
	"github.com/longshore/longshore/internal/provider"
)

// Reconciled is what became, or would become, of one target.
type Reconciled struct {
	Provider string `json:"provider"`
	Target   string `json:"target"`
	Identity string `json:"identity,omitempty"`
	// Trouble is why its operations wait; empty if the target is as it was.
	Trouble string `json:"trouble,omitempty"`
	// Unreached is why nothing is known of it.
	Unreached string `json:"unreached,omitempty"`
	// Logins counts the logins of this broker that a binding on record owns.
	Logins int `json:"logins"`
	// Locked are those that none does: they were removed since the time that the
	// target was restored to, or are being removed.
	Locked []string `json:"locked,omitempty"`
	// Unbound are bindings on record whose login is not there: they were made since.
	Unbound []string `json:"unbound,omitempty"`
	// Gone are instances on record that are not there.
	Gone []string `json:"gone,omitempty"`
	// Returned are instances on record as retained: they are there as before their
	// deletion.
	Returned []string `json:"returned,omitempty"`
	// Done says that its operations go on.
	Done bool `json:"done"`
}

// Reconcile looks at the targets of a provider, or at all if none is named, or at
// one. Of a target that was restored it locks every login that no live binding owns,
// if it is meant, and then has the target's epoch go on from where it is: the
// operations that waited go on. Nothing is removed. A target that is as it was is left
// alone. It may be stopped at any point and run again: until the end of a run the
// target stays restored, and what is locked already is locked again.
func (c *Console) Reconcile(ctx context.Context, providerName, target string, meant bool) ([]Reconciled, error) {
	var out []Reconciled
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		if providerName != "" && name != providerName {
			continue
		}
		targets, err := c.Servers[name].Targets(ctx)
		if err != nil {
			return out, fmt.Errorf("reading which targets provider %q has: %w", name, err)
		}
		for _, t := range targets {
			if target != "" && t != target {
				continue
			}
			done, err := c.reconcile(ctx, name, t, meant)
			if err != nil {
				return out, err
			}
			out = append(out, done)
		}
	}
	if len(out) == 0 && providerName != "" {
		return nil, refuse("no provider on servers that can be restored has the name %q, or it has no target %q: "+
			"`longshore reconcile` without names lists them", providerName, target)
	}
	return out, nil
}

// A reconciliation is one run at one target.
type reconciliation struct {
	*Console
	wired provider.Wired
	provider.Reconciler
	target provider.Target
	known  lifecycle.TargetEpoch
	said   provider.Epoch
	out    Reconciled
	// there are the incarnations that the target holds of what is on record.
	there map[lifecycle.Key]bool
}

func (c *Console) reconcile(ctx context.Context, name, target string, meant bool) (Reconciled, error) {
	w := c.Servers[name]
	r := &reconciliation{Console: c, wired: w, Reconciler: w.Inventory.(provider.Reconciler), out: Reconciled{Provider: name, Target: target},
		there: map[lifecycle.Key]bool{}}
	stands, err := r.survey(ctx, name, target)
	if stands || err != nil {
		return r.out, r.passing(ctx, err)
	}
	if meant {
		if err := r.begin(ctx); err != nil {
			return r.out, r.passing(ctx, err)
		}
	}
	if err := r.logins(ctx, meant); err != nil {
		return r.out, r.passing(ctx, err)
	}
	if err := r.missing(ctx); err != nil {
		return r.out, err
	}
	if !meant {
		return r.out, nil
	}
	return r.out, r.passing(ctx, r.goOn(ctx))
}

// passing notes what one target met: the others are looked at all the same.
func (r *reconciliation) passing(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	r.out.Unreached = err.Error()
	return nil
}

// called bounds a call of the provider.
func called[T any](ctx context.Context, w provider.Wired, do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout())
	defer cancel()
	return do(ctx)
}

// survey reports whether the target is as it was. What is known is read before: a step
// that goes on meanwhile would have it be later than what the target said.
func (r *reconciliation) survey(ctx context.Context, name, target string) (stands bool, err error) {
	for {
		known := r.known
		r.target, err = called(ctx, r.wired, func(ctx context.Context) (t provider.Target, err error) {
			t, r.said, err = r.Survey(ctx, target)
			return t, err
		})
		if err != nil || r.target.Identity == "" {
			return true, err // a server that does not know the broker holds nothing of it
		}
		r.out.Identity = r.target.Identity
		if known.Identity == r.target.Identity {
			behind := r.said.Check(target, provider.Epoch{Line: known.Line, Count: known.Count})
			if behind != nil {
				r.out.Trouble = behind.Error()
			}
			return behind == nil, nil
		}
		if r.known, err = r.Records.Epoch(ctx, name, r.target.Identity); err != nil {
			return false, err
		}
	}
}

// logins locks those that no live binding owns.
func (r *reconciliation) logins(ctx context.Context, meant bool) error {
	read := func(ctx context.Context, cursor string) (page []provider.Holding, next string, err error) {
		page, err = called(ctx, r.wired, func(ctx context.Context) (page []provider.Holding, err error) {
			page, next, err = r.Holdings(ctx, r.target.Name, cursor)
			return page, err
		})
		return page, next, err
	}
	for h, err := range pages.All(ctx, read) {
		if err != nil {
			return err
		}
		if h.Tags.Broker != "" && h.Tags.Broker != r.Whose.Broker {
			continue
		}
		owned, err := r.owned(ctx, h)
		if owned || err != nil || h.Tags.Binding == "" {
			if err != nil {
				return err
			}
			continue
		}
		if meant {
			if err := r.lock(ctx, h); err != nil {
				return fmt.Errorf("locking %q: %w", h.Name, err)
			}
		}
		r.out.Locked = append(r.out.Locked, fmt.Sprintf("%s (%s)", h.Name, nameOf(keyOf(h))))
	}
	return nil
}

// lock has the login be as in quarantine: nobody gets in, and what it has is kept.
func (r *reconciliation) lock(ctx context.Context, h provider.Holding) error {
	q, ok := r.wired.Inventory.(provider.Quarantiner)
	if !ok {
		return errors.New("the provider cannot lock a login")
	}
	h.Epoch = r.said // else the step would refuse a target that was restored
	_, err := called(ctx, r.wired, func(ctx context.Context) (bool, error) { return true, q.Quarantine(ctx, h) })
	return err
}

// owned reports whether a record says that the thing is to be in use. One of another life
// of its id is not what the record is about, whatever state that is in.
func (r *reconciliation) owned(ctx context.Context, h provider.Holding) (bool, error) {
	key := keyOf(h)
	rec, err := r.Records.Record(ctx, key, r.Now())
	if err != nil {
		return false, err
	}
	if rec.Exists() && rec.Incarnation == h.Tags.Incarnation {
		r.there[key] = true
		live := rec.State == lifecycle.Ready || rec.State == lifecycle.Creating || rec.State == lifecycle.Updating
		if live && key.Binding != "" {
			r.out.Logins++
		}
		return live, nil
	}
	if key.Binding == "" {
		kept, err := r.Records.Retained(ctx, key, h.Tags.Incarnation)
		if err == nil && kept.Version > 0 && kept.Name != h.Name {
			r.out.Returned = append(r.out.Returned, fmt.Sprintf("%s (%s)", h.Name, nameOf(key)))
		}
		return false, err
	}
	q, err := r.Records.Quarantine(ctx, r.out.Provider, h.Name)
	return q.Version > 0 && q.Incarnation == h.Tags.Incarnation && q.Phase == lifecycle.Released, err
}

// missing finds what is on record and is not there.
func (r *reconciliation) missing(ctx context.Context) error {
	for cursor := ""; ; {
		page, next, err := r.Records.ScanPage(ctx, cursor)
		if err != nil {
			return err
		}
		for _, rec := range page.Records {
			here := rec.Provider == r.out.Provider && rec.Made.Target.Identity == r.target.Identity
			if live := rec.State == lifecycle.Ready || rec.State == lifecycle.Updating; !here || !live || r.there[rec.Key] {
				continue
			}
			if rec.IsBinding() {
				r.out.Unbound = append(r.out.Unbound, nameOf(rec.Key))
			} else {
				r.out.Gone = append(r.out.Gone, nameOf(rec.Key))
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

// underWay is put behind the history that a target is known to have been on while a run
// works on it. No target is on such a history: whatever the run changes there, and
// wherever it dies, the target counts as restored until the end of a run.
const underWay = " (being reconciled)"

// begin has the target be later than what it was restored to, and still count as
// restored: one that is restored again meanwhile is seen in the end.
func (r *reconciliation) begin(ctx context.Context) error {
	was := provider.Epoch{Line: r.known.Line, Count: r.known.Count}
	if !strings.HasSuffix(r.known.Line, underWay) {
		r.known.Line += underWay
		if err := r.keep(ctx); err != nil {
			return err
		}
	}
	next, err := called(ctx, r.wired, func(ctx context.Context) (provider.Epoch, error) {
		return r.Advance(ctx, r.target, r.said, was)
	})
	if err == nil {
		r.said = next
	}
	return err
}

// goOn has operations go on.
func (r *reconciliation) goOn(ctx context.Context) error {
	now, err := called(ctx, r.wired, func(ctx context.Context) (at provider.Epoch, err error) {
		_, at, err = r.Survey(ctx, r.target.Name)
		return at, err
	})
	if err == nil {
		err = now.Check(r.target.Name, r.said)
	}
	if err != nil {
		return err
	}
	r.known.Line, r.known.Count = now.Line, now.Count
	err = r.keep(ctx)
	r.out.Done = err == nil
	return err
}

// keep writes what is known. Only another run writes it meanwhile.
func (r *reconciliation) keep(ctx context.Context) error {
	err := r.Records.Commit(ctx, ledger.PutEpoch(r.known))
	if errors.Is(err, ledger.ErrConflict) {
		return errors.New("somebody else reconciles it: wait, and run the command again")
	}
	r.known.Version++
	return err
}
