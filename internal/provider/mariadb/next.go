package mariadb

import (
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// act is the next one; done says that there is none.
func act(a any) (hosted.Next, error) { return hosted.Next{Act: a}, nil }

var done hosted.Next

// provision is the next act towards the instance.
func (w wanted) provision(now seen) (hosted.Next, error) {
	r, undeleted := now.instance, hosted.Undeleted(w.tags)
	switch {
	case undeleted && !now.database:
		return done, hosted.Gone()
	case !r.exists():
		return act(put{w.record(making)})
	case !now.database:
		return act(createDatabase{r.details.Collation})
	case r.details.Phase != ready:
		return act(put{r.in(ready)})
	case undeleted:
		return w.update(now)
	}
	return done, nil
}

// in is the record in another phase.
func (r record) in(phase string) record {
	r.details.Phase = phase
	return r
}

// update is the next act towards the limits that are wanted.
func (w wanted) update(now seen) (hosted.Next, error) {
	r := now.instance
	switch {
	case r.details.Phase != ready:
		return done, hosted.NoInstance()
	case !now.database:
		return act(createDatabase{r.details.Collation})
	}
	for _, l := range now.logins {
		if l.exists && l.record.details.Phase == ready && l.limits != w.limits {
			return act(limitLogin{l.name, w.limits})
		}
	}
	if r.details.Changed != w.operation || r.label.PlanID != w.planID {
		r.details.Changed, r.label.PlanID = w.operation, w.planID
		return act(put{r})
	}
	return done, nil
}

// remove is the next act towards nothing of the instance.
func remove(now seen) (hosted.Next, error) {
	switch a := now.shut(false); {
	case a != nil:
		return act(a)
	case !now.instance.exists():
		return done, nil
	case now.database:
		return act(dropDatabase{})
	}
	return act(forget{now.instance})
}

// shut is the next act until no account has the database any more; with keep, those stay
// that something runs as.
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

// end is the next act towards the end of an account; nil when there is neither an
// account nor a record. With keep, one that something runs as stays, and its record
// says so.
func (l login) end(keep bool) any {
	switch {
	case !l.record.exists():
		return nil
	case l.exists && (!l.locked || l.schedules || !l.goes()):
		return lockLogin{l.record, false}
	case l.sessions > 0:
		return endSessions{l.name}
	case len(l.events) > 0:
		return disableEvents{l.events}
	case !l.exists:
		return forget{l.record}
	case keep && l.defines && l.record.details.Phase == left:
		return nil
	case keep && l.defines:
		return put{l.record.in(left)}
	}
	return dropLogin{l.name}
}

// bind is the next act towards the binding.
func (w wantedBinding) bind(now seen) (hosted.Next, error) {
	l, r := now.logins[0], now.logins[0].record
	shut := r.label.Locked != "" || now.instance.label.Locked != "" // in quarantine
	switch {
	case now.instance.details.Phase != ready:
		return done, hosted.NoInstance()
	case !now.database: // somebody has dropped it, as every binding may
		return act(createDatabase{now.instance.details.Collation})
	case !r.exists():
		return act(put{w.record()})
	case l.goes():
		return act(put{w.over(r)}) // what runs as the account goes on to
	case !l.exists || l.granted != w.role() && !shut:
		return act(createLogin{l.name, w.role()})
	case shut:
		return done, nil
	case l.locked || l.verifier != w.verifier || l.limits != w.limits || l.tls != w.tls:
		return act(openLogin{l.name, w.verifier, w.tls, w.limits})
	case r.details.Phase != ready:
		return act(put{r.in(ready)})
	}
	return done, nil
}

// of is the record of the thing with the tags.
func (now seen) of(t provider.Tags) record {
	if t.Binding != "" {
		return now.logins[0].record
	}
	return now.instance
}

func label(now seen, t provider.Tags) (hosted.Label, bool) {
	r := now.of(t)
	return r.label, r.exists()
}

// stands reports whether there is a database, or an account.
func stands(now seen, t provider.Tags) bool {
	if t.Binding != "" {
		return now.logins[0].exists
	}
	return now.database
}

func relabel(now seen, t provider.Tags, to hosted.Label) any {
	r := now.of(t)
	if r.details.Phase == ended || r.details.Phase == left {
		return nil
	}
	r.label = to
	return put{r}
}

// enforce is the next act towards the accounts of an instance or a binding being locked,
// or not. What is retained has none any more, but for those that something runs as: who
// had one does not get it back.
func enforce(now seen, _ provider.Tags, _ hosted.Label) any {
	if !now.instance.label.InUse() {
		return now.shut(true)
	}
	for _, l := range now.logins {
		if !l.exists || !l.record.exists() || l.goes() {
			continue
		}
		opens := l.record.details.Phase == ready && (l.locked || !l.schedules &&
			l.record.details.Role == roleAll) // else its bind opens it
		switch shut := l.record.label.Locked != "" || now.instance.label.Locked != ""; {
		case shut && (!l.locked || l.schedules):
			return lockLogin{l.record, true}
		case shut && l.sessions > 0:
			return endSessions{l.name}
		case !shut && opens:
			return unlockLogin{l.name, l.record.details.Role}
		}
	}
	return nil
}
