package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// A Reconciled says what a reconciliation did, or would do, with one target.
type Reconciled struct {
	Provider string `json:"provider"`
	Target   string `json:"target"`
	Identity string `json:"identity,omitempty"`
	// Trouble is why operations on the target wait; empty if the target is as the broker left it.
	Trouble string `json:"trouble,omitempty"`
	// Unreached is why the target could not be looked at.
	Unreached string `json:"unreached,omitempty"`
	// Logins counts the logins of this broker that belong to a recorded binding.
	Logins int `json:"logins"`
	// Locked are the logins that belong to no binding: these were removed after the time to which
	// the target was restored, or are being removed. The list also has deleted instances that
	// should be kept out of use but were open again.
	Locked []string `json:"locked,omitempty"`
	// Unbound are recorded bindings without a login: they were made after the time to which the target was restored.
	Unbound []string `json:"unbound,omitempty"`
	// Gone are recorded instances that are not in the target.
	Gone []string `json:"gone,omitempty"`
	// Done says that operations on the target have resumed.
	Done bool `json:"done"`
}

// A Scope says which targets to reconcile: an empty name stands for all.
type Scope struct {
	Provider string `json:"provider,omitempty"`
	Target   string `json:"target,omitempty"`
	// Meant says that the reconciliation is to be carried out; otherwise the result only says what would be done.
	Meant bool `json:"meant,omitempty"`
}

// Reconcile looks at the targets of the scope. If a target was restored, or another broker changed
// it, and Meant is true, it locks every login that no live binding owns, and then records the
// target's current epoch, so that waiting operations resume. It removes nothing, and leaves other
// targets alone. It may be stopped at any point and run again: until the end of a run, the target
// counts as restored, and locked logins are locked again. The error says which providers' targets
// are not known; the result has those of the other providers.
func (c *Console) Reconcile(ctx context.Context, s Scope) ([]Reconciled, error) {
	var out []Reconciled
	var unread []error
	for r, err := range c.reconciliations(ctx, s) {
		if err != nil {
			unread = append(unread, err)
			continue
		}
		if err := r.run(ctx, s.Meant); err != nil {
			return out, err
		}
		out = append(out, r.out)
	}
	if err := errors.Join(unread...); err != nil {
		return out, fmt.Errorf("not every server could be checked: start the broker if it is stopped: %w", err)
	}
	switch w, known := c.Servers[s.Provider]; {
	case len(out) > 0 || s.Provider == "":
	case known:
		names, _ := w.Targets(ctx)
		return nil, refuse("provider %q has no target %q: the known ones are %s", s.Provider, s.Target, strings.Join(names, ", "))
	case len(c.Servers) == 0:
		return nil, refuse("no provider of this broker uses servers that can be restored: there is nothing to reconcile")
	default:
		return nil, refuse("no provider whose servers can be restored is called %q: the known ones are %s", s.Provider,
			strings.Join(slices.Sorted(maps.Keys(c.Servers)), ", "))
	}
	return out, nil
}

// A reconciliation is one run on one target.
type reconciliation struct {
	*Console
	wired wired.Provider
	wired.Reconciler
	target provider.Target
	known  ledger.TargetEpoch
	said   target.Epoch
	copied bool // another broker has raised it, and it was not restored
	out    Reconciled
	// there are the recorded incarnations that the target holds.
	there map[lifecycle.Key]bool
}

