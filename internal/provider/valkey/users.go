package valkey

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// The names of users. The name of a binding's user begins with that of its instance's.
const (
	namePrefix    = "lsv"
	bindingPrefix = "b"
	// adoptedMark stands between the name of the keys and the owner that has adopted them.
	adoptedMark = "+"
)

// names are the names of an instance and a binding.
type names struct {
	home    string // in braces, the prefix of keys and channels; and the prefix of the labels' names
	label   string // the user that carries the owner's label
	prefix  string // of the names of all the owner's bindings
	binding string
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

// Names are those that the thing with these tags has on its server: a binding's user; or an
// instance's user, and what its keys begin with, where it has those of its origin.
func Names(t provider.Tags) []string {
	n := namesOf(t)
	if n.binding != "" {
		return []string{n.binding}
	}
	return slices.Compact([]string{n.label, n.home})
}

// prefix returns the prefix of all keys and channels of an instance. The braces make a cluster keep
// them together.
func prefix(home string) string { return "{" + home + "}:" }

// A label says whose a user is. A user has no comment, so the label is written as a channel that the user
// may use and nobody else knows. One command makes or removes it with the user.
type label struct {
	hosted.Label
	// Settings is a digest of the plan's snapshot.
	Settings string `json:"settings,omitempty"`
	// Out says that a binding's user was turned off, and that its sessions have ended since.
	Out bool `json:"out,omitempty"`
}

const (
	// labelMark is the prefix of a label.
	labelMark = "longshore:"
	// takenMark is the prefix of the channel that names the label which takes this one's place.
	takenMark = "longshore-taken:"
)

// rule returns the label as a rule of the server's access control list.
func (l label) rule() string {
	raw, _ := json.Marshal(l) // texts and times
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

// labelled returns the command that writes the label of an instance, as a user without rights.
func labelled(name string, l label) []string {
	return []string{"ACL", "SETUSER", name, "reset", "off", "resetchannels", l.rule()}
}

// removed returns the command that removes users and ends their sessions.
func removed(users ...user) []string {
	command := []string{"ACL", "DELUSER"}
	for _, u := range users {
		command = append(command, u.name)
	}
	return command
}

// channels returns the rules of a binding's channels, and the rule of its label.
func channels(l label, home string) []string {
	return []string{"resetchannels", l.rule(), "&" + prefix(home) + "*"}
}

// A user is what exists under a name of the server's users.
type user struct {
	name   string
	exists bool
	label  label // the zero label if it has none
	taken  string
}

// seen are the users of an instance and a binding.
type seen struct {
	home string
	own  user // carries the owner's label
	// others carry labels of other owners of the same keys, mostly former ones.
	others   []user
	bindings []user // all of the owner's, unless the tags name one
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
		u, err := s.user(ctx, name)
		switch {
		case err != nil:
			return now, err
		case !u.exists: // gone since it was named
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

// Do implements hosted.Host. It changes users that are named by their owner: a late command makes or
// removes nothing of another owner's.
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
		if u, err = s.user(ctx, name); err != nil {
			break
		}
		if u.label.Instance != "" && u.label.Broker == broker {
			page = append(page, hosted.Listed{Name: name, Label: u.label.Label})
		}
	}
	return page, last, err
}

// user reads the user with a name.
func (s *server) user(ctx context.Context, name string) (user, error) {
	flags, channels, err := s.getUser(ctx, name)
	u := user{name: name, exists: flags != nil}
	for _, c := range channels {
		if l, ok := parseLabel(c); ok {
			u.label = l
		}
		if by, ok := strings.CutPrefix(c, takenMark); ok && u.taken == "" { // the oldest counts
			u.taken = by
		}
	}
	return u, err
}

// getUser reads a user; nil if there is none.
func (s *server) getUser(ctx context.Context, name string) (flags, channels []string, err error) {
	got, err := s.do(ctx, "ACL", "GETUSER", name)
	if err != nil || got.IsNil() {
		return nil, nil, err
	}
	about, err := got.AsMap()
	if err != nil {
		return nil, nil, fmt.Errorf("reading a user: %w", err)
	}
	listed := about["flags"]
	if flags, err = listed.AsStrSlice(); err != nil {
		return nil, nil, fmt.Errorf("reading the flags of a user: %w", err)
	}
	for channel := range strings.FieldsSeq(text(about["channels"])) {
		channels = append(channels, strings.TrimPrefix(channel, "&"))
	}
	return flags, channels, nil
}

// users are the names with a prefix, in order. Hazard: the server answers with all of its users, as
// it writes all of them down in save: these are the two long commands of an operation.
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
