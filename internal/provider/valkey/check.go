package valkey

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// settings are what instances record of their plan.
type settings struct {
	// RetainDays is how long deleted keys are retained; 0 to remove them at once.
	RetainDays int `json:"retain_days,omitempty"`
}

// Check is a provider.Check. A plan says no more than what becomes of what is deleted:
// the server holds a user to nothing but its rights.
func Check(plan provider.Checked) (json.RawMessage, error) {
	var s settings
	days := hosted.RetainDays(&s.RetainDays)
	for _, name := range slices.Sorted(maps.Keys(plan.Settings)) {
		if name != days.Name && name != hosted.OnDelete {
			return nil, advice.For(name, "is no setting of a Valkey plan", "leave it out: Valkey limits neither memory nor connections of a user")
		}
	}
	err := hosted.ReadNumbers(plan.Settings, []hosted.Number{days}, hosted.OnDelete)
	if err == nil {
		err = hosted.CheckDeletion(plan.Settings, s.RetainDays)
	}
	if err != nil || s.RetainDays == 0 {
		return nil, err
	}
	return json.Marshal(s)
}

func retainDays(snapshot json.RawMessage) (int, error) {
	var s settings
	if len(snapshot) == 0 {
		return 0, nil
	}
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return 0, fmt.Errorf("reading the recorded settings of the plan: %w", err)
	}
	return s.RetainDays, nil
}
