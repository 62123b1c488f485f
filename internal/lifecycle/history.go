package lifecycle

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
)

// An Entry is one line in the history of an instance: an operation on the instance or one of its
// bindings that has ended, or the act of an operator. The commit that ends an operation writes the
// entry, so each operation has exactly one. An entry never changes, except for its Asker.
type Entry struct {
	Version int64 `json:"-"`
	// Key is the key of the instance or the binding.
	Key Key `json:"key"`
	// Incarnation is the incarnation of the instance.
	Incarnation string `json:"incarnation,omitempty"`
	// ID is the operation's id; an act has an id of its own.
	ID   string `json:"id"`
	Kind Kind   `json:"kind,omitempty"`
	// Act is what an operator did; empty for an operation.
	Act         string    `json:"act,omitempty"`
	Phase       Phase     `json:"phase,omitempty"`
	Cancelled   bool      `json:"cancelled,omitempty"`
	Description string    `json:"description,omitempty"` // why it failed
	Started     time.Time `json:"started,omitzero"`
	Ended       time.Time `json:"ended"`
	// Asker is who asked for the operation, sealed under Key; Own says that the broker began it by itself.
	Asker  Asker  `json:"asker,omitzero"`
	Own    bool   `json:"own,omitempty"`
	PlanID string `json:"plan_id,omitempty"`
	// Parameters are the names of the parameters that the request gave, never their values.
	Parameters []string `json:"parameters,omitempty"`
	AppGUID    string   `json:"app_guid,omitempty"`
}

// HistoryKept is how long an entry is kept after Ended.
const HistoryKept = 90 * 24 * time.Hour

// Ended returns the entry of the operation that the change from before to r has ended or cancelled; nil if there is none.
func (r Record) Ended(before Record) *Entry {
	switch {
	case !before.InProgress():
		return nil
	case r.replaced(before):
		return before.entry(r.cancelled(*before.Operation))
	case r.Operation == nil || r.InProgress() || before.Operation.ID != r.Operation.ID:
		return nil
	}
	op := *r.Operation
	op.Target = before.Operation.Target // ending the operation has dropped the target
	return before.entry(op)
}

// entry returns the history entry of an operation that has ended. The receiver is the record
// from before the end, since a tombstone has no attributes.
func (r Record) entry(op Operation) *Entry {
	e := Entry{
		Key: r.Key, Incarnation: r.Incarnation, ID: op.ID, Kind: op.Kind, Phase: op.Phase, Cancelled: op.Cancelled,
		Started: op.Started, Ended: op.Settled, Asker: op.Asker, Own: op.Own, PlanID: r.Attributes.PlanID,
		Parameters: op.Parameters, AppGUID: r.AppGUID,
	}
	if op.Phase == Failed {
		e.Description = op.Description
	}
	if r.IsBinding() {
		e.Incarnation = r.InstanceIncarnation
	}
	if t := op.Target; t != nil {
		e.PlanID = t.PlanID
	}
	return &e
}

// Acted returns the entry of an operator's act on the record; id is new.
func (r Record) Acted(act, id string, now time.Time) Entry {
	e := r.entry(Operation{ID: id, Settled: now})
	e.Act = act
	return *e
}

// ParameterNames returns the names of the members of a parameter object, sorted, as many as a record has room for.
func ParameterNames(parameters json.RawMessage) (names []string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(parameters, &members) != nil {
		return nil
	}
	room := limits.ParameterNames
	for _, name := range slices.Sorted(maps.Keys(members)) {
		encoded, _ := json.Marshal(name) // texts can always be encoded
		if room -= len(encoded) + len(","); room < 0 {
			break
		}
		names = append(names, name)
	}
	return names
}
