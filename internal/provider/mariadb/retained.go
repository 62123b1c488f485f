package mariadb

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A plan's setting retain_days has the database of a deleted instance be retained. No
// account gets in any more; then its record says until when, and is no more found as the
// instance's. The database keeps its name, which is of this life alone, and the accounts
// that its views and triggers run as. It becomes another instance in the same way.

// retainedNames are those of what is retained of an instance, which differ from those
// of its other lives.
func retainedNames(t provider.Tags) names {
	return names{instance: hosted.Name(prefixDatabase, t.Retained()), leaving: true}
}

// A retaining has the database of an instance be under a retained name.
type retaining struct{ hosted.Retaining }

// giveBack is for what was retained, and has not become the instance.
func giveBack(r record) retaining {
	return retaining{hosted.Retaining{Tags: r.label.Tags, As: *r.facts.Was, Until: r.facts.Until, Back: true}}
}

// isRetained reports whether that is what stands.
func isRetained(tags provider.Tags, now standing) bool {
	r := now.instance
	return r.exists() && r.label.Tags == tags && r.facts.Phase == retained && now.database
}

// next is the next act until nothing stands under the instance's own name.
func (r retaining) next(now standing) (act, error) {
	in := now.instance
	switch {
	case !in.exists() || !now.database || in.label.Tags != r.Tags || in.facts.Phase == making: // half made, or of another life
		return remove(r.Tags, now)
	case in.facts.Phase != ready && !r.Back:
		return remove(r.Tags, now)
	}
	for _, l := range now.logins {
		if a := l.end(true); a != nil && l.of(r.Tags) {
			return a, nil
		}
	}
	if len(now.strangers) > 0 {
		return revoke{now.strangers}, nil
	}
	in.instance, in.label.Tags, in.label.Locked = retainedNames(r.As).instance, r.As, ""
	in.facts = facts{Phase: retained, Collation: in.facts.Collation, Until: r.Until}
	return move{in}, nil
}

// deprovision removes the instance, or retains it.
func (p *Provider) deprovision(ctx context.Context, s *site, in provider.Instance) (*provider.Status, *provider.Retained, error) {
	tags := provider.TagsOf(in)
	n := namesOf(tags)
	n.leaving = true
	next := func(now standing) (act, error) { return remove(tags, now) }
	t, err := settingsOf(in.Snapshot)
	if err != nil {
		return nil, nil, err
	}
	keep := hosted.RetainingOf(in, t.RetainDays, p.now())
	if keep == nil {
		_, unfinished, err := s.run(ctx, n, next)
		return unfinished, nil, err
	}
	to := retainedNames(keep.As)
	kept, err := s.Server.look(ctx, to)
	if err != nil {
		return nil, nil, s.Explain(err)
	}
	switch {
	case !kept.instance.exists():
		next = retaining{*keep}.next
	case kept.instance.label.Tags != keep.As:
		return nil, nil, notOurs("instance")
	} // else a late call has made what stands under its name
	if _, unfinished, err := s.run(ctx, n, next); err != nil || unfinished != nil {
		return unfinished, nil, err
	}
	if kept, err = s.Server.look(ctx, to); err != nil {
		return nil, nil, s.Explain(err)
	}
	if isRetained(keep.As, kept) && !keep.Back {
		return nil, &provider.Retained{Name: to.instance, Until: kept.instance.facts.Until}, nil
	}
	return nil, nil, nil
}

// RemoveRetained implements provider.Retainer.
func (p *Provider) RemoveRetained(ctx context.Context, h provider.Holding) (provider.Status, error) {
	n := retainedNames(h.Tags)
	if h.Name != n.instance || h.Tags.Binding != "" {
		return provider.Status{}, notOurs("instance")
	}
	return p.step(ctx, h.Target, h.Epoch, func(s *site) (*provider.Status, error) {
		_, unfinished, err := s.run(ctx, n, func(now standing) (act, error) {
			if r := now.instance; r.exists() && r.label.Tags != h.Tags {
				return nil, notOurs("instance")
			}
			return remove(h.Tags, now)
		})
		return unfinished, err
	})
}

// move is what comes next until what was retained is the instance.
func (w wanted) move(ctx context.Context, s *site, from provider.Source) func(standing) (act, error) {
	as, kept := from.Tags(w.tags.Broker), retainedNames(from.Tags(w.tags.Broker))
	return func(now standing) (act, error) {
		if now.instance.exists() || now.database {
			return w.provision(now)
		}
		there, err := s.Server.look(ctx, kept)
		if err != nil {
			return nil, s.Explain(err)
		}
		if !isRetained(as, there) {
			return nil, noRetained()
		}
		r, fresh := there.instance, w.record(taken)
		r.instance, r.label = fresh.instance, fresh.label
		r.facts = facts{Phase: taken, Changed: w.operation, Collation: r.facts.Collation, Until: r.facts.Until, From: kept.instance, Was: &as}
		return move{r}, nil
	}
}
