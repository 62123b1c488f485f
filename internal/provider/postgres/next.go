package postgres

import (
	"encoding/json"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/scram"
)

// What a label says in Locked.
const (
	lockedUnbind     = "unbind"
	lockedQuarantine = "quarantine"
	lockedRetained   = "retained"
)

// facts are what the provider keeps with an owner role or a login, in its label.
type facts struct {
	// Limit is how many connections the database takes; 0 for any number.
	Limit int `json:"limit,omitempty"`
	// Warn is the size, in bytes, from which on users are warned.
	Warn int64 `json:"warn,omitempty"`
	// Operation is the one that set the limits last.
	Operation string `json:"operation,omitempty"`
	// Ready says that nothing is left to be made.
	Ready bool `json:"ready,omitempty"`
	// Until is how long a database is retained. Of one that becomes another instance,
	// From is the owner role, as it was named while it was retained, and Was whose it was.
	Until time.Time      `json:"until,omitzero"`
	From  string         `json:"from,omitempty"`
	Was   *provider.Tags `json:"was,omitempty"`
	// ReadOnly is a login that only reads.
	ReadOnly bool `json:"read_only,omitempty"`
}

// text is a label with these facts.
func (f facts) text(l hosted.Label) string {
	l.Facts, _ = json.Marshal(f) // numbers and texts
	return l.Text()
}

func factsOf(l hosted.Label) (f facts) {
	_ = json.Unmarshal(l.Facts, &f) // what an earlier program did not know is zero
	return f
}

func notOurs() error {
	return provider.Failf("The name that this would have on the database server is taken by something that is not this broker's. " +
		"It was left as it is. Ask the operator of the service to look at it.")
}

func noInstance() error {
	return provider.Failf("There is no such database. Ask the operator of the service.")
}

func noRetained() error {
	return provider.Failf("What was retained of the deleted instance is not there any more. Delete this instance.")
}

// labelled is the label of a thing that is ours.
func labelled(t thing, tags provider.Tags) (hosted.Label, bool) {
	l, ok := t.label()
	return l, ok && l.Tags == tags
}

// owned reports whether the database is ours. A crash after its creation leaves it
// without a label: it is ours then if our login owns it and the owner role of the
// same name is ours.
func (s standing) owned(tags provider.Tags) bool {
	if _, ok := labelled(s.database.thing, tags); ok {
		return true
	}
	_, ok := labelled(s.owner.thing, tags)
	return s.database.comment == "" && s.database.ours && ok
}

// remove is what comes next until nothing of the instance stands. What was retained and
// never became the instance, as by a late call, is retained again.
func remove(tags provider.Tags, now standing) (decision, error) {
	if _, ours := labelled(now.owner.thing, tags); now.owner.exists() && !ours {
		return decision{}, notOurs()
	}
	if back := now.taken(); back != nil {
		return back.next(now)
	}
	switch {
	case now.database.exists() && !now.owned(tags):
		return decision{}, notOurs()
	case now.database.exists():
		return decision{act: dropDatabase{}}, nil
	case now.owner.exists():
		return decision{act: dropOwner{}}, nil
	}
	return decision{}, nil
}

// provision is what comes next until the instance is ready.
func (w *wantedInstance) provision(now standing) (decision, error) {
	label, ours := labelled(now.owner.thing, w.tags)
	switch _, known := now.database.label(); {
	case now.owner.exists() && !ours, now.database.exists() && !now.owned(w.tags):
		return decision{}, notOurs()
	case !now.owner.exists() && now.database.exists():
		return remove(w.tags, now)
	case !now.owner.exists():
		return decision{act: createOwner{w.facts.text(w.label())}}, nil
	case !now.database.exists() && factsOf(label).Was != nil && !factsOf(label).Ready: // an empty one is not what was to be given back
		return decision{}, noRetained()
	case !now.database.exists():
		return decision{act: createDatabase{w.locale, w.connections()}}, nil
	case !known || !now.database.open:
		return decision{act: openDatabase{w.label().Text()}}, nil
	case !factsOf(label).Ready:
		return decision{act: w.configure(label)}, nil
	}
	return decision{}, nil
}

// update is what comes next until the instance is as it is to be.
func (w *wantedInstance) update(now standing) (decision, error) {
	label, err := usable(w.tags, now)
	if err != nil || factsOf(label).Operation == w.facts.Operation {
		return decision{}, err
	}
	return decision{act: w.configure(label)}, nil
}

// usable is the label of an instance that is there and whole.
func usable(tags provider.Tags, now standing) (hosted.Label, error) {
	label, ours := labelled(now.owner.thing, tags)
	switch {
	case now.owner.exists() && !ours, now.database.exists() && !now.owned(tags):
		return label, notOurs()
	case !ours || !now.database.exists() || !factsOf(label).Ready:
		return label, noInstance()
	}
	return label, nil
}

// bounded has the database take as many connections as the plan says: a step that
// died has left it without a limit.
func (s standing) bounded() (decision, bool) {
	label, ours := s.owner.label()
	limit := limitOf(factsOf(label))
	return decision{act: setLimit{limit}}, ours && factsOf(label).Ready && s.database.exists() && s.database.limit != limit &&
		s.database.limit != halfDropped
}

// bind is what comes next until the login opens.
func (w *wantedBinding) bind(now standing) (decision, error) {
	if _, err := usable(w.of, now); err != nil {
		return decision{}, err
	}
	if d, needed := now.bounded(); needed {
		return d, nil
	}
	label, ours := labelled(now.login.thing, w.tags)
	f := facts{ReadOnly: w.readOnly}
	switch {
	case !now.login.exists() && w.readOnly: // it is let in when it has something to read
		return decision{act: createLogin{label: f.text(w.label()), readOnly: true}}, nil
	case !now.login.exists():
		f.Ready = true
		verifier, err := scram.Verifier(w.password) // no log of a server ever has the password
		return decision{act: createLogin{label: f.text(w.label()), verifier: verifier, until: w.until}}, err
	case !ours:
		return decision{}, notOurs()
	case label.Locked == lockedUnbind:
		return decision{}, provider.Failf("The binding is being removed. Bind again, with another binding id.")
	case !factsOf(label).Ready:
		f.Ready = true
		verifier, err := scram.Verifier(w.password)
		return decision{act: openLogin{label: f.text(label), verifier: verifier, readOnly: w.readOnly, until: w.until}}, err
	}
	return decision{}, nil
}

// unbind is what comes next until nothing of the binding stands.
func unbind(tags provider.Tags, now standing) (decision, error) {
	label, ours := labelled(now.login.thing, tags)
	switch d, needed := now.bounded(); {
	case !now.login.exists() && needed && now.owned(tags.OfInstance()):
		return d, nil
	case !now.login.exists():
		return decision{}, nil
	case !ours:
		return decision{}, notOurs()
	case now.login.canLogin || label.Locked != lockedUnbind:
		label.Locked = lockedUnbind
		return decision{act: lockLogin{label: label.Text()}}, nil
	case now.login.sessions > 0:
		return decision{act: endSessions{}}, nil
	case now.login.prepared > 0 || len(now.login.holds) > 0:
		return decision{act: emptyLogin{}}, nil
	}
	return decision{act: dropLogin{}}, nil
}

// created is a label's time.
func created(now time.Time) time.Time { return now.UTC().Truncate(time.Millisecond) }
