// Package hosted is the provider on shared servers (PostgreSQL, MariaDB, Valkey), but
// for what an engine has of its own: how a server is reached today, which one a step is
// about, whether it was restored, the verbs, the loop that looks and acts, what errors
// ask for, labels, inventory, quarantine, and passwords that follow from a binding's
// secret. It speaks to no server itself: an Engine does, and says what comes next.
package hosted

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/secret"
)

// DefaultTarget is the name of the only target of a provider that has one.
const DefaultTarget = "default"

// TargetName is what the names of targets look like.
var TargetName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// An Access is how one server is reached today, as the broker's login and as users
// do. It is looked up by the target's name, and never recorded. Its JSON is what
// package remote sends.
type Access struct {
	secret.Holder
	// Host is a name or an address, or the folder of a Unix socket.
	Host string `json:"host"`
	Port int    `json:"port"`
	User string `json:"user"`
	// Password is the broker's login's.
	Password string `json:"password,omitempty"`
	// Database is the one that the broker's login works in, where the engine has
	// such.
	Database string `json:"database,omitempty"`
	// TLS is how the server is spoken to, by the broker and by users.
	TLS TLS `json:"tls"`
	// CA is what the server's certificate is verified by, in PEM; with it users are
	// told the same. Empty for none, or for the system's.
	CA string `json:"ca,omitempty"`
	// PublicHost and PublicPort are how users reach it; Host and Port unless set.
	PublicHost string `json:"public_host,omitempty"`
	PublicPort int    `json:"public_port,omitempty"`
}

// Types of credentials, by the names that the Service Binding Specification for
// Kubernetes has. Libraries look a binding up by its type, and some refuse to work at
// all beside one that has none.
const (
	TypePostgreSQL = "postgresql"
	TypeMySQL      = "mysql" // MariaDB's too
	TypeRedis      = "redis" // Valkey's too
)

// Public is the address that users are given.
func (a Access) Public() (host string, port int) {
	return cmp.Or(a.PublicHost, a.Host), cmp.Or(a.PublicPort, a.Port)
}

// Accesses are today's targets by their names.
type Accesses map[string]Access

// Reach is how to reach the target of a name. An instance that names none is of
// the default one.
func (a Accesses) Reach(t provider.Target) (name string, _ Access, _ error) {
	name = cmp.Or(t.Name, DefaultTarget)
	access, ok := a[name]
	if !ok {
		return name, access, &target.Trouble{Kind: target.Unknown, Target: name,
			Message: "it is not in today's settings: name it in them again"}
	}
	return name, access, nil
}

// Names are the names of all, in order.
func (a Accesses) Names() []string { return slices.Sorted(maps.Keys(a)) }

// Targets is a wired.Provider's Targets.
func (a Accesses) Targets(context.Context) ([]string, error) { return a.Names(), nil }

// learn compares the target that is recorded with the identity that the server
// gave. For one that is not recorded yet, it answers the status that has it
// recorded: the step makes nothing. Another identity is a passing error: another
// server answers at the address, and what is absent there is not gone.
func learn(recorded provider.Target, name, identity string) (*provider.Status, error) {
	switch recorded.Identity {
	case identity:
		return nil, nil
	case "":
		return &provider.Status{
			Target: &provider.Target{Name: name, Identity: identity}, Description: "Found the server", After: time.Millisecond,
		}, nil
	}
	return nil, &target.Trouble{Kind: target.Other, Target: name, Message: fmt.Sprintf("it answers as %q, and this "+
		"was made on "+
		"%q: another server is at its address. Have the settings lead to the right one", identity, recorded.Identity)}
}

// InUse reports whether what is so labelled is an instance that somebody uses: what is
// retained is deleted.
func (l Label) InUse() bool { return l.RetainedUntil.IsZero() }

// A Label says whose a thing is, where an engine has comments and no tags. Its
// JSON is the comment.
type Label struct {
	provider.Tags
	// The tags of a binding have the origin of its instance: its names derive from it.
	// PlanID and Created are for the inventory; Created is UTC.
	PlanID  string    `json:"plan,omitempty"`
	Created time.Time `json:"created"`
	// Locked says that it is in quarantine, or what else the provider locked it for.
	Locked string `json:"locked,omitempty"`
	// RetainedUntil is set on what is retained: how long it stays in quarantine, UTC.
	RetainedUntil time.Time `json:"retained_until,omitzero"`
	// Details are what else the provider keeps with the thing: what a deletion has to
	// know, which is given neither settings nor a snapshot. No secrets: every user of
	// a server may read its comments.
	Details json.RawMessage `json:"details,omitempty"`
}

// labelMark begins each label, so that what others have written is never taken
// for one.
const labelMark = "longshore:"

// Text is the label as a comment: ASCII letters alone, no quotes that SQL would
// need escaped but the double ones of JSON.
func (l Label) Text() string {
	l.Created, l.RetainedUntil = l.Created.UTC().Truncate(time.Millisecond), l.RetainedUntil.UTC().Truncate(time.Millisecond)
	raw, _ := json.Marshal(l) // texts and a time
	return labelMark + asciiJSON(raw)
}

// asciiJSON has every letter beyond ASCII, and the single quote, as JSON's escapes:
// no encoding of a server changes it.
func asciiJSON(raw []byte) string {
	var b strings.Builder
	for _, r := range string(raw) {
		switch {
		case r == '\'':
			b.WriteString(`\u0027`)
		case r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// ParseLabel reads a comment; ok is false for what is no label.
func ParseLabel(text string) (l Label, ok bool) {
	raw, ok := strings.CutPrefix(text, labelMark)
	if !ok || json.Unmarshal([]byte(raw), &l) != nil {
		return Label{}, false
	}
	return l, l.Platform != "" && l.Instance != "" && l.Incarnation != ""
}

// nameDigits are how much of a hash a name has: 128 bits in base32.
const nameDigits = 26

// Name derives a name of at most 32 letters and digits from the ids that tags
// have, and their origin: it has no hyphen or underscore, since engines
// quote the one and take the other for a pattern. Prefix is of a few letters.
func Name(prefix string, t provider.Tags) string {
	whole := provider.Name("x", "x", t)
	return prefix + whole[len(whole)-nameDigits:]
}

// leastSecret is the size of a binding's secret.
const leastSecret = 32

// errSecret: a password that follows from less could be found from what is public, since
// names are.
var errSecret = fmt.Errorf("the binding has no secret of %d bytes, so that it is given no password", leastSecret)

// Password is 192 bits that follow from a binding's secret and its name, and tell
// neither. Its letters need no escaping in a URL, in SQL or in a shell.
func Password(secret []byte, name string) (string, error) {
	if len(secret) < leastSecret {
		return "", errSecret
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "longshore password v1 "+name, 24)
	return base64.RawURLEncoding.EncodeToString(key), err
}
