package lifecycle

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"
)

// A Key names an instance, or one binding of it, on one platform. Two
// platforms may use the same ids: they never meet.
type Key struct {
	Platform string `json:"platform"`
	Instance string `json:"instance"`
	// Binding is empty in the key of an instance.
	Binding string `json:"binding,omitempty"`
}

// InstanceKey is the key of the instance itself, which a binding's key
// belongs to.
func (k Key) InstanceKey() Key { return Key{Platform: k.Platform, Instance: k.Instance} }

// BindingKey is the key of one binding of this instance.
func (k Key) BindingKey(binding string) Key {
	return Key{Platform: k.Platform, Instance: k.Instance, Binding: binding}
}

// IsBinding reports whether the key names a binding.
func (k Key) IsBinding() bool { return k.Binding != "" }

// A Token names an operation to the platform: the operation's random id, and
// the key of the record that carries it, so that reading it needs no index.
// It is opaque to platforms, holds no secret, and is made of unreserved URL
// characters only (checklist PROV-25).
type Token struct {
	Operation string
	Key       Key
}

// OperationIDLength is the length of an operation's id: 128 random bits in
// unpadded base64url.
const OperationIDLength = 22

// idLetters are those of base64url.
const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

var errToken = errors.New("not an operation token of this broker")

// String is the form that platforms see.
func (t Token) String() string {
	fields := []string{t.Key.Platform, t.Key.Instance}
	if t.Key.IsBinding() {
		fields = append(fields, t.Key.Binding)
	}
	var b strings.Builder
	b.WriteString(t.Operation)
	// Identifiers may hold any character, so each is encoded by itself.
	for _, f := range fields {
		b.WriteByte('.')
		b.WriteString(base64.RawURLEncoding.EncodeToString([]byte(f)))
	}
	return b.String()
}

// ParseToken reads what String wrote. Platforms may send anything here: the
// caller treats an error as "not recognised" (LOP-08).
func ParseToken(s string) (Token, error) {
	parts := strings.Split(s, ".")
	if len(parts) < 3 || len(parts) > 4 || len(parts[0]) != OperationIDLength || strings.Trim(parts[0], idLetters) != "" {
		return Token{}, errToken
	}
	fields := make([]string, len(parts)-1)
	for i, p := range parts[1:] {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(p)
		if err != nil || len(raw) == 0 || !utf8.Valid(raw) {
			return Token{}, errToken // what is not text names no record
		}
		fields[i] = string(raw)
	}
	t := Token{Operation: parts[0], Key: Key{Platform: fields[0], Instance: fields[1]}}
	if len(fields) == 3 {
		t.Key.Binding = fields[2]
	}
	// Base64 has more than one spelling of the same bytes (line breaks, for
	// one); a token has one.
	if t.String() != s {
		return Token{}, errToken
	}
	return t, nil
}
