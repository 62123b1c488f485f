package provider

import (
	"encoding/json"
	"slices"
	"strings"
)

// A Change is what a plan's snapshot says of updates, as members of its JSON. The
// broker refuses by it what a provider could not do in place, before anything is
// touched. A snapshot without them allows everything.
type Change struct {
	// Accepts are the user's parameters that the instance's own version of the plan
	// knows; nil for any.
	Accepts []string `json:"accepts,omitzero"`
	// Fixed are those whose value never changes once the instance is made: another
	// one would replace what holds its data.
	Fixed []string `json:"fixed,omitempty"`
	// Shape stands for all else that never changes, as words, one for each part that
	// holds something: an instance moves only to a snapshot that has them all. Empty
	// for any.
	Shape string `json:"shape,omitempty"`
}

// ChangeOf reads it from a snapshot; what is not there allows everything.
func ChangeOf(snapshot json.RawMessage) (c Change) {
	_ = json.Unmarshal(snapshot, &c) // a snapshot may be any JSON
	return c
}

// Knows reports whether a parameter may be given.
func (c Change) Knows(parameter string) bool {
	return c.Accepts == nil || slices.Contains(c.Accepts, parameter)
}

// IsFixed reports whether a parameter's value never changes.
func (c Change) IsFixed(parameter string) bool { return slices.Contains(c.Fixed, parameter) }

// To reports whether an instance can move from c to another snapshot's.
func (c Change) To(next Change) bool {
	if c.Shape == "" || next.Shape == "" {
		return true
	}
	has := strings.Fields(next.Shape)
	return !slices.ContainsFunc(strings.Fields(c.Shape), func(part string) bool { return !slices.Contains(has, part) })
}
