package mariadb

import (
	"github.com/longshore/longshore/internal/base/provider"
)

// What users are told.
func notOurs(noun string) *provider.Failure {
	return provider.Failf("On the server something that is not this %s's stands in its place. Ask the operator of the service.", noun)
}

func noInstance() *provider.Failure {
	return provider.Failf("The database does not exist, or is another one by now. Create the instance again.")
}

func noRetained() *provider.Failure {
	return provider.Failf("What was retained of the deleted instance is not there any more. Delete this instance.")
}

// provision is the next act towards the instance; nil when it stands.
func (w wanted) provision(now standing) (act, error) {
	r := now.instance
	switch {
	case !r.exists() && now.database:
		return nil, notOurs("instance")
	case !r.exists():
		return put{w.record(making)}, nil
	case r.label.Tags != w.tags:
		return nil, notOurs("instance")
	case !now.database && r.facts.Phase == taken: // an empty one is not what was to be given back
		return nil, noRetained()
	case !now.database:
		return createDatabase{r.facts.Collation}, nil
	case r.facts.Phase != ready:
		return put{r.in(ready)}, nil
	}
	return nil, nil
}

// in is the record in another phase.
func (r record) in(phase string) record {
	r.facts.Phase = phase
	return r
}

// update is the next act towards the limits that are wanted.
func (w wanted) update(now standing) (act, error) {
	r := now.instance
	switch {
	case r.exists() && r.label.Tags != w.tags, !r.exists() && now.database:
		return nil, notOurs("instance")
	case !r.exists() || r.facts.Phase != ready:
		return nil, noInstance()
	case !now.database:
		return createDatabase{r.facts.Collation}, nil
	}
	for _, l := range now.logins {
		if l.exists && l.record.facts.Phase == ready && l.limits != w.limits {
			return limitLogin{l.name, w.limits}, nil
		}
	}
	if r.facts.Changed != w.operation || r.label.PlanID != w.planID {
		r.facts.Changed, r.label.PlanID = w.operation, w.planID
		return put{r}, nil
	}
	return nil, nil
}

// remove is the next act towards nothing of the instance.
func remove(tags provider.Tags, now standing) (act, error) {
	r := now.instance
	switch {
	case !r.exists() && now.database && !now.kept:
		return nil, notOurs("instance")
	case r.exists() && r.label.Tags != tags:
		return nil, notOurs("instance")
	case r.facts.Phase == taken && now.database:
		return giveBack(r).next(now)
	}
	for _, l := range now.logins {
		if a := l.end(false); a != nil && l.of(tags) {
			return a, nil
		}
	}
	switch {
	case !r.exists(): // and what has its name is another one's
		return nil, nil
	case now.database && len(now.strangers) > 0:
		return revoke{now.strangers}, nil
	case now.database:
		return dropDatabase{}, nil
	}
	return forget{r}, nil
}

// of reports whether an account is of an instance. One that is left may be of a former
// life of its database.
func (l login) of(tags provider.Tags) bool {
	return l.record.facts.Phase == left || l.record.label.OfInstance() == tags
}

// end is the next act towards the end of an account; nil when there is neither an
// account nor a record. With keep, one that something runs as stays, and its record
// says so.
func (l login) end(keep bool) act {
	switch {
	case !l.record.exists():
		return nil
	case l.exists && (!l.locked || l.schedules || (l.record.facts.Phase != ended && l.record.facts.Phase != left)):
		return lockLogin{l.record, false}
	case l.sessions > 0:
		return endSessions{l.name}
	case len(l.events) > 0:
		return disableEvents{l.events}
	case !l.exists:
		return forget{l.record}
	case keep && l.defines && l.record.facts.Phase == left:
		return nil
	case keep && l.defines:
		return put{l.record.in(left)}
	}
	return dropLogin{l.name}
}

// bind is the next act towards the binding.
func (w wantedBinding) bind(now standing) (act, error) {
	in, r, l := now.instance, now.binding, now.logins[0]
	shut := r.label.Locked != "" || in.label.Locked != "" // in quarantine
	switch {
	case in.exists() && in.label.Tags != w.instance, !in.exists() && now.database:
		return nil, notOurs("instance")
	case !in.exists() || in.facts.Phase != ready:
		return nil, noInstance()
	case !now.database: // somebody has dropped it, as every binding may
		return createDatabase{in.facts.Collation}, nil
	case !r.exists() && l.exists, r.exists() && r.label.Tags != w.tags:
		return nil, notOurs("binding")
	case !r.exists():
		return put{w.record()}, nil
	case r.facts.Phase == ended || r.facts.Phase == left:
		return put{w.over(r)}, nil // what runs as the account goes on to
	case !l.exists || l.granted != w.role() && !shut:
		return createLogin{l.name, w.role()}, nil
	case shut:
		return nil, nil
	case l.locked || l.verifier != w.verifier || l.limits != w.limits || l.tls != w.tls:
		return openLogin{l.name, w.verifier, w.tls, w.limits}, nil
	case r.facts.Phase != ready:
		return put{r.in(ready)}, nil
	}
	return nil, nil
}

// unbind is the next act towards no binding.
func unbind(tags provider.Tags, now standing) (act, error) {
	l := now.logins[0]
	switch {
	case !l.record.exists() && l.exists && !l.kept:
		return nil, notOurs("binding")
	case l.record.exists() && l.record.label.Tags != tags:
		return nil, notOurs("binding")
	}
	return l.end(true), nil
}