// reconciliations yields a run for each target of the scope, and an error for each provider whose targets are not known.
func (c *Console) reconciliations(ctx context.Context, s Scope) iter.Seq2[*reconciliation, error] {
	return func(yield func(*reconciliation, error) bool) {
		for name, w := range sorted.Map(c.Servers) {
			if s.Provider != "" && name != s.Provider {
				continue
			}
			targets, err := w.Targets(ctx)
			if err != nil {
				if !yield(nil, fmt.Errorf("reading which targets provider %q has: %w", name, err)) {
					return
				}
				continue
			}
			for _, t := range targets {
				r := &reconciliation{Console: c, wired: w, Reconciler: w.Reconciler,
					out: Reconciled{Provider: name, Target: t}, there: map[lifecycle.Key]bool{}}
				if (s.Target == "" || t == s.Target) && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// run reconciles the target, or looks what would be done.
func (r *reconciliation) run(ctx context.Context, meant bool) error {
	stands, err := r.survey(ctx)
	if stands || err != nil {
		return r.passing(ctx, err)
	}
	if meant {
		err = r.begin(ctx)
	}
	if err == nil {
		err = r.logins(ctx, meant)
	}
	if err != nil {
		return r.passing(ctx, err)
	}
	if err := r.missing(ctx); err != nil || !meant {
		return err
	}
	return r.passing(ctx, r.goOn(ctx))
}

// takeOver makes this broker the owner of targets that another broker has raised. It locks nothing,
// since its caller gives a record to everything there. It leaves restored targets, and those that
// cannot be reached, to the listing.
func (c *Console) takeOver(ctx context.Context) error {
	for r, err := range c.reconciliations(ctx, Scope{}) {
		if err != nil {
			return err
		}
		if _, err := r.survey(ctx); err != nil || !r.copied {
			continue
		}
		if err = r.begin(ctx); err == nil {
			err = r.goOn(ctx)
		}
		if err != nil {
			return fmt.Errorf("taking target %q over: %w", r.out.Target, err)
		}
	}
	return ctx.Err()
}

// passing notes an error of one target, so that the other targets are still looked at.
func (r *reconciliation) passing(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	r.out.Unreached = err.Error()
	return nil
}

// looked surveys the target, within the time that a call may take.
func (r *reconciliation) looked(ctx context.Context) (provider.Target, target.Epoch, error) {
	ctx, cancel := context.WithTimeout(ctx, r.wired.Timeout())
	defer cancel()
	return r.Survey(ctx, r.out.Target)
}

// survey reports whether the target is as this broker left it. It reads the known epoch before it
// asks the target: a step that runs meanwhile may raise the epoch, which would make the target seem
// restored. The record that is read after the survey says who raised the target.
func (r *reconciliation) survey(ctx context.Context) (stands bool, err error) {
	for asked := false; ; asked = true {
		known := r.known
		r.target, r.said, err = r.looked(ctx)
		if err != nil || r.target.Identity == "" {
			return true, err // a server that does not know the broker holds nothing of this broker's
		}
		r.out.Identity = r.target.Identity
		if r.known, err = r.Records.Epoch(ctx, r.out.Provider, r.target.Identity); err != nil {
			return false, err
		}
		if !asked || known.Identity != r.target.Identity {
			continue
		}
		why := r.said.Check(r.out.Target, known.Epoch)
		if r.copied = why == nil && r.known.Foreign(r.said); r.copied {
			why = target.Copied(r.out.Target)
		}
		if why != nil && known.Version != r.known.Version {
			continue // it was worked on meanwhile
		}
		if why != nil {
			r.out.Trouble = why.Error()
		}
		return why == nil, nil
	}
}

// logins locks the logins that no live binding owns, and the instances that are to be kept out of use.
func (r *reconciliation) logins(ctx context.Context, meant bool) error {
	read := func(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
		ctx, cancel := context.WithTimeout(ctx, r.wired.Timeout())
		defer cancel()
		return r.Holdings(ctx, r.target.Name, cursor)
	}
	for h, err := range paging.All(ctx, read) {
		if err != nil {
			return err
		}
		if h.Tags.Broker != r.Whose.Broker {
			continue
		}
		shut, err := r.isToBeShut(ctx, &h)
		if err != nil {
			return err
		}
		if !shut {
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

// lock puts the thing out of use as in quarantine: nobody can log in, and the data stays.
func (r *reconciliation) lock(ctx context.Context, h provider.Holding) error {
	if r.wired.Quarantiner == nil {
		return errors.New("the provider cannot lock anything")
	}
	h.Epoch = r.said // otherwise the step would refuse a target that was restored
	ctx, cancel := context.WithTimeout(ctx, r.wired.Timeout())
	defer cancel()
	return r.wired.Quarantiner.Quarantine(ctx, h)
}

// isToBeShut reports whether the thing is open but must be shut: a login that no record shows in
// use, or an instance that is kept out of use until a date, which is then set in h. A record of
// another incarnation, whatever its state, says nothing about the thing.
func (r *reconciliation) isToBeShut(ctx context.Context, h *provider.Holding) (bool, error) {
	key := keyOf(*h)
	rec, err := r.read(ctx, key)
	if err != nil {
		return false, err
	}
	if rec.Exists() && rec.Incarnation == h.Tags.Incarnation {
		r.there[key] = true
		live := rec.State == lifecycle.Ready || rec.State == lifecycle.Creating || rec.State == lifecycle.Updating
		if live && key.Binding != "" {
			r.out.Logins++
		}
		return !live && key.IsBinding(), nil
	}
	life, err := r.read(ctx, key.Former(h.Tags.Incarnation))
	if err != nil || key.IsBinding() {
		return !life.IsReleased(), err
	}
	if life.State != lifecycle.Quarantined || life.OfOrphan() || !h.RetainedUntil.IsZero() {
		return false, nil
	}
	h.RetainedUntil = life.Kept.Until
	return true, nil
}

// missing finds what is on record but not in the target.
func (r *reconciliation) missing(ctx context.Context) error {
	for rec, err := range r.Records.Scan(ctx) {
		if err != nil {
			return err
		}
		here := rec.Provider == r.out.Provider && rec.Made.Target.Identity == r.target.Identity
		if live := rec.State == lifecycle.Ready || rec.State == lifecycle.Updating; !here || !live ||
			rec.Key.Life != "" || r.there[rec.Key] {
			continue
		}
		if rec.IsBinding() {
			r.out.Unbound = append(r.out.Unbound, nameOf(rec.Key))
		} else {
			r.out.Gone = append(r.out.Gone, nameOf(rec.Key))
		}
	}
	return nil
}

// underWay is appended to the recorded line of a target while a run works on it. No target is on
// such a line, so wherever the run dies, the target counts as restored until the end of another run.
const underWay = " (being reconciled)"

// errMoved says that the target has changed since it was surveyed.
var errMoved = errors.New("somebody else is changing it: stop the other broker that has this one's identity, " +
	"and run the command again")

// begin raises the target to an epoch later than any, while it still counts as restored: if it is
// restored again meanwhile, or another broker raises it, the end of the run notices.
func (r *reconciliation) begin(ctx context.Context) error {
	r.known.Line = strings.TrimSuffix(r.known.Line, underWay) + underWay
	r.known.Reserved = r.NewID()
	if err := r.keep(ctx); err != nil {
		return err
	}
	to := target.Epoch{Line: r.said.Line, Count: max(r.said.Count, r.known.Count) + 1, Mark: r.known.Reserved}
	ctx, cancel := context.WithTimeout(ctx, r.wired.Timeout())
	defer cancel()
	at, err := r.Advance(ctx, r.target, r.said, to)
	if err == nil && at != to {
		err = errMoved
	}
	r.said = to
	return err
}

// goOn lets operations on the target resume.
func (r *reconciliation) goOn(ctx context.Context) error {
	_, now, err := r.looked(ctx)
	if err == nil && now != r.said {
		err = errMoved
	}
	if err != nil {
		return err
	}
	r.known.Known = target.Known{Epoch: now}
	err = r.keep(ctx)
	r.out.Done = err == nil
	return err
}

// keep records what is known of the target. Only another run may write that record meanwhile.
func (r *reconciliation) keep(ctx context.Context) error {
	err := r.Records.Commit(ctx, ledger.Put(r.known))
	if errors.Is(err, ledger.ErrConflict) {
		return errors.New("somebody else is reconciling it: wait, and run the command again")
	}
	r.known.Version++
	return err
}
