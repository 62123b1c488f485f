// Package demo is the reference asynchronous service: a provider whose things
// are real but worth nothing, so that platform teams can test against it. How
// long its work takes, and what fails, is chosen by the plan or by the user.
//
// Settings of a plan, which no parameter overrides:
//
//   - delay_seconds: how long each operation takes;
//   - fail: the kind of operation that fails, or a list of them;
//   - grant: what a binding gives: volume, route or syslog; plain credentials
//     otherwise;
//   - valid_days: how long credentials are valid; for ever unless set;
//   - retain_days: how long what is deleted is retained, to be given back;
//   - secret: cloud, if the demo is to choose the password itself and show it
//     once, as clouds do with access keys; derived from the binding's secret
//     otherwise.
//
// Parameters of an instance and of a binding; others have no effect:
//
//   - delay_seconds: how long the operation takes, also a synchronous one. The
//     parameters of an instance count for its deprovision, those of a binding
//     for its unbind: the thing remembers what they ask of its deletion, which
//     is given no parameters;
//   - fail: true fails the operation that the parameter is given to; the name
//     of a kind fails the operations of that kind.
//
// A deletion that is to fail does so for one operation only; the next one
// works, so that nobody is left with what cannot be deleted.
//
// The package needs a clock and a place for its things (Things; the adapter
// for a folder is demo/files). When steps are called is left to the caller.
package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

const (
	namePrefix   = "longshore-demo"
	roleInstance = "instance"
	roleBinding  = "binding"

	// maxTries bounds how often one step decides again because others change
	// the same thing; more is left to the next step.
	maxTries = 10
)

// A Provider is the demo. Its methods may be called by many goroutines.
type Provider struct {
	things Things
	broker string
	delay  time.Duration
	now    func() time.Time
}

var (
	_ provider.Provider    = (*Provider)(nil)
	_ provider.Inventory   = (*Provider)(nil)
	_ provider.Quarantiner = (*Provider)(nil)
	_ provider.Retainer    = (*Provider)(nil)
)

// Options say how a Provider behaves.
type Options struct {
	// Broker is whose things the inventory lists, and those made before brokers
	// had an identity; empty for everyone's.
	Broker string
	// Delay is how long an asynchronous operation takes unless its plan or
	// its parameters say otherwise.
	Delay time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// New builds a provider that keeps what it makes in things.
func New(things Things, opts Options) *Provider {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Provider{things: things, broker: opts.Broker, delay: opts.Delay, now: opts.Now}
}

// A step is one call of a verb: what it is about, and one time for all of it.
type step struct {
	now    time.Time
	op     provider.Operation
	wishes wishes
	// wanted is the thing as it is to be; of a deletion, its name and tags.
	wanted Thing
	noun   string
	// kept is the name, the tags and the time under which the instance is retained,
	// or was, if it is moved from there: its name is empty for neither.
	kept  Thing
	moved bool
}

func (p *Provider) instanceStep(in provider.Instance) (step, error) {
	s := step{now: p.now().UTC(), op: in.Operation, noun: roleInstance}
	var err error
	s.wishes, err = p.wishesOf(in.Operation, in.Parameters, in.Settings)
	tags := provider.TagsOf(in)
	s.wanted = Thing{Name: instanceName(in), Tags: tags, Created: s.now, Plan: in.PlanID, Removal: removalOf(in.Parameters)}
	if s.kept = movedFrom(in); s.kept.Name != "" {
		s.moved = true
	} else if from := in.Source; from != nil {
		s.wanted.Source = provider.Name(namePrefix, roleInstance, from.Tags(in.Broker))
	}
	return s, err
}

func (p *Provider) bindingStep(b provider.Binding) (step, error) {
	s := step{now: p.now().UTC(), op: b.Instance.Operation, noun: roleBinding}
	var err error
	s.wishes, err = p.wishesOf(s.op, b.Parameters, b.Instance.Settings)
	tags := provider.BindingTagsOf(b)
	s.wanted = Thing{
		Name: provider.Name(namePrefix, roleBinding, tags), Tags: tags, Created: s.now, Plan: b.Instance.PlanID,
		Removal: removalOf(b.Parameters),
	}
	return s, err
}

// Provision makes the instance's thing.
func (p *Provider) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if err := ctx.Err(); err != nil {
		return provider.Status{}, err
	}
	s, err := p.instanceStep(in)
	if err != nil {
		return provider.Status{}, err
	}
	return p.create(ctx, s)
}

