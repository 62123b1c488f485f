package mariadb

import (
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// provision returns the next act until the instance is ready.
func (w wanted) provision(now seen) (any, error) {
	r, undeleted := now.instance, hosted.Undeleted(w.record.label.Tags)
	switch {
	case undeleted && !now.database:
		return nil, hosted.Gone()
	case !r.exists():
		return put{w.record}, nil
	case !now.database:
		return r.createDatabase(), nil
	case r.details.Phase != ready:
		return put{r.in(ready)}, nil
	case undeleted:
		return w.update(now)
	}
	return nil, nil
}

// in returns the record in another phase.
func (r record) in(phase string) record {
	r.details.Phase = phase
	return r
}

// update returns the next act until the instance has the wanted limits.
func (w wanted) update(now seen) (any, error) {
	r := now.instance
	switch {
	case r.details.Phase != ready:
		return nil, hosted.NoInstance()
	case !now.database:
		return r.createDatabase(), nil
	}
	for _, l := range now.logins {
		if l.exists && l.record.details.Phase == ready && l.limits != w.limits {
			return l.alter(w.limits.with()), nil
		}
	}
	changed, plan := w.record.details.Changed, w.record.label.PlanID
	if r.details.Changed != changed || r.label.PlanID != plan {
		r.details.Changed, r.label.PlanID = changed, plan
		return put{r}, nil
	}
	return nil, nil
}

// remove returns the next act until nothing of the instance stands.
func remove(now seen) (any, error) {
	switch a := now.shut(false); {
	case a != nil:
		return a, nil
	case !now.instance.exists():
		return nil, nil
	case now.database:
		return dropDatabase{}, nil
	}
	return forget{now.instance}, nil
}

// shut returns the next act until no account has rights on the database any more. With keep, accounts that
// something runs as stay.
func (now seen) shut(keep bool) any {
	for _, l := range now.logins {
		if a := l.end(keep); a != nil {
			return a
		}
	}
	if now.database && len(now.strangers) > 0 && now.instance.exists() {
		return revoke{now.strangers}
	}
	return nil
}

// end returns the next act until neither the account nor its record stands, and nil then. With keep, an
// account that something runs as stays, and its record says so.
func (l login) end(keep bool) any {
	switch {
	case !l.record.exists():
		return nil
	case l.exists && (!l.locked || l.schedules || !l.goes()):
		return lockLogin{l.record, false}
	case l.sessions > 0:
		return endSessions{l.name}
	case len(l.events) > 0:
		return l.disableEvents()
	case !l.exists:
		return forget{l.record}
	case keep && l.defines && l.record.details.Phase == left:
		return nil
	case keep && l.defines:
		return put{l.record.in(left)}
	}
	return l.drop()
}

// bind returns the next act until the binding is ready.
func (w wantedBinding) bind(now seen) (any, error) {
	l, r, role := now.logins[0], now.logins[0].record, w.record.details.Role
	shut := r.label.Locked != "" || now.instance.label.Locked != "" // in quarantine
	switch {
	case now.instance.details.Phase != ready:
		return nil, hosted.NoInstance()
	case !now.database: // some binding has dropped it, as every binding may
		return now.instance.createDatabase(), nil
	case !r.exists():
		return put{w.record}, nil
	case l.goes(): // the account goes on, with what runs as it
		w.record.serial, w.record.version = r.serial, r.version
		return put{w.record}, nil
	case !l.exists || l.granted != role && !shut:
		return createLogin{l.name, role}, nil
	case shut:
		return nil, nil
	case l.locked || l.verifier != w.verifier || l.limits != w.limits || l.tls != w.tls:
		return w.open(l), nil
	case r.details.Phase != ready:
		return put{r.in(ready)}, nil
	}
	return nil, nil
}

// of returns the record of the thing with the tags.
func (now seen) of(t provider.Tags) record {
	if t.Binding != "" {
		return now.logins[0].record
	}
	return now.instance
}

// Label implements hosted.Seen. A database or an account without a record is somebody else's.
func (now seen) Label(t provider.Tags) (hosted.Label, bool) {
	r, stands := now.of(t), now.database
	if t.Binding != "" {
		stands = now.logins[0].exists
	}
	return r.label, stands || r.exists()
}

// Relabel implements hosted.Seen.
func (now seen) Relabel(t provider.Tags, to hosted.Label) any {
	r := now.of(t)
	if r.details.Phase == ended || r.details.Phase == left {
		return nil
	}
	r.label = to
	return put{r}
}

// Enforce implements hosted.Seen. It locks or opens the accounts, as the labels say. A retained instance
// keeps only accounts that something runs as: an undelete does not bring accounts back.
func (now seen) Enforce(provider.Tags, hosted.Label) any {
	if !now.instance.label.InUse() {
		return now.shut(true)
	}
	for _, l := range now.logins {
		if !l.exists || !l.record.exists() || l.goes() {
			continue
		}
		opens := l.record.details.Phase == ready && (l.locked || !l.schedules &&
			l.record.details.Role == roleAll) // otherwise the account's bind opens it
		switch shut := l.record.label.Locked != "" || now.instance.label.Locked != ""; {
		case shut && (!l.locked || l.schedules):
			return lockLogin{l.record, true}
		case shut && l.clients > 0: // a client that began to log in before the lock may still get in
			return endSessions{l.name}
		case !shut && opens:
			return l.unlock()
		}
	}
	return nil
}
