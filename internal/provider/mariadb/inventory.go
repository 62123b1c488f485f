package mariadb

import (
	"cmp"
	"context"

	"github.com/longshore/longshore/internal/base/provider"
)

// List implements provider.Inventory.
func (p *Provider) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	return p.Accesses.List(ctx, cursor, p.Holdings)
}

// Holdings implements provider.Reconciler: it reads a page of one target.
func (p *Provider) Holdings(ctx context.Context, name, after string) (page []provider.Holding, last string, err error) {
	s, _, _, done, err := p.Reach(provider.Target{Name: name})
	if err != nil {
		return nil, "", err
	}
	defer done()
	at, err := s.Identify(ctx, p.Broker, false)
	if err != nil || at.Identity == "" { // nothing was ever made there
		return nil, "", explain(name, err)
	}
	records, err := s.list(ctx, p.Broker, after, p.page)
	if err != nil {
		return nil, "", explain(name, err)
	}
	for _, r := range records {
		if r.facts.Phase == left { // the instance's removal takes it along
			continue
		}
		h := provider.Holding{
			Name: r.name, Tags: r.label.Tags, Created: r.label.Created.UTC(), PlanID: r.label.PlanID,
			Target: provider.Target{Name: name, Identity: at.Identity}, Epoch: at.Epoch,
		}
		if r.facts.Phase == retained {
			h.Name, h.RetainedUntil = r.instance, r.facts.Until
		}
		page = append(page, h)
	}
	if len(records) == p.page {
		last = records[len(records)-1].name
	}
	return page, last, nil
}

// quarantined is what the label says of what is in quarantine.
const quarantined = "quarantine"

// Quarantine implements provider.Quarantiner: no account logs in, nor has its events
// run, any more.
func (p *Provider) Quarantine(ctx context.Context, h provider.Holding) error {
	return p.lock(ctx, h, quarantined)
}

// Release implements provider.Quarantiner: accounts log in again as before.
func (p *Provider) Release(ctx context.Context, h provider.Holding) error { return p.lock(ctx, h, "") }

func (p *Provider) lock(ctx context.Context, h provider.Holding, why string) error {
	_, err := p.step(ctx, h.Target, h.Epoch, func(s *site) (*provider.Status, error) {
		n := namesOf(h.Tags)
		n.leaving = true
		_, unfinished, err := s.run(ctx, n, func(now standing) (act, error) { return locked(h.Tags, why, now), nil })
		if err == nil && unfinished != nil {
			err = errBusy
		}
		return nil, err
	})
	return err // without an identity nothing was made
}

// locked is the next act towards the accounts of an instance or a binding being
// locked, or not. What is gone, or of another incarnation, is left as it is.
func locked(tags provider.Tags, why string, now standing) act {
	r := now.instance
	if tags.Binding != "" {
		r = now.binding
	}
	switch {
	case !r.exists() || r.label.Tags != tags || r.facts.Phase == left || r.facts.Phase == ended:
		return nil
	case r.label.Locked != why:
		r.label.Locked = why
		return put{r}
	}
	for _, l := range now.logins {
		phase := l.record.facts.Phase
		if !l.exists || !l.record.exists() || phase == left || phase == ended {
			continue
		}
		switch shut := cmp.Or(l.record.label.Locked, now.instance.label.Locked) != ""; {
		case shut && (!l.locked || l.schedules):
			return lockLogin{l.record, true}
		case shut && l.sessions > 0:
			return endSessions{l.name}
		case !shut && phase == ready && (l.locked || !l.schedules && l.record.facts.Role == roleAll): // else its bind opens it
			return unlockLogin{l.name, l.record.facts.Role}
		}
	}
	return nil
}