// Update makes the instance's thing be of the plan in in.
func (p *Provider) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if err := ctx.Err(); err != nil {
		return provider.Status{}, err
	}
	s, err := p.instanceStep(in)
	if err != nil {
		return provider.Status{}, harmless(err)
	}
	for range maxTries {
		t, err := p.things.Get(ctx, s.wanted.Name)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return provider.Status{}, err
		}
		if f := s.unusable(t, err == nil); f != nil {
			f.InstanceUsable, f.UpdateRepeatable = new(false), new(false)
			return provider.Status{}, f
		}
		st, known, err := p.look(ctx, s, t)
		if errors.Is(err, ErrChanged) {
			continue
		}
		if known || err != nil {
			return st, err
		}
		t = t.settled(s.now)
		if !t.ready(s.now) || t.Change != nil {
			return s.waiting(t), nil
		}
		c := s.change()
		c.Plan, c.Removal = s.wanted.Plan, s.wanted.Removal
		t = t.begun(s.now, c)
		err = p.things.Replace(ctx, t)
		if errors.Is(err, ErrChanged) {
			continue
		}
		if err != nil {
			return provider.Status{}, err
		}
		st, _, err = p.look(ctx, s, t)
		return st, err
	}
	return provider.Status{}, s.contended()
}

// Deprovision removes the instance's thing.
func (p *Provider) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if err := ctx.Err(); err != nil {
		return provider.Status{}, err
	}
	s, _ := p.instanceStep(in) // what the plan asks is read again where the thing is known
	if keep := keeping(in); keep > 0 && !s.moved {
		s.kept = Thing{
			Name: provider.Name(namePrefix, roleRetained, s.wanted.Tags.Retained()), Tags: s.wanted.Tags, RetainedUntil: s.now.Add(keep),
		}
	}
	return p.remove(ctx, s, in.Settings)
}

// Bind makes the binding's thing, which is a user with a password.
func (p *Provider) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	if err := ctx.Err(); err != nil {
		return provider.Status{}, err
	}
	if len(b.Secret) == 0 {
		return provider.Status{}, errors.New("a bind needs the binding's secret")
	}
	s, err := p.bindingStep(b)
	if err != nil {
		return provider.Status{}, err
	}
	byCloud := secretByCloud(b)
	was, err := chosenOf(b.State)
	if err != nil {
		return provider.Status{}, err
	}
	password := was.Password
	if !byCloud {
		if password, err = derived(b.Secret, "password of "+s.wanted.Name); err != nil {
			return provider.Status{}, err
		}
	}
	grant, err := grantOf(b, s.wanted.Name, password)
	if err != nil {
		return provider.Status{}, err
	}
	s.wanted.Expires = grant.ExpiresAt
	if !byCloud {
		if s.wanted.Verifier, err = newVerifier(b.Secret, s.wanted.Name, password); err != nil {
			return provider.Status{}, err
		}
	}
	owner := step{now: s.now, noun: roleInstance, wanted: Thing{Name: instanceName(b.Instance), Tags: provider.TagsOf(b.Instance)}}
	instance, err := p.things.Get(ctx, owner.wanted.Name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return provider.Status{}, err
	}
	if f := owner.unusable(instance, err == nil); f != nil {
		return provider.Status{}, f
	}
	if !instance.ready(s.now) {
		return owner.waiting(instance), nil
	}

	st, err := p.create(ctx, s)
	if st.Done && err == nil && byCloud {
		st, err = p.key(ctx, s, was)
	}
	if st.Done && err == nil {
		st.Grant = grant
	}
	return st, err
}

// Unbind removes the binding's thing.
func (p *Provider) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	if err := ctx.Err(); err != nil {
		return provider.Status{}, err
	}
	s, _ := p.bindingStep(b) // as in Deprovision
	return p.remove(ctx, s, b.Instance.Settings)
}

// List reads one page of everything that the demo holds.
func (p *Provider) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	things, next, err := p.things.List(ctx, cursor)
	if err != nil {
		return nil, "", err
	}
	page := make([]provider.Holding, 0, len(things))
	for _, t := range things {
		if p.broker != "" && t.Tags.Broker != "" && t.Tags.Broker != p.broker {
			continue
		}
		page = append(page, provider.Holding{
			Name: t.Name, Tags: t.Tags, Created: t.Created.UTC(), PlanID: t.Plan, RetainedUntil: t.RetainedUntil,
		})
	}
	return page, next, nil
}

