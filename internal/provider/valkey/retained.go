package valkey

import (
	"cmp"
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A plan's setting retain_days has the keys of a deleted instance be retained: the users
// of its bindings go, the keys stay where they are, and a user who can do nothing says
// whose they were, and until when. They become another instance's by its label, which
// then says where its keys are. That user stays as long as the keys do: it keeps them
// from being taken for those of a later life of the id.

// A move is what a label says of keys that are retained, or that were.
type move struct {
	// Home is what begins the keys in braces, where they were another instance's before.
	Home string `json:"home,omitempty"`
	// Was are the tags that the keys of an instance were retained with. Half says that
	// they are not the instance's yet.
	Was  *provider.Tags `json:"was,omitempty"`
	Half bool           `json:"half,omitempty"`
	// Taken is whose the keys are that were retained.
	Taken *provider.Tags `json:"taken,omitempty"`
}

// home is what begins all keys and channels of an instance, in braces.
func (l label) home() string { return cmp.Or(l.Home, instanceID(l.Tags)) }

// keeper is the user by whom the keys of a home are kept.
func keeper(home string) string { return home + retainedMark }

const retainedMark = "+"

func retainedName(t provider.Tags) string { return keeper(instanceID(t)) }

// retained is what stands of the tags, which is not ours if it has other ones.
func (s *server) retained(ctx context.Context, t provider.Tags) (user, error) {
	u, err := s.user(ctx, retainedName(t))
	if err == nil && u.exists && u.label.Tags != t {
		err = notOurs()
	}
	return u, err
}

// taken reports whether the keys that were retained are an instance's. Hazard: the word
// that they are may come late, of one that was given up since, and nobody would have them.
func (s *server) taken(ctx context.Context, kept user) (bool, error) {
	by := kept.label.Taken
	if by == nil {
		return false, nil
	}
	u, err := s.user(ctx, name(*by))
	if err == nil && !u.exists { // perhaps it has them be retained itself
		u, err = s.user(ctx, retainedName(*by))
	}
	return u.exists && u.label.Tags == *by, err
}

// retain has the keys of an instance be retained. What is there by half is removed.
func (s *server) retain(ctx context.Context, in provider.Instance, r hosted.Retaining) (provider.Status, error) {
	kept, err := s.retained(ctx, r.Tags)
	if err != nil {
		return provider.Status{}, err
	}
	made, err := s.own(ctx, r.Tags)
	if err != nil {
		return provider.Status{}, err
	}
	if !kept.exists && (!made.exists || made.label.Half) {
		return s.erase(ctx, in)
	}
	users, err := s.users(ctx, bindings(r.Tags))
	if was := made.label.Was; was != nil && retainedName(*was) != keeper(made.label.Home) {
		users = append(users, retainedName(*was)) // it keeps nothing any more
	}
	if err == nil {
		err = s.remove(ctx, users...)
	}
	if err != nil {
		return provider.Status{}, err
	}
	if !kept.exists {
		kept.label = label{Label: made.label.Label, Until: r.Until, move: move{Home: made.label.Home}}
		kept.label.Locked = ""
		if err := s.label(ctx, kept.name, kept.label); err != nil {
			return provider.Status{}, err
		}
	}
	st, err := s.forget(ctx, r.Tags)
	if err == nil && st.Done && kept.label.Taken == nil {
		st.Retained = &provider.Retained{Name: kept.name, Until: kept.label.Until}
	}
	return st, err
}

// giveBack has what was retained, and became the instance of a user, be as it was. What
// is another's by now is left to it: the user's label came late.
func (s *server) giveBack(ctx context.Context, u user) error {
	kept, err := s.retained(ctx, *u.label.Was)
	if err != nil {
		return err
	}
	if by := kept.label.Taken; by != nil && *by != u.label.Tags {
		return s.remove(ctx, u.name)
	}
	if !kept.exists {
		kept.label = u.label
		kept.label.Tags, kept.label.Was, kept.label.Half = *u.label.Was, nil, false
	}
	kept.label.Taken = nil
	users, err := s.users(ctx, bindings(u.label.Tags))
	if err == nil {
		err = s.remove(ctx, users...)
	}
	if err == nil {
		err = s.label(ctx, kept.name, kept.label)
	}
	if err != nil {
		return err
	}
	return s.remove(ctx, u.name)
}

// take has what was retained be the instance; it is not done if more is to do first.
func (s *server) take(ctx context.Context, in provider.Instance, l label) (provider.Status, error) {
	tags, as := provider.TagsOf(in), in.Source.Tags(in.Broker)
	made, err := s.own(ctx, tags)
	if err != nil {
		return provider.Status{}, err
	}
	if made.exists && !made.label.Half {
		return done(s.save(ctx))
	}
	kept, err := s.retained(ctx, as)
	if err != nil {
		return provider.Status{}, err
	}
	elsewhere, err := s.taken(ctx, kept)
	if err != nil {
		return provider.Status{}, err
	}
	if !kept.exists || elsewhere && *kept.label.Taken != tags {
		return provider.Status{}, provider.Failf("What was retained of the deleted instance is not there any more. Delete this instance.")
	}
	// The new label is first: whatever is the last, the keys are found by one.
	l.Until, l.move = kept.label.Until, move{Home: kept.label.home(), Was: &as, Half: true}
	if err := s.label(ctx, name(tags), l.ofPlan(in)); err != nil {
		return provider.Status{}, err
	}
	kept.label.Taken = &tags
	if err := s.label(ctx, kept.name, kept.label); err != nil {
		return provider.Status{}, err
	}
	l.Half = false
	if err := s.label(ctx, name(tags), l.ofPlan(in)); err != nil {
		return provider.Status{}, err
	}
	return done(s.save(ctx))
}

// RemoveRetained implements provider.Retainer.
func (p *Provider) RemoveRetained(ctx context.Context, h provider.Holding) (provider.Status, error) {
	if h.Name != retainedName(h.Tags) || h.Tags.Binding != "" {
		return provider.Status{}, notOurs()
	}
	return p.on(ctx, h.Target, h.Epoch, func(s *server) (provider.Status, error) { return s.removeRetained(ctx, h) })
}

func (s *server) removeRetained(ctx context.Context, h provider.Holding) (provider.Status, error) {
	kept, err := s.retained(ctx, h.Tags)
	if err != nil {
		return provider.Status{}, err
	}
	taken, err := s.taken(ctx, kept)
	if err != nil {
		return provider.Status{}, err
	}
	if taken || !kept.exists {
		return done(s.save(ctx))
	}
	home := kept.label.home()
	st, err := s.empty(ctx, h.State, "the end of "+h.Name, "{"+home+"}:*")
	if err != nil || !st.Done {
		return st, err
	}
	if err := s.remove(ctx, keeper(home), kept.name); err != nil {
		return provider.Status{}, err
	}
	return st, s.save(ctx)
}
