package hosted

import (
	"time"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
)

// OnDelete is the setting of a plan that says what becomes of what is deleted. It says
// no more than that it is dropped: what is retained is so by RetainDays.
const OnDelete = "on_delete"

// RetainDays is the setting of a plan that says for how many days what is deleted is
// retained.
func RetainDays(into *int) Number {
	return Number{Name: "retain_days", Min: 1, Max: 3650, Into: into,
		Remedy: "write for how many days what is deleted is retained, 1 to 3650, or leave it out, or write on_delete: drop"}
}

// CheckDeletion finds settings that contradict one another.
func CheckDeletion(settings map[string]any, retainDays int) error {
	if v, ok := settings[OnDelete]; ok && (v != "drop" || retainDays > 0) {
		return advice.For(OnDelete, "says nothing that can be done", "write on_delete: drop, or retain_days alone")
	}
	return nil
}

// A Retaining is what a deprovision does with what it does not remove.
type Retaining struct {
	// Tags are the instance's, and As those that it is retained with: its own, or those
	// that it had before.
	Tags, As provider.Tags
	Until    time.Time // UTC
	// Back says that it is given back: it may be half moved.
	Back bool
}

// RetainingOf is what a deprovision retains, by the days of the plan that the instance
// has recorded; nil if it removes all.
func RetainingOf(in provider.Instance, days int, now time.Time) *Retaining {
	tags := provider.TagsOf(in)
	if from := in.Source; from != nil && from.Retained != nil {
		return &Retaining{Tags: tags, As: from.Tags(in.Broker), Until: from.Retained.Until, Back: true}
	}
	if in.Unfinished || in.PlanID == "" || days == 0 {
		return nil
	}
	until := now.UTC().Truncate(time.Millisecond).Add(time.Duration(days) * 24 * time.Hour)
	return &Retaining{Tags: tags, As: tags, Until: until}
}
