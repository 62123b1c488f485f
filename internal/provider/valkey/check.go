package valkey

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/remedy"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// terms are what instances record of their plan.
type terms struct {
	// RetainDays is how long deleted keys are retained; 0 to remove them at once.
	RetainDays int `json:"retain_days,omitempty"`
}

// Check is a provider.Check. A plan says no more than what becomes of what is deleted:
// the server holds a user to nothing but its rights.
func Check(plan provider.Checked) (json.RawMessage, error) {
	var t terms
	days := hosted.RetainDays(&t.RetainDays)
	for _, name := range slices.Sorted(maps.Keys(plan.Settings)) {
		if name != days.Name && name != hosted.OnDelete {
			return nil, remedy.For(name, "is no setting of a Valkey plan", "leave it out: Valkey limits neither memory nor connections of a user")
		}
	}
	err := hosted.ReadNumbers(plan.Settings, []hosted.Number{days}, hosted.OnDelete)
	if err == nil {
		err = hosted.CheckDeletion(plan.Settings, t.RetainDays)
	}
	if err != nil || t.RetainDays == 0 {
		return nil, err
	}
	return json.Marshal(t)
}

func retainDays(snapshot json.RawMessage) (int, error) {
	var t terms
	if len(snapshot) == 0 {
		return 0, nil
	}
	if err := json.Unmarshal(snapshot, &t); err != nil {
		return 0, fmt.Errorf("reading what the plan means: %w", err)
	}
	return t.RetainDays, nil
}
