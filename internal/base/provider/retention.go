package provider

import (
	"encoding/json"
	"time"
)

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
