package postgres

import (
	"encoding/json"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/scram"
)

// lockedUnbind is the value of Label.Locked while a binding's login is being removed.
const lockedUnbind = "unbind"

// details are what the provider keeps in the label of an owner role or a login.
type details struct {
	// Limit is how many connections the database accepts; 0 for no limit.
	Limit int `json:"limit,omitempty"`
	// Warn is the size, in bytes, from which users are warned.
	Warn int64 `json:"warn,omitempty"`
	// Operation is the id of the operation that last set the limits.
	Operation string `json:"operation,omitempty"`
	// Ready says that nothing remains to be made.
	Ready bool `json:"ready,omitempty"`
	// ReadOnly marks a login that only reads.
	ReadOnly bool `json:"read_only,omitempty"`
}

// text returns the label with these details, as a comment.
func (d details) text(l hosted.Label) string {
	l.Details, _ = json.Marshal(d) // numbers and texts
	return l.Text()
}

func detailsOf(l hosted.Label) (d details) {
	_ = json.Unmarshal(l.Details, &d) // details that an earlier version did not know are zero
	return d
}

// connections returns the limit in the server's notation: -1 for no limit.
func (d details) connections() int {
	if d.Limit == 0 {
		return -1
	}
	return d.Limit
}

// remove returns the next act until nothing of the instance stands.
func remove(now seen) (any, error) {
	switch {
	case now.database.exists():
		return dropDatabase{}, nil
	case now.owner.exists():
		return dropOwner{}, nil
	}
	return nil, nil
}

// provision returns the next act until the instance is ready.
func (w wantedInstance) provision(now seen) (any, error) {
	label, _ := now.owner.label()
	undeleted := hosted.Undeleted(w.label.Tags)
	switch _, known := now.database.label(); {
	case undeleted && !now.database.exists():
		return nil, hosted.Gone()
	case label.Locked != "":
		return nil, hosted.ErrQuarantine
	case !now.owner.exists() && now.database.exists():
		return remove(now)
	case !now.owner.exists():
		return createOwner{w.details.text(w.label)}, nil
	case !now.database.exists():
		return createDatabase{w.locale, w.details.connections()}, nil
	case !known || !now.database.open:
		return openDatabase{w.label.Text()}, nil
	case !detailsOf(label).Ready || undeleted && detailsOf(label).Operation != w.details.Operation:
		return w.configure(label), nil
	}
	return nil, nil
}

// update returns the next act until the instance is as wanted.
func (w wantedInstance) update(now seen) (any, error) {
	label, err := usable(now)
	if err != nil || detailsOf(label).Operation == w.details.Operation {
		return nil, err
	}
	return w.configure(label), nil
}

// usable returns the label of an instance that is complete and in use.
func usable(now seen) (hosted.Label, error) {
	label, _ := now.owner.label()
	if !now.database.exists() || !detailsOf(label).Ready || !label.InUse() {
		return label, hosted.NoInstance()
	}
	return label, nil
}

// whole fails unless the instance is complete and in use.
func whole(now seen) (any, error) {
	_, err := usable(now)
	return nil, err
}

// bounded returns the act that restores a database's connection limit after a step died that had lifted it.
func (s seen) bounded() (next setLimit, needed bool) {
	d := s.owner.details()
	limit := d.connections()
	return setLimit{limit}, d.Ready && s.database.exists() && s.database.limit != limit && s.database.limit != halfDropped
}

// bind returns the next act until the login is open.
func (w wantedBinding) bind(now seen) (any, error) {
	if _, err := usable(now); err != nil {
		return nil, err
	}
	if d, needed := now.bounded(); needed {
		return d, nil
	}
	label, _ := now.login.label()
	f := details{ReadOnly: w.readOnly, Ready: true}
	switch {
	case !now.login.exists() && w.readOnly: // openLogin lets it in once it has the right to read
		f.Ready = false
		return createLogin{label: f.text(w.label), readOnly: true}, nil
	case label.Locked == lockedUnbind:
		return nil, provider.Failf("The binding is being removed. Bind again, with another binding id.")
	case detailsOf(label).Ready:
		return nil, nil
	}
	verifier, err := scram.Verifier(w.password) // no log of a server ever has the password
	if !now.login.exists() {
		return createLogin{label: f.text(w.label), verifier: verifier, until: w.until}, err
	}
	return openLogin{label: f.text(label), verifier: verifier, readOnly: w.readOnly, until: w.until}, err
}

// unbind returns the next act until nothing of the binding stands.
func unbind(of provider.Tags, now seen) (any, error) {
	label, _ := now.login.label()
	instance, _ := now.owner.label()
	switch limit, needed := now.bounded(); {
	case !now.login.exists() && needed && instance.Owner() == of.Owner():
		return limit, nil
	case !now.login.exists():
		return nil, nil
	}
	locked := !now.login.canLogin && label.Locked == lockedUnbind
	label.Locked = lockedUnbind
	return now.login.leave(locked, label.Text()), nil
}

// leave returns the next act until a login is gone. Locked says that the login is locked for that, with this label.
func (r role) leave(locked bool, label string) act {
	switch {
	case !locked:
		return lockLogin{label: label}
	case r.sessions > 0:
		return endSessions{}
	case r.prepared > 0 || len(r.holds) > 0:
		return emptyLogin{}
	}
	return dropLogin{}
}

// of returns the thing that carries the label of the tags.
func (s seen) of(t provider.Tags) thing {
	if t.Binding != "" {
		return s.login.thing
	}
	return s.owner.thing
}

// Label implements hosted.Seen. The label of an instance is that of its owner role, if its database agrees. A
// crash after CREATE DATABASE leaves a database without a label, which counts as the owner's if the broker's
// login made it. Where the labels of role and database differ, the label of the other owner counts.
func (s seen) Label(t provider.Tags) (hosted.Label, bool) {
	l, ok := s.of(t).label()
	if t.Binding != "" || !s.database.exists() {
		return l, s.of(t).exists()
	}
	switch d, labelled := s.database.label(); {
	case !labelled && (s.database.comment != "" || !s.database.ours):
		return hosted.Label{}, true
	case labelled && (!s.owner.exists() || ok && l.Owner() == t.Owner() && d.Owner() != t.Owner()):
		return d, true
	}
	return l, true
}

// Relabel implements hosted.Seen. The act also locks or unlocks the instance or the login.
func (s seen) Relabel(t provider.Tags, to hosted.Label) any {
	switch was, _ := s.of(t).label(); {
	case was.Locked == lockedUnbind, !s.of(t).exists():
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

// Enforce implements hosted.Seen. The act ends the sessions of an instance or a binding in quarantine.
func (s seen) Enforce(t provider.Tags, is hosted.Label) any {
	switch {
	case is.Locked == "" || is.Locked == lockedUnbind:
		return nil
	case t.Binding == "" && s.database.sessions > 0:
		return endInstance{}
	case t.Binding != "" && s.login.sessions > 0:
		return endSessions{}
	}
	return nil
}