// Accepts reports whether the demo lets this user in: whether there is a
// binding, made, not expired and not removed, with this user name and password.
func (p *Provider) Accepts(ctx context.Context, username, password string) (bool, error) {
	if strings.Trim(username, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return false, nil // it cannot be the name of a thing
	}
	t, err := p.things.Get(ctx, username)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if t.Tags.Binding != "" {
		_, err := p.things.Get(ctx, provider.Name(namePrefix, roleInstance, t.Tags.OfInstance()))
		if errors.Is(err, ErrNotFound) { // it was deleted, or is retained
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	now := p.now()
	expired := !t.Expires.IsZero() && !now.Before(t.Expires)
	accepts := t.Verifier.accepts(password) || slices.ContainsFunc(t.Keys, func(k Key) bool { return k.accepts(password) })
	return t.ready(now) && !expired && !t.Quarantined && accepts, nil
}

// create makes the wanted thing, or looks at the one that exists.
func (p *Provider) create(ctx context.Context, s step) (provider.Status, error) {
	for range maxTries {
		t, err := p.things.Get(ctx, s.wanted.Name)
		if errors.Is(err, ErrNotFound) {
			if s.moved {
				t, err = p.move(ctx, s)
			} else {
				t = s.fresh()
				err = p.things.Create(ctx, t)
			}
			if errors.Is(err, ErrExists) {
				continue
			}
		}
		if err != nil {
			return provider.Status{}, err
		}
		if t.Tags != s.wanted.Tags {
			return provider.Status{}, s.notOurs()
		}
		if !t.Verifier.same(s.wanted.Verifier) {
			return provider.Status{}, provider.Failf("The %s exists already with other credentials. Delete it and create it again.", s.noun)
		}
		st, known, err := p.look(ctx, s, t)
		if errors.Is(err, ErrChanged) {
			continue
		}
		if s.moved && st.Done && err == nil {
			err = p.moved(ctx, s)
		}
		if errors.Is(err, ErrChanged) {
			continue
		}
		if known || err != nil {
			return st, err
		}
		// The creating operation ended long ago, and others came after it.
		switch {
		case t.Ready.IsZero():
			return provider.Status{}, s.asked()
		case s.now.Before(t.Ready):
			return s.waiting(t), nil
		default:
			return s.done(), nil
		}
	}
	return provider.Status{}, s.contended()
}

// look answers for an operation that t knows, and says whether it does.
func (p *Provider) look(ctx context.Context, s step, t Thing) (provider.Status, bool, error) {
	if c := t.Change; c != nil && c.Operation == s.op.ID {
		if s.now.Before(c.Ends) {
			return s.progress(*c), true, nil
		}
		t = t.settled(s.now)
		if err := p.things.Replace(ctx, t); err != nil {
			return provider.Status{}, false, err
		}
	}
	past, ok := t.past(s.op.ID)
	switch {
	case !ok:
		return provider.Status{}, false, nil
	case past.Failed:
		return provider.Status{}, true, s.asked()
	default:
		return s.done(), true, nil
	}
}

// remove deletes the wanted thing.
func (p *Provider) remove(ctx context.Context, s step, settings map[string]any) (provider.Status, error) {
	for range maxTries {
		t, err := p.things.Get(ctx, s.wanted.Name)
		if errors.Is(err, ErrNotFound) {
			return p.isRetained(ctx, s)
		}
		if err != nil {
			return provider.Status{}, err
		}
		if t.Tags != s.wanted.Tags {
			return provider.Status{}, s.notOurs()
		}
		if past, ok := t.past(s.op.ID); ok && past.Failed {
			return provider.Status{}, s.asked()
		}
		s.wishes = p.removalWishes(s.op, t.Removal, settings)
		if c := t.Change; c == nil || c.Operation != s.op.ID {
			c := s.change()
			c.Fails = c.Fails && !t.DeletionFailed
			begun := t.begun(s.now, c)
			begun.DeletionFailed = t.DeletionFailed || c.Fails
			if c.Fails || s.now.Before(c.Ends) {
				// The next look answers, at what is then there.
				if err := p.things.Replace(ctx, begun); err != nil && !errors.Is(err, ErrChanged) {
					return provider.Status{}, err
				}
				continue
			}
		} else if s.now.Before(c.Ends) {
			return s.progress(*c), nil
		} else if c.Fails {
			if err := p.things.Replace(ctx, t.settled(s.now)); err != nil && !errors.Is(err, ErrChanged) {
				return provider.Status{}, err
			}
			continue
		}
		if s.kept.Name != "" && (s.moved || t.ready(s.now)) {
			if err := p.retain(ctx, s, t); err != nil {
				return provider.Status{}, err
			}
		}
		if err := p.things.Delete(ctx, t); err != nil && !errors.Is(err, ErrChanged) {
			return provider.Status{}, err
		}
		// Deleted is only what is seen to be absent, so look again.
	}
	return provider.Status{
		Percent:     99,
		Description: fmt.Sprintf("Waiting to see that the %s is gone", s.noun),
		After:       time.Second,
	}, nil
}

// fresh is the wanted thing as the operation makes it.
func (s step) fresh() Thing {
	t, c := s.wanted, s.change()
	if !c.Fails {
		t.Ready = c.Ends
	}
	return t.begun(s.now, c)
}

func (s step) change() Change {
	return Change{
		Operation: s.op.ID,
		Kind:      s.op.Kind,
		Began:     s.now,
		Ends:      s.now.Add(s.wishes.delay),
		Fails:     s.wishes.fail,
	}
}

// Names is the name of the thing with these tags.
func Names(t provider.Tags) []string {
	role := roleInstance
	if t.Binding != "" {
		role = roleBinding
	}
	return []string{provider.Name(namePrefix, role, t)}
}

// instanceName is the name of an instance's thing.
func instanceName(in provider.Instance) string {
	return provider.Name(namePrefix, roleInstance, provider.TagsOf(in))
}
