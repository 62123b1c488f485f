package demo

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// roleRetained is in the names of what is retained.
const roleRetained = "retained"

// A plan's setting retain_days has the things of deleted instances be retained.
// What the demo stands on renames nothing: under the new name, a thing is made
// first, and the old one is deleted after it. Where a crash has left both, the new
// one is whole.

// keeping is how long the instance's plan has it be retained; zero for not at all.
func keeping(in provider.Instance) time.Duration {
	var recorded settings
	if in.Unfinished || in.PlanID == "" || json.Unmarshal(in.Snapshot, &recorded) != nil {
		return 0
	}
	return time.Duration(recorded.RetainDays * float64(24*time.Hour))
}

// movedFrom is the retained thing that the instance is made of, and is to become
// again if it never is ready; its name is empty for none.
func movedFrom(in provider.Instance) (t Thing) {
	if from := in.Source; from != nil && from.Retained != nil {
		t = Thing{Name: from.Retained.Name, Tags: from.Tags(in.Broker), RetainedUntil: from.Retained.Until}
	}
	return t
}

// retained finds a retained thing of the name and tags.
func (p *Provider) retained(ctx context.Context, s step, of Thing) (t Thing, found bool, _ error) {
	t, err := p.things.Get(ctx, of.Name)
	switch {
	case errors.Is(err, ErrNotFound):
		return t, false, nil
	case err != nil:
		return t, false, err
	case t.Tags != of.Tags || t.RetainedUntil.IsZero():
		s.wanted.Name = of.Name
		return t, false, s.notOurs()
	}
	return t, true, nil
}

// retain has the thing be under the name of what is retained.
func (p *Provider) retain(ctx context.Context, s step, t Thing) error {
	kept := s.kept
	if _, found, err := p.retained(ctx, s, kept); found || err != nil {
		return err // an earlier step has made it, and was stopped behind that
	}
	kept.Created, kept.Ready, kept.Plan, kept.Source = t.Created, t.Ready, t.Plan, t.Source
	if err := p.things.Create(ctx, kept); !errors.Is(err, ErrExists) {
		return err
	}
	return s.contended()
}

// isRetained answers for a deprovision that finds nothing any more.
func (p *Provider) isRetained(ctx context.Context, s step) (provider.Status, error) {
	st := s.done()
	if s.kept.Name == "" || s.moved {
		return st, nil
	}
	t, found, err := p.retained(ctx, s, s.kept)
	if found {
		st.Retained = &provider.Retained{Name: t.Name, Until: t.RetainedUntil}
	}
	return st, err
}

// move begins an instance that a retained thing becomes.
func (p *Provider) move(ctx context.Context, s step) (Thing, error) {
	t := s.fresh()
	kept, found, err := p.retained(ctx, s, s.kept)
	if err != nil {
		return t, err
	}
	if !found {
		return t, provider.Failf("What was retained of the deleted instance is not there any more. Delete this instance.")
	}
	t.Source = kept.Name
	return t, p.things.Create(ctx, t)
}

// moved ends the move: what the instance was made of is deleted under its own name.
func (p *Provider) moved(ctx context.Context, s step) error {
	t, found, err := p.retained(ctx, s, s.kept)
	if !found || err != nil {
		return err
	}
	return p.things.Delete(ctx, t)
}

// RemoveRetained implements provider.Retainer.
func (p *Provider) RemoveRetained(ctx context.Context, h provider.Holding) (provider.Status, error) {
	s := step{now: p.now().UTC(), noun: roleRetained, wanted: Thing{Name: h.Name}}
	for range maxTries {
		if err := ctx.Err(); err != nil {
			return provider.Status{}, err
		}
		t, found, err := p.retained(ctx, s, Thing{Name: h.Name, Tags: h.Tags})
		if err != nil {
			return provider.Status{}, err
		}
		if !found {
			return provider.Status{Done: true, Percent: 100, Description: "What was retained is removed."}, nil
		}
		if err := p.things.Delete(ctx, t); err != nil && !errors.Is(err, ErrChanged) {
			return provider.Status{}, err
		}
		// Removed is only what is seen to be absent, so look again.
	}
	return provider.Status{}, s.contended()
}
