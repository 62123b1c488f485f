package hosted

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/longshore/longshore/internal/base/provider"
)

// Deletion is the part of a plan's snapshot that decides what happens to deleted instances. The
// worker reads it (check.RetentionOf).
type Deletion struct {
	// RetainDays is how long a deleted instance is retained; 0 removes it at once.
	RetainDays int `json:"retain_days,omitempty"`
}

// Recorded decodes the snapshot of an instance's plan.
func Recorded[M any](snapshot json.RawMessage) (m M, err error) {
	if len(snapshot) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(snapshot, &m); err != nil {
		return m, fmt.Errorf("reading the recorded settings of the plan: %w", err)
	}
	return m, nil
}

// TargetOf returns the name of the target in the settings of a plan, and TargetIn in its snapshot; the default one's if
// there is none.
func TargetOf(settings map[string]any) string {
	target, _ := settings["target"].(string)
	return cmp.Or(target, DefaultTarget)
}

// TargetIn is described at TargetOf.
func TargetIn(snapshot json.RawMessage) string {
	var plan struct{ Target string }
	_ = json.Unmarshal(snapshot, &plan) // a damaged snapshot holds no deletion up; other steps read it again
	return cmp.Or(plan.Target, DefaultTarget)
}

// Asked decodes parameters. The plan's schema has already refused unknown ones.
func Asked[M any](parameters json.RawMessage) (m M, err error) {
	if len(parameters) > 0 && json.Unmarshal(parameters, &m) != nil {
		return m, provider.Failf("The parameters do not match the schema of the plan.")
	}
	return m, nil
}
