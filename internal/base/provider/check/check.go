// Package check defines how a provider checks a plan when the catalog is compiled, and what the
// provider tells the broker about the plan.
package check

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/advice"
)

// A Change holds the members of a plan's snapshot that concern updates. With them, the broker
// refuses an update that the provider could not make in place, before anything is touched. A
// snapshot without them allows every update.
type Change struct {
	// Accepts are the user's parameters that this version of the plan knows; nil for any.
	Accepts []string `json:"accepts,omitzero"`
	// Fixed are the parameters whose value never changes once the instance is made: another
	// value would replace the thing that holds its data.
	Fixed []string `json:"fixed,omitempty"`
	// Shape stands for everything else that never changes, with a word for each part that holds
	// data. An instance moves only to a snapshot that has all of its words. Empty for any.
	Shape string `json:"shape,omitempty"`
}

// ChangeOf reads a snapshot's Change. A missing member allows everything.
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

// To reports whether an instance can move from c to the Change of another snapshot.
func (c Change) To(next Change) bool {
	if c.Shape == "" || next.Shape == "" {
		return true
	}
	has := strings.Fields(next.Shape)
	return !slices.ContainsFunc(strings.Fields(c.Shape), func(part string) bool { return !slices.Contains(has, part) })
}

// RetentionOf returns how long deleted instances of a plan are retained, by the member retain_days
// of the plan's snapshot; zero for not at all. Only plans of an Adopter may have the member.
func RetentionOf(snapshot json.RawMessage) time.Duration {
	var plan struct {
		RetainDays int `json:"retain_days"`
	}
	_ = json.Unmarshal(snapshot, &plan) // a snapshot may be any JSON
	return time.Duration(plan.RetainDays) * 24 * time.Hour
}

// A Func checks a plan when the catalog is compiled: its settings, and the files beside the
// offering. It returns the snapshot that instances of the plan record, at most limits.Snapshot
// bytes of JSON, nil for none. The snapshot leaves out settings at their default: otherwise a later
// version of the provider with more settings would seem to have edited the plan. An error says what
// to do; an *advice.Error also says where: by a File in the offering's folder, or by a Name that is
// the path of a setting in the plan, such as "delay", or a JSON pointer into the plan, such as
// "/schemas". errors.Join joins several errors. A Func reads nothing but its input.
type Func func(plan Plan) (snapshot json.RawMessage, err error)

// A Plan is the input of a Func.
type Plan struct {
	Offering, Plan string // their names
	Settings       map[string]any
	// Files is the offering's folder, and Folder its name as problems show it.
	Files  fs.FS
	Folder string
	// Bindable says whether instances of the plan can be bound.
	Bindable bool
	// Deadline is how long an operation may take; 0 if the plan has no limit of its own.
	Deadline time.Duration
	// Warn tells the operator of a mistake for which the plan is not refused.
	Warn func(advice.Error)
	// Keep puts a file, such as a template, into the compiled catalog. Snapshots name the file
	// by the digest that Keep returns: the SHA-256 of its content in hex.
	Keep func(content []byte) (digest string)
	// Describe says which parameters users may set, if that follows from the offering's files: the plan
	// then has no schemas of its own. If a provider does not call it, the plan gives the schemas.
	Describe func(Parameters)
	// Lock refuses a plan whose files have changed without a new version. The digest is that of the files.
	Lock func(digest string) error
}

// Parameters are what users of a plan may set.
type Parameters struct {
	// Properties are JSON Schemas of draft-04, by the names of parameters.
	Properties map[string]any
	// Required are the parameters that a provision needs, and Fixed those that no update changes.
	Required, Fixed []string
}
