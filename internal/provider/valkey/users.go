package valkey

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// The parts of users' names. The name of a binding's user begins with the name of its instance's owner.
const (
	namePrefix    = "lsv"
	bindingPrefix = "b"
	// adoptedMark separates the name of the keys from the owner that has adopted them.
	adoptedMark = "+"
)

// names are the names of an instance and a binding.
type names struct {
	home    string // the keys and channels begin with it, in braces; the names of labels begin with it as it is
	label   string // the user that carries the owner's label
	prefix  string // the names of all bindings of the owner begin with it
	binding string // the user of the binding
}

func namesOf(t provider.Tags) names {
	of := t.OfInstance()
	owner := hosted.Name(namePrefix, of.Owner())
	n := names{home: hosted.Name(namePrefix, of), prefix: owner + "-"}
	if n.label = n.home; n.home != owner {
		n.label += adoptedMark + strings.TrimPrefix(owner, namePrefix)
	}
	if t.Binding != "" {
		n.binding = n.prefix + hosted.Name(bindingPrefix, t)
	}
	return n
}

// Names returns the names that a thing has on its server. A binding has its user. An instance has its user,
// and the name of its keys if that is another one because the instance was adopted.
func Names(t provider.Tags) []string {
	n := namesOf(t)
	if n.binding != "" {
		return []string{n.binding}
	}
	return slices.Compact([]string{n.label, n.home})
}

// prefix returns the prefix of all keys and channels of an instance. The braces make a cluster keep the keys
// in one slot.
func prefix(home string) string { return "{" + home + "}:" }

// A label tells who owns a user. Users of Valkey have no comment, so the label is encoded as the name of a
// channel that the user may use and that nobody else knows. One command makes or removes the user with its
// label.
type label struct {
	hosted.Label
	// Settings is a digest of the plan's snapshot.
	Settings string `json:"settings,omitempty"`
	// Out is true when a binding's user is off and its sessions have ended.
	Out bool `json:"out,omitempty"`
}

const (
	// labelMark is the prefix of the channel that encodes a label.
	labelMark = "longshore:"
	// takenMark is the prefix of the channel that names the user whose label will replace this one.
	takenMark = "longshore-taken:"
)

// rule returns the label as a rule of an access control list.
func (l label) rule() string {
	raw, _ := json.Marshal(l) // cannot fail: it has only texts and times
	return "&" + labelMark + base64.RawURLEncoding.EncodeToString(raw)
}

func parseLabel(channel string) (l label, ok bool) {
	encoded, ok := strings.CutPrefix(channel, labelMark)
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil || json.Unmarshal(raw, &l) != nil {
		return label{}, false
	}
	return l, l.Platform != "" && l.Instance != "" && l.Incarnation != ""
}

// labelled returns the command that writes the label of an instance. Its user has no other rights.
func labelled(name string, l label) []string {
	return []string{"ACL", "SETUSER", name, "reset", "off", "resetchannels", l.rule()}
}

// removed returns the command that removes users. The server then ends their sessions.
func removed(users ...user) []string {
	command := []string{"ACL", "DELUSER"}
	for _, u := range users {
		command = append(command, u.name)
	}
	return command
}

// entitled returns the command that writes the user of a binding: more rules, and then the channels that the
// user may use, with its label.
func entitled(name string, l label, home string, more ...string) []string {
	command := append([]string{"ACL", "SETUSER", name}, more...)
	return append(command, "resetchannels", l.rule(), "&"+prefix(home)+"*")
}

// A user is what the server has under a user's name: the user, or nothing.
type user struct {
	name     string
	exists   bool
	label    label  // the zero label if it has none
	taken    string // the user that takes the label over
	identity string // of the server, if it is the user that holds it
}

// seen has the users of an instance and a binding, as Look finds them.
type seen struct {
	home string
	own  user // carries the owner's label
	// others carry the labels of other owners of the same keys, most of them former owners.
	others   []user
	bindings []user // all bindings of the owner; empty if the tags name a binding
	binding  user
}

// Look implements hosted.Host.
func (s *server) Look(ctx context.Context, t provider.Tags) (now seen, err error) {
	n := namesOf(t)
	now = seen{home: n.home, own: user{name: n.label}, binding: user{name: n.binding}}
	all, err := s.users(ctx, namePrefix)
	if err != nil {
		return now, err
	}
	for _, name := range all {
		isLabel := name == n.home || strings.HasPrefix(name, n.home+adoptedMark)
		if !isLabel && name != n.binding && (n.binding != "" || !strings.HasPrefix(name, n.prefix)) {
			continue
		}
		u, _, err := s.user(ctx, name)
		switch {
		case err != nil:
			return now, err
		case !u.exists: // removed since the server named it
		case name == n.label:
			now.own = u
		case isLabel:
			now.others = append(now.others, u)
		case name == n.binding:
			now.binding = u
		default:
			now.bindings = append(now.bindings, u)
		}
	}
	return now, nil
}

// Do implements hosted.Host. The name of a user contains its owner, so a late command makes or removes no user
// of another owner.
func (s *server) Do(ctx context.Context, _ provider.Tags, _ seen, a any) error {
	for _, command := range a.(act) {
		if _, err := s.do(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

// List implements hosted.Host.
func (s *server) List(ctx context.Context, broker, after string, limit int) (page []hosted.Listed, last string, err error) {
	names, err := s.users(ctx, namePrefix)
	names = slices.DeleteFunc(names, func(name string) bool { return name <= after })
	if len(names) > limit {
		names, last = names[:limit], names[limit-1]
	}
	for _, name := range names {
		var u user
		if u, _, err = s.user(ctx, name); err != nil {
			break
		}
		if u.label.Instance != "" && u.label.Broker == broker {
			page = append(page, hosted.Listed{Name: name, Label: u.label.Label})
		}
	}
	return page, last, err
}

// user reads the user of a name, and the user's flags, which are nil if there is no such user.
func (s *server) user(ctx context.Context, name string) (u user, flags []string, err error) {
	u.name = name
	got, err := s.do(ctx, "ACL", "GETUSER", name)
	if err != nil || got.IsNil() {
		return u, nil, err
	}
	about, err := got.AsMap()
	if err != nil {
		return u, nil, fmt.Errorf("reading a user: %w", err)
	}
	listed := about["flags"]
	if flags, err = listed.AsStrSlice(); err != nil {
		return u, nil, fmt.Errorf("reading the flags of a user: %w", err)
	}
	u.exists = true
	for channel := range strings.FieldsSeq(text(about["channels"])) { // the server lists the oldest first
		channel = strings.TrimPrefix(channel, "&")
		if l, ok := parseLabel(channel); ok {
			u.label = l
		}
		if by, ok := strings.CutPrefix(channel, takenMark); ok {
			u.taken = cmp.Or(u.taken, by)
		}
		if id, ok := strings.CutPrefix(channel, identityMark); ok {
			u.identity = cmp.Or(u.identity, id)
		}
	}
	return u, flags, nil
}

// users returns the names of users that begin with a prefix, in order. Hazard: the server sends the names of
// all its users here, and writes all of them in save; these are the two slow commands of an operation.
func (s *server) users(ctx context.Context, begins string) ([]string, error) {
	got, err := s.do(ctx, "ACL", "USERS")
	if err != nil {
		return nil, err
	}
	names, err := got.AsStrSlice()
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begins) })
	slices.Sort(names)
	return names, err
}

// save makes the server write its users to disk.
func (s *server) save(ctx context.Context) error {
	_, err := s.do(ctx, "ACL", "SAVE")
	return err
}
