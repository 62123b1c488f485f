package provider

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"

	"github.com/longshore/longshore/internal/base/operation"
)

// Tags are on every thing, so that the thing can be found from the ids alone.
type Tags struct {
	// Broker is the identity of the broker that made the thing.
	Broker      string `json:"broker,omitempty"`
	Platform    string `json:"platform"`
	Instance    string `json:"instance"`
	Binding     string `json:"binding,omitempty"` // empty on a thing of the instance
	Incarnation string `json:"incarnation"`
	// Of is the incarnation of the instance, on a thing of a binding.
	Of string `json:"of,omitempty"`
	// Origin is the instance for which the thing was made, if that is another one; else zero.
	Origin Origin `json:"origin,omitzero"`
}

// An Origin names the instance that a thing was made for.
type Origin = operation.Origin

// Owner returns the tags without the origin: they say to whom the thing belongs now. A thing is
// ours if the owners are equal.
func (t Tags) Owner() Tags {
	t.Origin = Origin{}
	return t
}

// OfInstance returns the tags of the instance that the tags belong to.
func (t Tags) OfInstance() Tags {
	if t.Binding != "" {
		t.Binding, t.Incarnation, t.Of = "", t.Of, ""
	}
	return t
}

// TagsOf returns the tags of an instance's things.
func TagsOf(in Instance) Tags {
	return Tags{Broker: in.Broker, Platform: in.Platform, Instance: in.ID, Incarnation: in.Incarnation, Origin: in.Origin}
}

// BindingTagsOf returns the tags of a binding's things.
func BindingTagsOf(b Binding) Tags {
	return Tags{
		Broker: b.Instance.Broker, Platform: b.Instance.Platform, Instance: b.Instance.ID, Binding: b.ID,
		Incarnation: b.Incarnation, Of: b.Instance.Incarnation,
	}
}

// Name derives the name of a thing: prefix, role and Hash.
func Name(prefix, role string, t Tags) string { return prefix + "-" + role + "-" + Hash(t) }

// Hash returns 26 lower-case letters and digits for the names of a thing: 128 bits of a hash over
// the ids and the incarnation that the thing is made for, each preceded by its length, so that ids
// that are equal when joined give different names.
func Hash(t Tags) string {
	h := sha256.New()
	if o := t.Origin; o != (Origin{}) && t.Binding == "" {
		t.Instance, t.Incarnation = o.Instance, o.Incarnation
	}
	ids := []string{t.Platform, t.Instance, t.Binding, t.Incarnation}
	if t.Broker != "" { // things from before brokers had an identity keep their names
		ids = append([]string{t.Broker}, ids...)
	}
	for _, id := range ids {
		h.Write(append(binary.BigEndian.AppendUint64(nil, uint64(len(id))), id...))
	}
	return base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:16])
}
