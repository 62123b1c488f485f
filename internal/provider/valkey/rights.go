package valkey

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// allowed are the commands that a binding may give. Whole categories are of data
// types alone: what belongs to one works on keys that it names, and the server
// checks these. Other commands stand here one by one. Hazard: categories such as
// @read and @keyspace have commands that tell the keys of everybody (SCAN, RANDOMKEY,
// DBSIZE), and later servers add others (CLUSTERSCAN).
//
// Not here on purpose: scripts and functions, which stop the server for
// everybody and share one library; CLIENT TRACKING, which tells every key that
// anybody changes; PUBSUB, which tells everybody's channels; COPY and MOVE, which
// reach databases that no deletion looks at; WAIT; INFO; and PFMERGE, which writes to
// anybody's key where it is given no source, since the server then checks none (9.1.2).
var allowed = strings.Fields(`-@all
	+@string +@hash +@list +@set +@sortedset +@stream +@bitmap +@hyperloglog +@geo +@transaction
	+del +unlink +exists +type +touch +dump +rename +renamenx +object|encoding +object|freq +object|idletime +object|refcount +memory|usage
	+expire +expireat +expiretime +pexpire +pexpireat +pexpiretime +persist +ttl +pttl
	+subscribe +unsubscribe +psubscribe +punsubscribe +publish +ssubscribe +sunsubscribe +spublish
	+ping +echo +select|0 +command +client|id +client|getname +client|setname +client|setinfo +client|info +client|no-touch
	-@dangerous -@admin -pfmerge`)

// readsOnly takes from them what changes anything. Keys are opened for reading
// alone, too.
var readsOnly = strings.Fields("-@write -publish -spublish")

// A role is what a binding may do.
type role string

const (
	readWrite role = "read_write"
	readOnly  role = "read_only"
)

// roleOf is what the parameters of a binding ask for.
func roleOf(parameters json.RawMessage) (role, error) {
	asked := struct {
		Role role `json:"role"`
	}{Role: readWrite}
	if len(parameters) > 0 {
		if err := json.Unmarshal(parameters, &asked); err != nil {
			return "", provider.Failf("The parameter role is not a text: give %s or %s.", readWrite, readOnly)
		}
	}
	if asked.Role != readWrite && asked.Role != readOnly {
		return "", provider.Failf("There is no such role: give %s or %s.", readWrite, readOnly)
	}
	return asked.Role, nil
}

// admit makes a binding's user, or makes it anew as it was, in one command. The
// server never sees the password, which is random and long enough that its hash
// tells nothing.
func (s *server) admit(ctx context.Context, name string, l label, r role, password string) error {
	hash := sha256.Sum256([]byte(password))
	keys := "~"
	if r == readOnly {
		keys = "%R~"
	}
	rules := []string{"reset", "on", "#" + hex.EncodeToString(hash[:]), keys + prefix(l) + "*"}
	rules = append(append(rules, channels(l)...), allowed...)
	if r == readOnly {
		rules = append(rules, readsOnly...)
	}
	return s.set(ctx, name, rules...)
}

// channels are what a binding's user may hear of, and its label.
func channels(l label) []string { return []string{"resetchannels", l.rule(), "&" + prefix(l) + "*"} }

// A label says whose a user is. It is written as a channel that the user may use
// and nobody else knows of: a user has no comment, and this one is made and removed
// with it, in one command.
type label struct {
	hosted.Label
	// Until is how long it is retained, or was to be.
	Until time.Time `json:"until,omitzero"`
	move
	// Settings is a digest of what the instance records of its plan.
	Settings string `json:"settings,omitempty"`
}

// labelMark begins a label.
const labelMark = "longshore:"

// rule is the label as a rule.
func (l label) rule() string {
	raw, _ := json.Marshal(l) // texts and a time
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

// label writes the label of an instance, as a user who can do nothing.
func (s *server) label(ctx context.Context, name string, l label) error {
	return s.set(ctx, name, "reset", "off", "resetchannels", l.rule())
}

// A user is what stands at a name.
type user struct {
	name   string
	exists bool
	label  label // the zero label if it has none
}

// user reads what stands at a name.
func (s *server) user(ctx context.Context, name string) (user, error) {
	flags, channels, err := s.look(ctx, name)
	u := user{name: name, exists: flags != nil}
	for _, c := range channels {
		if l, ok := parseLabel(c); ok {
			u.label = l
		}
	}
	return u, err
}

// own reads the user of these tags. One that has others is not ours.
func (s *server) own(ctx context.Context, t provider.Tags) (user, error) {
	u, err := s.user(ctx, name(t))
	if err == nil && u.exists && u.label.Tags != t {
		err = notOurs()
	}
	return u, err
}

// instance is the instance that a step needs.
func (s *server) instance(ctx context.Context, in provider.Instance) (user, error) {
	made, err := s.own(ctx, provider.TagsOf(in))
	if err != nil || made.exists && !made.label.Half {
		return made, err
	}
	return made, provider.Failf("There is no such instance on the server any more. Delete it and order another one.")
}

// The names of users. That of a binding begins with that of its instance.
const (
	namePrefix    = "lsv"
	bindingPrefix = "b"
)

func instanceID(t provider.Tags) string { return hosted.Name(namePrefix, t.OfInstance()) }

// bindings is how the names of all bindings of an instance begin.
func bindings(t provider.Tags) string { return instanceID(t) + "-" }

// name is the name of the user of these tags.
func name(t provider.Tags) string {
	if t.Binding == "" {
		return instanceID(t)
	}
	return bindings(t) + hosted.Name(bindingPrefix, t)
}

// Names are those that the thing with these tags has on its server: an instance's user,
// which is what its keys begin with in braces, too; or a binding's user.
func Names(t provider.Tags) []string { return []string{name(t)} }

// prefix begins all keys and channels of an instance. In braces, since a cluster keeps
// together what has the same text there.
func prefix(l label) string { return "{" + l.home() + "}:" }
