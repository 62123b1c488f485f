package lifecycle

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"
)

// A Key names an instance, or one binding of it, on one platform. Two platforms may use the
// same ids without conflict.
type Key struct {
	Platform string `json:"platform"`
	Instance string `json:"instance"`
	// Binding is empty in the key of an instance.
	Binding string `json:"binding,omitempty"`
	// Life is empty for the current life of the id. For a former life, which may have left
	// things, it is the incarnation. The record of a former life stands beside the record
	// of the id until nothing is left of it.
	Life string `json:"life,omitempty"`
}

// Former returns the key under which a former life of the id has its record.
func (k Key) Former(incarnation string) Key {
	k.Life = incarnation
	return k
}

// Current returns the key of the id's current life.
func (k Key) Current() Key { return k.Former("") }

// InstanceKey returns the key of the instance itself; k may be the key of one of its bindings.
func (k Key) InstanceKey() Key { return Key{Platform: k.Platform, Instance: k.Instance} }

// BindingKey returns the key of one binding of this instance.
func (k Key) BindingKey(binding string) Key {
	return Key{Platform: k.Platform, Instance: k.Instance, Binding: binding}
}

// IsBinding reports whether the key names a binding.
func (k Key) IsBinding() bool { return k.Binding != "" }

// Noun names the kind of thing in messages.
func (k Key) Noun() string {
	if k.IsBinding() {
		return "service binding"
	}
	return "service instance"
}

// either picks the kind for an instance or for a binding.
func (k Key) either(instance, binding Kind) Kind {
	if k.IsBinding() {
		return binding
	}
	return instance
}

// A Token names an operation to the platform: the operation's random id, and
// the key of the record that carries it, so that reading it needs no index.
// It is opaque to platforms, holds no secret, and is made of unreserved URL
// characters only (PROV-25).
type Token struct {
	Operation string
	Key       Key
}

// OperationIDLength is the length of an operation's id: 128 random bits in
// unpadded base64url.
const OperationIDLength = 22

// idLetters are the letters of base64url.
const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

var errToken = errors.New("not an operation token of this broker")

// String returns the form that platforms see.
func (t Token) String() string { return string(t.appendTo(make([]byte, 0, 128))) }

func (t Token) appendTo(b []byte) []byte {
	b = append(b, t.Operation...)
	// Identifiers may hold any character, so each is encoded by itself.
	b = appendField(b, t.Key.Platform)
	b = appendField(b, t.Key.Instance)
	if t.Key.IsBinding() || t.Key.Life != "" {
		b = appendField(b, t.Key.Binding)
	}
	if t.Key.Life != "" {
		b = appendField(b, t.Key.Life)
	}
	return b
}

func appendField(b []byte, field string) []byte {
	return base64.RawURLEncoding.AppendEncode(append(b, '.'), []byte(field))
}

// ParseToken parses the form that String returns. Platforms may send anything: the caller
// answers an error as "not recognised" (LOP-08).
func ParseToken(s string) (Token, error) {
	id, rest, _ := strings.Cut(s, ".")
	if len(id) != OperationIDLength || strings.Trim(id, idLetters) != "" {
		return Token{}, errToken
	}
	t := Token{Operation: id}
	for _, field := range []*string{&t.Key.Platform, &t.Key.Instance, &t.Key.Binding, &t.Key.Life} {
		var encoded string
		encoded, rest, _ = strings.Cut(rest, ".")
		raw, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil || !utf8.Valid(raw) {
			return Token{}, errToken // a field that is not text names no record
		}
		*field = string(raw)
	}
	// A token has one spelling, and the decoder accepts others.
	if t.Key.Platform == "" || t.Key.Instance == "" || string(t.appendTo(make([]byte, 0, 128))) != s {
		return Token{}, errToken
	}
	return t, nil
}
