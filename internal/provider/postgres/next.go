package postgres

import (
	"encoding/json"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/scram"
)

// lockedUnbind is what a label says in Locked of a login that is to go.
const lockedUnbind = "unbind"

// details are what the provider keeps with an owner role or a login, in its label.
type details struct {
	// Limit is how many connections the database takes; 0 for any number.
	Limit int `json:"limit,omitempty"`
	// Warn is the size, in bytes, from which on users are warned.
	Warn int64 `json:"warn,omitempty"`
	// Operation is the one that set the limits last.
	Operation string `json:"operation,omitempty"`
	// Ready says that nothing is left to be made.
	Ready bool `json:"ready,omitempty"`
	// ReadOnly is a login that only reads.
	ReadOnly bool `json:"read_only,omitempty"`
}

// text is a label with these details.
func (d details) text(l hosted.Label) string {
	l.Details, _ = json.Marshal(d) // numbers and texts
	return l.Text()
}

func detailsOf(l hosted.Label) (d details) {
	_ = json.Unmarshal(l.Details, &d) // what an earlier program did not know is zero
	return d
}

// act is the next one; done says that there is none.
func act(a any) (hosted.Next, error) { return hosted.Next{Act: a}, nil }

var done hosted.Next

// remove is what comes next until nothing of the instance stands.
func remove(now seen) (hosted.Next, error) {
	switch {
	case now.database.exists():
		return act(dropDatabase{})
	case now.owner.exists():
		return act(dropOwner{})
	}
	return done, nil
}

// provision is what comes next until the instance is ready.
func (w *wantedInstance) provision(now seen) (hosted.Next, error) {
	label, _ := now.owner.label()
	undeleted := hosted.Undeleted(w.tags)
	switch _, known := now.database.label(); {
	case undeleted && !now.database.exists():
		return done, hosted.Gone()
	case label.Locked != "":
		return done, hosted.ErrQuarantine
	case !now.owner.exists() && now.database.exists():
		return remove(now)
	case !now.owner.exists():
		return act(createOwner{w.details.text(w.label())})
	case !now.database.exists():
		return act(createDatabase{w.locale, w.connections()})
	case !known || !now.database.open:
		return act(openDatabase{w.label().Text()})
	case !detailsOf(label).Ready || undeleted && detailsOf(label).Operation != w.details.Operation:
		return act(w.configure(label))
	}
	return done, nil
}

// update is what comes next until the instance is as it is to be.
func (w *wantedInstance) update(now seen) (hosted.Next, error) {
	label, err := usable(now)
	if err != nil || detailsOf(label).Operation == w.details.Operation {
		return done, err
	}
	return act(w.configure(label))
}

// usable is the label of an instance that is there and whole.
func usable(now seen) (hosted.Label, error) {
	label, _ := now.owner.label()
	if !now.database.exists() || !detailsOf(label).Ready || !label.InUse() {
		return label, hosted.NoInstance()
	}
	return label, nil
}

// whole has nothing come next of an instance that is there and whole.
func whole(now seen) (hosted.Next, error) {
	_, err := usable(now)
	return done, err
}

// bounded has the database take as many connections as the plan says: a step that
// died has left it without a limit.
func (s seen) bounded() (next hosted.Next, needed bool) {
	label, _ := s.owner.label()
	limit := limitOf(detailsOf(label))
	return hosted.Next{Act: setLimit{limit}}, detailsOf(label).Ready && s.database.exists() && s.database.limit != limit &&
		s.database.limit != halfDropped
}

// bind is what comes next until the login opens.
func (w *wantedBinding) bind(now seen) (hosted.Next, error) {
	if _, err := usable(now); err != nil {
		return done, err
	}
	if d, needed := now.bounded(); needed {
		return d, nil
	}
	label, _ := now.login.label()
	f := details{ReadOnly: w.readOnly}
	switch {
	case !now.login.exists() && w.readOnly: // it is let in when it has something to read
		return act(createLogin{label: f.text(w.label()), readOnly: true})
	case !now.login.exists():
		f.Ready = true
		verifier, err := scram.Verifier(w.password) // no log of a server ever has the password
		return hosted.Next{Act: createLogin{label: f.text(w.label()), verifier: verifier, until: w.until}}, err
	case label.Locked == lockedUnbind:
		return done, provider.Failf("The binding is being removed. Bind again, with another binding id.")
	case !detailsOf(label).Ready:
		f.Ready = true
		verifier, err := scram.Verifier(w.password)
		return hosted.Next{Act: openLogin{label: f.text(label), verifier: verifier, readOnly: w.readOnly, until: w.until}}, err
	}
	return done, nil
}

// unbind is what comes next until nothing of the binding stands.
func unbind(of provider.Tags, now seen) (hosted.Next, error) {
	label, _ := now.login.label()
	instance, _ := now.owner.label()
	switch limit, needed := now.bounded(); {
	case !now.login.exists() && needed && instance.Owner() == of.Owner():
		return limit, nil
	case !now.login.exists():
		return done, nil
	case now.login.canLogin || label.Locked != lockedUnbind:
		label.Locked = lockedUnbind
		return act(lockLogin{label: label.Text()})
	case now.login.sessions > 0:
		return act(endSessions{})
	case now.login.prepared > 0 || len(now.login.holds) > 0:
		return act(emptyLogin{})
	}
	return act(dropLogin{})
}

// created is a label's time.
func created(now time.Time) time.Time { return now.UTC().Truncate(time.Millisecond) }

// of is what has the label of the tags.
func (s seen) of(t provider.Tags) thing {
	if t.Binding != "" {
		return s.login.thing
	}
	return s.owner.thing
}

// labelOf is the owner role's for an instance, if its database agrees. A crash after its
// creation leaves a database without a label: it is the owner's then if the broker's login
// has made it. Where there are two, another owner's is told.
func labelOf(now seen, t provider.Tags) (hosted.Label, bool) {
	l, ok := now.of(t).label()
	if t.Binding != "" || !now.database.exists() {
		return l, ok
	}
	d, labelled := now.database.label()
	switch {
	case !labelled:
		return l, ok && now.database.comment == "" && now.database.ours
	case !now.owner.exists(), ok && l.Owner() == t.Owner() && d.Owner() != t.Owner():
		return d, true
	}
	return l, ok
}

func stands(now seen, t provider.Tags) bool {
	return now.of(t).exists() || t.Binding == "" && now.database.exists()
}

// relabelled is the act that gives an instance or a login another label, and shuts or
// opens it.
func relabelled(now seen, t provider.Tags, to hosted.Label) any {
	switch was, _ := now.of(t).label(); {
	case was.Locked == lockedUnbind, !now.of(t).exists():
		return nil
	case t.Binding == "":
		a := relabel{owner: to.Text(), shut: to.Locked != "", retained: !to.InUse()}
		to.Details = nil
		a.database = to.Text()
		return a
	case to.Locked != "":
		return lockLogin{label: to.Text(), keep: true}
	}
	return unlockLogin{label: to.Text(), login: detailsOf(to).Ready, readOnly: detailsOf(to).ReadOnly}
}

// enforce ends the sessions of what is in quarantine.
func enforce(now seen, t provider.Tags, is hosted.Label) any {
	switch {
	case is.Locked == "" || is.Locked == lockedUnbind:
		return nil
	case t.Binding == "" && now.database.sessions > 0:
		return endInstance{}
	case t.Binding != "" && now.login.sessions > 0:
		return endSessions{}
	}
	return nil
}
