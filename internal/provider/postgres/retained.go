package postgres

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A plan's setting retain_days has the database of a deleted instance be retained. It
// is closed to all logins first; then it and its owner role are renamed in one
// transaction, and their labels say until when. It becomes another instance in the
// same way.

// retainedNames are those of what is retained of an instance, which differ from those
// of its other lives.
func retainedNames(t provider.Tags) names {
	return namesAs(t.Retained())
}

// A retaining has the database of an instance be under a retained name.
type retaining struct {
	hosted.Retaining
	to names
}

// retaining is what a deprovision does with what there is; nil if that is not kept.
func (p *Provider) retaining(in provider.Instance) (*retaining, error) {
	m, err := settingsOf(in.Snapshot)
	if err != nil {
		return nil, err
	}
	r := hosted.RetainingOf(in, m.RetainDays, p.now())
	if r == nil {
		return nil, nil
	}
	return &retaining{*r, retainedNames(r.As)}, nil
}

// giveBack has what was retained as other tags be so again.
func giveBack(of, as provider.Tags, until time.Time) *retaining {
	return &retaining{hosted.Retaining{Tags: of, As: as, Until: until, Back: true}, retainedNames(as)}
}

// taken gives back what was retained and is not the instance yet; nil for all else.
func (s standing) taken() *retaining {
	label, _ := s.owner.label()
	f := factsOf(label)
	if f.Ready || f.Was == nil || !s.database.exists() {
		return nil
	}
	return giveBack(label.Tags, *f.Was, f.Until)
}

// isRetained reports whether that is what stands.
func isRetained(tags provider.Tags, now standing) (hosted.Label, bool) {
	label, ok := now.owner.label()
	return label, ok && label.Tags == tags && label.Locked == lockedRetained && now.database.exists()
}

// next is what comes next until nothing stands under the instance's own names.
func (r *retaining) next(now standing) (decision, error) {
	label, ours := labelled(now.owner.thing, r.Tags)
	switch {
	case now.owner.exists() && !ours, now.database.exists() && !now.owned(r.Tags):
		return decision{}, notOurs()
	case !ours || !now.database.exists() || !factsOf(label).Ready && !r.Back:
		return remove(r.Tags, now) // half made
	case label.Locked != lockedRetained || now.database.open:
		label.Locked = lockedRetained
		return decision{act: shutDatabase{label.Text()}}, nil
	}
	f := factsOf(label)
	f.Ready, f.Until, f.From, f.Was = true, r.Until, "", nil
	label.Tags, label.Locked = r.As, lockedRetained
	owner := f.text(label)
	label.Facts = nil
	return decision{act: renameInstance{to: r.to, owner: owner, database: label.Text()}}, nil
}

// deprovision removes the instance, or retains it.
func (p *Provider) deprovision(ctx context.Context, s *site, n names, in provider.Instance) (*provider.Status, *provider.Retained, error) {
	tags := provider.TagsOf(in)
	next := func(now standing) (decision, error) { return remove(tags, now) }
	r, err := p.retaining(in)
	if err != nil {
		return nil, nil, err
	}
	if r == nil {
		_, unfinished, err := s.run(ctx, n, next)
		return unfinished, nil, err
	}
	kept, err := s.look(ctx, r.to)
	if err != nil {
		return nil, nil, s.Explain(err)
	}
	switch label, _ := kept.owner.label(); {
	case !kept.owner.exists() && !kept.database.exists():
		next = r.next
	case label.Tags != r.As || label.Locked != lockedRetained:
		return nil, nil, notOurs()
	} // else a late call has made what stands under its name
	if _, unfinished, err := s.run(ctx, n, next); err != nil || unfinished != nil {
		return unfinished, nil, err
	}
	if kept, err = s.look(ctx, r.to); err != nil {
		return nil, nil, s.Explain(err)
	}
	if label, is := isRetained(r.As, kept); is && !r.Back {
		return nil, &provider.Retained{Name: r.to.owner, Until: factsOf(label).Until}, nil
	}
	return nil, nil, nil
}

// RemoveRetained implements provider.Retainer.
func (p *Provider) RemoveRetained(ctx context.Context, h provider.Holding) (provider.Status, error) {
	n := retainedNames(h.Tags)
	if h.Name != n.owner || h.Tags.Binding != "" {
		return provider.Status{}, notOurs()
	}
	in := provider.Instance{Broker: h.Tags.Broker, Platform: h.Tags.Platform, ID: h.Tags.Instance, Target: h.Target, Epoch: h.Epoch}
	s, learnt, err := p.at(ctx, in)
	if err != nil || learnt != nil {
		return hosted.Settle(learnt, err, provider.Status{})
	}
	defer s.Leave()
	_, unfinished, err := s.run(ctx, n, func(now standing) (decision, error) {
		if label, ok := now.owner.label(); now.owner.exists() && (!ok || label.Tags != h.Tags) {
			return decision{}, notOurs()
		}
		return remove(h.Tags, now)
	})
	return hosted.Settle(unfinished, err, provider.Status{})
}

// move is what comes next until what was retained is the instance.
func (w *wantedInstance) move(ctx context.Context, s *site, from provider.Tags) func(standing) (decision, error) {
	kept := retainedNames(from)
	return func(now standing) (decision, error) {
		if now.owner.exists() || now.database.exists() {
			return w.provision(now)
		}
		there, err := s.look(ctx, kept)
		if err != nil {
			return decision{}, s.Explain(err)
		}
		if _, is := isRetained(from, there); !is {
			return decision{}, noRetained()
		}
		f := w.facts
		f.From, f.Until, f.Was = kept.owner, w.keptUntil, &from
		return decision{act: takeInstance{from: kept, owner: f.text(w.label()), database: w.label().Text()}}, nil
	}
}
