// Package hosted is the common part of the providers on shared servers (PostgreSQL, MariaDB,
// Valkey): how a server is reached today, the proof of its identity and epoch, the verbs, the loop
// that looks and acts, the classes of errors, labels, inventory, quarantine, and passwords derived
// from a binding's secret. It speaks to no server itself: an Engine does, and decides what comes
// next.
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
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/secret"
)

// DefaultTarget is the name of the target of a provider that has only one.
const DefaultTarget = "default"

// TargetName is the form of the names of targets.
var TargetName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// An Access says how one server is reached today, by the broker's login and by users. It is looked
// up by the target's name, and never recorded. Package remote sends it as JSON.
type Access struct {
	secret.Holder
	// Host is a name or an address, or the folder of a Unix socket.
	Host string `json:"host"`
	Port int    `json:"port"`
	User string `json:"user"`
	// Password is the password of the broker's login.
	Password string `json:"password,omitempty"`
	// Database is the database in which the broker's login works, in engines that have databases.
	Database string `json:"database,omitempty"`
	// TLS is how the broker and users connect to the server.
	TLS TLS `json:"tls"`
	// CA has the certificates that verify the server, in PEM; users get the same. Empty for none,
	// or for those of the system.
	CA string `json:"ca,omitempty"`
	// PublicHost and PublicPort are where users reach the server; Host and Port unless set.
	PublicHost string `json:"public_host,omitempty"`
	PublicPort int    `json:"public_port,omitempty"`
	// Unreadable says why the secret that has all this could not be read; empty if it was.
	Unreadable string `json:"unreadable,omitempty"`
}

// Types of credentials, by the names of the Service Binding Specification for Kubernetes. Libraries
// look bindings up by type, and some fail if any binding has none.
const (
	TypePostgreSQL = "postgresql"
	TypeMySQL      = "mysql" // MariaDB's too
	TypeRedis      = "redis" // Valkey's too
)

// Public returns the address that users are given.
func (a Access) Public() (host string, port int) {
	return cmp.Or(a.PublicHost, a.Host), cmp.Or(a.PublicPort, a.Port)
}

// Credentials returns what every engine gives an application, and the address that users are given.
func (a Access) Credentials(kind, user, password string) (all map[string]any, address string) {
	host, port := a.Public()
	all = map[string]any{"type": kind, "host": host, "port": port, "username": user, "password": password}
	if a.CA != "" {
		all["ca"] = a.CA
	}
	return all, a.address()
}

// address returns the address that users are given, as one text.
func (a Access) address() string {
	host, port := a.Public()
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// Accesses are today's targets, by name.
type Accesses map[string]Access

// Reach finds the access of a target by its name; for a target without a name, that of the default
// target.
func (a Accesses) Reach(t provider.Target) (name string, _ Access, _ error) {
	name = cmp.Or(t.Name, DefaultTarget)
	access, ok := a[name]
	switch {
	case !ok:
		return name, access, &target.Trouble{Kind: target.Unknown, Target: name,
			Message: "it is not in the current settings: add it again"}
	case access.Unreadable != "":
		return name, access, &target.Trouble{Kind: target.Unreadable, Target: name,
			Message: "its secret cannot be read (repair it, or the right to read it): " + access.Unreadable}
	}
	return name, access, nil
}

// Names returns the names of all targets, in order.
func (a Accesses) Names() []string { return slices.Sorted(maps.Keys(a)) }

// Targets implements the Targets of a wired.Provider.
func (a Accesses) Targets(context.Context) ([]string, error) { return a.Names(), nil }

// learn compares the recorded target with the identity that the server gave. If no identity is
// recorded, it returns a Later that records the server's: that step makes nothing. Another identity
// is a passing error: a different server answers at the address, so that a thing that is absent
// there is not gone.
func learn(recorded provider.Target, name, identity string) error {
	switch recorded.Identity {
	case identity:
		return nil
	case "":
		return &Later{provider.Status{
			Target: &provider.Target{Name: name, Identity: identity}, Description: "Found the server", After: time.Millisecond,
		}}
	}
	return &target.Trouble{Kind: target.Other, Target: name, Message: fmt.Sprintf("it answers as %q, and this was made on %q: "+
		"another server is at its address. Have the settings lead to the right one", identity, recorded.Identity)}
}

// InUse reports whether the instance of the label is not retained: for its user, a retained
// instance is deleted.
func (l Label) InUse() bool { return l.RetainedUntil.IsZero() }

// A Label says whose a thing is, in engines that have comments and no tags. The comment is the
// label's JSON.
type Label struct {
	provider.Tags
	// The tags of a binding carry the origin of its instance, from which its names derive. PlanID
	// and Created are for the inventory; Created is UTC.
	PlanID  string    `json:"plan,omitempty"`
	Created time.Time `json:"created"`
	// Locked says why the thing is locked: because of a quarantine, or for a reason of the
	// provider's.
	Locked string `json:"locked,omitempty"`
	// RetainedUntil is until when a retained instance stays in quarantine, UTC; zero if it is not
	// retained.
	RetainedUntil time.Time `json:"retained_until,omitzero"`
	// Details are further data that the provider keeps with the thing, such as what a deletion
	// needs: a deletion is given neither settings nor a snapshot. They contain no secrets: every
	// user of a server may read its comments.
	Details json.RawMessage `json:"details,omitempty"`
}

// labelMark begins each label, so that no other comment is taken for a label.
const labelMark = "longshore:"

// Text returns the label as a comment, in ASCII. The only quotes in it are the double quotes of
// JSON, so that nothing needs to be escaped in SQL.
func (l Label) Text() string {
	l.Created, l.RetainedUntil = l.Created.UTC().Truncate(time.Millisecond), l.RetainedUntil.UTC().Truncate(time.Millisecond)
	raw, _ := json.Marshal(l) // texts and a time
	return labelMark + unplain.ReplaceAllStringFunc(string(raw), func(char string) (escaped string) {
		for _, unit := range utf16.Encode([]rune(char)) {
			escaped += fmt.Sprintf(`\u%04x`, unit)
		}
		return escaped
	})
}

// unplain matches every character that is not printable ASCII, and the single quote. They are escaped,
// so that no encoding of a server changes the text.
var unplain = regexp.MustCompile(`[^ -&(-~]`)

// ParseLabel parses a comment; ok is false for a comment that is no label.
func ParseLabel(text string) (l Label, ok bool) {
	raw, ok := strings.CutPrefix(text, labelMark)
	if !ok || json.Unmarshal([]byte(raw), &l) != nil || l.Platform == "" || l.Instance == "" || l.Incarnation == "" {
		return Label{}, false
	}
	return l, true
}

// Name derives a name of at most 32 letters and digits from the ids and the origin of tags. The
// name has no hyphen, which engines quote, and no underscore, which they take for a pattern. The
// prefix has a few letters.
func Name(prefix string, t provider.Tags) string { return prefix + provider.Hash(t) }

// leastSecret is the least size of a binding's secret, in bytes.
const leastSecret = 32

// errSecret refuses to derive a password from a shorter secret: names are public, so that the
// password could be guessed.
var errSecret = fmt.Errorf("the binding has no secret of %d bytes, so that it is given no password", leastSecret)

// Password derives 192 bits from a binding's secret and its name, and reveals neither. Its
// characters need no escaping in a URL, in SQL or in a shell.
func Password(secret []byte, name string) (string, error) {
	if len(secret) < leastSecret {
		return "", errSecret
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "longshore password v1 "+name, 24)
	return base64.RawURLEncoding.EncodeToString(key), err
}
