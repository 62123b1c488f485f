package valkey

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// An act is commands to the server, in their order. Each may be repeated.
type act [][]string

// eraseKeys stands for a look at all keys, which takes several steps.
type eraseKeys struct{}

func doing(commands ...[]string) hosted.Next { return hosted.Next{Act: act(commands)} }

var done hosted.Next

// provision is what comes next until the instance is there.
func (now seen) provision(l label, in provider.Instance) (hosted.Next, error) {
	switch {
	case len(now.others) > 0: // whose keys these are
		return done, hosted.NotOurs()
	case !now.own.exists:
		return doing(labelled(now.own.name, l)), nil
	case hosted.Undeleted(l.Tags):
		return now.update(in)
	}
	return done, nil
}

// update is what comes next until the label says which plan the instance is of.
func (now seen) update(in provider.Instance) (hosted.Next, error) {
	if l := now.own.label.ofPlan(in); l.rule() != now.own.label.rule() {
		return doing(labelled(now.own.name, l)), nil
	}
	return done, nil
}

// ofPlan is the label of an instance that is brought to what in says.
func (l label) ofPlan(in provider.Instance) label {
	digest := sha256.Sum256(in.Snapshot)
	l.PlanID, l.Settings = in.PlanID, hex.EncodeToString(digest[:8])
	return l
}

// remove is what comes next until nothing of the instance is there: its users go first, so
// that nobody writes any more, then its keys, and its label last, by which all of it is
// found. Where another owner has a label, the keys are that one's.
func (now seen) remove(erased bool) (hosted.Next, error) {
	switch {
	case len(now.bindings) > 0:
		return doing(removed(now.bindings...)), nil
	case !erased && len(now.others) == 0:
		return hosted.Next{Act: eraseKeys{}}, nil
	case now.own.exists:
		return doing(removed(now.own)), nil
	}
	return done, nil
}

// bind gives the label of a binding's user, which is the one that it has already.
func (now seen) bind(l label) (label, error) {
	if now.binding.exists {
		l = now.binding.label
	}
	if l.Locked != "" || now.own.label.Locked != "" {
		return l, hosted.ErrQuarantine
	}
	return l, nil
}

// unbind is what comes next until the binding's user is gone. The server ends its
// sessions: those that listen, that wait for a key and that are in a transaction too.
func (now seen) unbind() (hosted.Next, error) {
	if !now.binding.exists {
		return done, nil
	}
	return doing(removed(now.binding)), nil
}

// of is the user of the thing with the tags.
func (now seen) of(t provider.Tags) user {
	if t.Binding != "" {
		return now.binding
	}
	return now.own
}

func labelOf(now seen, t provider.Tags) (hosted.Label, bool) {
	u := now.of(t)
	return u.label.Label, u.exists && u.label.Instance != ""
}

func stands(now seen, t provider.Tags) bool { return now.of(t).exists }

func relabel(now seen, t provider.Tags, to hosted.Label) any {
	u := now.of(t)
	u.label.Label = to
	if t.Binding == "" {
		return act{labelled(u.name, u.label)}
	}
	return act{append([]string{"ACL", "SETUSER", u.name}, channels(u.label, now.home)...)}
}

// enforce is the next act until the users of bindings are off, or on. Nobody has what is
// retained any more: whoever had it does not get it back.
func enforce(now seen, t provider.Tags, _ hosted.Label) any {
	bindings := now.bindings
	if t.Binding != "" {
		bindings = []user{now.binding}
	} else if len(bindings) > 0 && !now.own.label.InUse() {
		return act{removed(bindings...)}
	}
	var all act
	for _, u := range bindings {
		switch shut := u.label.Locked != "" || now.own.label.Locked != ""; {
		case u.label.Instance == "": // somebody else's, whose name begins so
		case shut && !u.label.Out:
			all = append(all, append([]string{"ACL", "SETUSER", u.name, "off"}, channels(u.label, now.home)...),
				[]string{"CLIENT", "KILL", "USER", u.name})
			u.label.Out = true
			all = append(all, append([]string{"ACL", "SETUSER", u.name}, channels(u.label, now.home)...))
		case !shut && u.label.Out:
			u.label.Out = false
			all = append(all, append([]string{"ACL", "SETUSER", u.name, "on"}, channels(u.label, now.home)...))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// adopt is what comes next until the label is the owner's, who keeps the prefix. No command
// of the server's changes a user only if that is as it was seen: so each owner has a label
// of another name, which no late call of the former one touches. Of several who take the
// former one's at once, the first is heard.
func adopt(now seen, owner, former provider.Tags) (hosted.Next, error) {
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
		return done, hosted.NotOurs()
	case now.own.exists && was.exists:
		return doing(removed(was)), nil
	case now.own.exists:
		return done, nil
	case others > 0:
		return done, hosted.NotOurs()
	case !was.exists:
		return done, hosted.Gone()
	case was.taken == "":
		return doing([]string{"ACL", "SETUSER", was.name, was.label.rule(), "&" + takenMark + now.own.name}), nil
	case was.taken != now.own.name:
		return done, hosted.NotOurs()
	}
	was.label.Tags = owner
	return doing(labelled(now.own.name, was.label)), nil
}
