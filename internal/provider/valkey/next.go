package valkey

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// An act is a list of commands to the server, in order. Each is safe to repeat.
type act [][]string

// provision returns the next act, or nil when the instance is ready.
func (now seen) provision(l label, in provider.Instance) (any, error) {
	switch {
	case len(now.others) > 0: // the keys belong to them
		return nil, hosted.NotOurs()
	case !now.own.exists:
		return act{labelled(now.own.name, l)}, nil
	case hosted.Undeleted(l.Tags):
		return now.update(in)
	}
	return nil, nil
}

// update returns the next act, or nil when the label names the instance's plan.
func (now seen) update(in provider.Instance) (any, error) {
	if l := now.own.label.ofPlan(in); l.rule() != now.own.label.rule() {
		return act{labelled(now.own.name, l)}, nil
	}
	return nil, nil
}

// ofPlan returns the label with the plan of an instance.
func (l label) ofPlan(in provider.Instance) label {
	digest := sha256.Sum256(in.Snapshot)
	l.PlanID, l.Settings = in.PlanID, hex.EncodeToString(digest[:8])
	return l
}

// bind returns the label of a binding's user: its present label if the user exists, and l if it does not.
func (now seen) bind(l label) (label, error) {
	if now.binding.exists {
		l = now.binding.label
	}
	if l.Locked != "" || now.own.label.Locked != "" {
		return l, hosted.ErrQuarantine
	}
	return l, nil
}

// of returns the user of the binding that the tags name, or the instance's user if they name none.
func (now seen) of(t provider.Tags) user {
	if t.Binding != "" {
		return now.binding
	}
	return now.own
}

// Label implements hosted.Seen.
func (now seen) Label(t provider.Tags) (hosted.Label, bool) {
	u := now.of(t)
	return u.label.Label, u.exists
}

// Relabel implements hosted.Seen.
func (now seen) Relabel(t provider.Tags, to hosted.Label) any {
	u := now.of(t)
	u.label.Label = to
	if t.Binding == "" {
		return act{labelled(u.name, u.label)}
	}
	return act{entitled(u.name, u.label, now.home)}
}

// Enforce implements hosted.Seen. It turns the users of the bindings on or off, as the labels say. It
// removes the users of a retained instance; an undelete does not restore them.
func (now seen) Enforce(t provider.Tags, _ hosted.Label) any {
	bindings := now.bindings
	if t.Binding != "" {
		bindings = []user{now.binding}
	} else if len(bindings) > 0 && !now.own.label.InUse() {
		return act{removed(bindings...)}
	}
	var all act
	for _, u := range bindings {
		switch shut := u.label.Locked != "" || now.own.label.Locked != ""; {
		case u.label.Instance == "": // the user belongs to somebody else, and its name has the prefix by chance
		case shut && !u.label.Out:
			all = append(all, entitled(u.name, u.label, now.home, "off"), []string{"CLIENT", "KILL", "USER", u.name})
			u.label.Out = true
			all = append(all, entitled(u.name, u.label, now.home))
		case !shut && u.label.Out:
			u.label.Out = false
			all = append(all, entitled(u.name, u.label, now.home, "on"))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// adopt returns the next act, or nil when the label is the owner's. The keys keep their prefix. Hazard: the
// server has no command that changes a user only if nobody has changed it since Look. Each owner therefore
// has a label under its own name, which no late call of the former owner touches. If several owners take
// the former label at the same time, the first one gets it.
func adopt(now seen, owner, former provider.Tags) (any, error) {
	var was user
	others := 0
	for _, u := range now.others {
		if u.label.Owner() == former.Owner() {
			was = u
		} else {
			others++
		}
	}
	switch {
	case now.own.exists && now.own.label.Owner() != owner.Owner():
		return nil, hosted.NotOurs()
	case now.own.exists && was.exists:
		return act{removed(was)}, nil
	case now.own.exists:
		return nil, nil
	case others > 0:
		return nil, hosted.NotOurs()
	case !was.exists:
		return nil, hosted.Gone()
	case was.taken == "":
		return act{[]string{"ACL", "SETUSER", was.name, was.label.rule(), "&" + takenMark + now.own.name}}, nil
	case was.taken != now.own.name:
		return nil, hosted.NotOurs()
	}
	was.label.Tags = owner
	return act{labelled(now.own.name, was.label)}, nil
}
