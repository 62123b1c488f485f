package valkey

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/remedy"
)

// Check is a provider.Check. A plan has no settings: the server holds a user to
// nothing but its rights.
func Check(plan provider.Checked) (json.RawMessage, error) {
	for _, name := range slices.Sorted(maps.Keys(plan.Settings)) {
		return nil, remedy.For(name, "is no setting of a Valkey plan", "leave it out: Valkey limits neither memory nor connections of a user")
	}
	return nil, nil
}
