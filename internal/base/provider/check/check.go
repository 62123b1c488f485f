// Package check is how a provider judges a plan when the catalog is compiled, and what it
// has the broker know of the plan.
package check

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
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

// RetentionOf is how long what is deleted of a plan is kept, by the member retain_days of
// the plan's snapshot; zero for not at all. A plan may have it whose provider's Inventory
// is an Adopter.
func RetentionOf(snapshot json.RawMessage) time.Duration {
	var plan struct {
		RetainDays int `json:"retain_days"`
	}
	_ = json.Unmarshal(snapshot, &plan) // a snapshot may be any JSON
	return time.Duration(plan.RetainDays) * 24 * time.Hour
}

// A Func is what a provider finds out about a plan when the catalog is
// compiled: whether its settings and the files beside the offering are right.
// It gives the snapshot that instances of the plan record, at most
// limits.Snapshot bytes of JSON, nil for none. It leaves out what is at its default: a
// later version of the provider, which may know more, has not edited the plan. An error
// says what to do; a
// *advice.Error also says where: a File in the offering's folder, or in Name the
// path of a setting in the plan, such as "delay", or a JSON pointer into the plan, such
// as "/schemas". Several are joined by errors.Join.
// It reaches nothing but its input.
type Func func(plan Plan) (snapshot json.RawMessage, err error)

// A Plan is what a Func looks at.
type Plan struct {
	Offering, Plan string // their names
	ServiceID      string
	PlanID         string
	Settings       map[string]any
	// Files is the offering's folder, and Folder its name, as problems show it.
	Files  fs.FS
	Folder string
	// Bindable says whether instances of the plan can be bound.
	Bindable bool
	// Deadline is how long an operation may take; 0 if the plan does not say.
	Deadline time.Duration
	// Warn tells the operator of what is no reason to refuse the plan; nil if nobody
	// listens.
	Warn func(advice.Error)
	// Keep has the compiled catalog carry a file, such as a template, by the SHA-256
	// of its content in hex, which it gives; snapshots name it so.
	Keep func(content []byte) (digest string)
	// Describe tells what users may set, where that follows from the offering's files: a
	// plan then has no schemas of its own. A provider that never calls it leaves them to
	// the plan.
	Describe func(Parameters)
	// Lock refuses a plan whose version stands for other files than when it was locked: the
	// digest is of those that a new version is for.
	Lock func(digest string) error
}

// Parameters are what users of a plan may set.
type Parameters struct {
	// Properties are JSON Schemas of draft-04, by the names of parameters.
	Properties map[string]any
	// Required are those that a provision needs, and Fixed those that no update changes.
	Required, Fixed []string
}
