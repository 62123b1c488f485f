package mariadb

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/provider"
)

// List implements provider.Inventory, target by target. A cursor is a target's name
// and what was read last of it.
func (p *Provider) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	names := p.accesses.Names()
	at, after := cursor, ""
	if cut := strings.LastIndex(cursor, "/"); cut >= 0 {
		at, after = cursor[:cut], cursor[cut+1:]
	}
	i, found := slices.BinarySearch(names, at)
	if !found {
		after = ""
	}
	if i == len(names) {
		return nil, "", nil
	}
	next := ""
	if i+1 < len(names) {
		next = names[i+1] + "/"
	}
	page, last, err := p.listed(ctx, names[i], after)
	if err == nil && last != "" {
		next = names[i] + "/" + last
	}
	return page, next, err
}

// listed reads a page of one target; last is empty at its end.
func (p *Provider) listed(ctx context.Context, name, after string) (page []provider.Holding, last string, err error) {
	s, _, _, done, err := p.reach(provider.Target{Name: name})
	if err != nil {
		return nil, "", err
	}
	defer done()
	who, err := s.identify(ctx, p.broker, false)
	if err != nil || who == "" { // nothing was ever made there
		return nil, "", explain(err)
	}
	records, err := s.list(ctx, p.broker, after, p.page)
	if err != nil {
		return nil, "", explain(err)
	}
	for _, r := range records {
		if r.facts.Phase == left { // the instance's removal takes it along
			continue
		}
		h := provider.Holding{
			Name: r.name, Tags: r.label.Tags, Created: r.label.Created.UTC(), PlanID: r.label.PlanID,
			Target: provider.Target{Name: name, Identity: who},
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

// Quarantine implements provider.Quarantiner: no account logs in any more.
func (p *Provider) Quarantine(ctx context.Context, h provider.Holding) error {
	return p.lock(ctx, h, quarantined)
}

// Release implements provider.Quarantiner: accounts log in again as before.
func (p *Provider) Release(ctx context.Context, h provider.Holding) error { return p.lock(ctx, h, "") }

func (p *Provider) lock(ctx context.Context, h provider.Holding, why string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, learnt, err := p.at(ctx, h.Target)
	if err != nil || learnt != nil { // without an identity nothing was made
		return err
	}
	defer s.close()
	_, unfinished, err := s.run(ctx, namesOf(h.Tags), func(now standing) (act, error) { return locked(h.Tags, why, now), nil })
	if err == nil && unfinished != nil {
		err = errBusy
	}
	return err
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
		if !l.exists || !l.record.exists() || l.record.facts.Phase != ready {
			continue
		}
		switch shut := cmp.Or(l.record.label.Locked, now.instance.label.Locked) != ""; {
		case shut && !l.locked:
			return lockLogin{l.record, true}
		case shut && l.sessions > 0:
			return endSessions{l.name}
		case !shut && l.locked:
			return unlockLogin{l.name}
		}
	}
	return nil
}
