package hosted

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
)

// A Number is an optional setting of a plan: a whole number from 1 to Max.
type Number struct {
	Name   string
	Max    int
	Into   *int
	Remedy string
}

// readNumbers reads the settings of a plan that are numbers. It refuses settings that are neither
// among the numbers nor among the others.
func readNumbers(settings map[string]any, numbers []Number, others []string) error {
	names := slices.Clone(others)
	for _, n := range numbers {
		names = append(names, n.Name)
		v, ok := settings[n.Name]
		if !ok {
			continue
		}
		var number int
		raw, err := json.Marshal(v) // decoders give numbers of several types
		if err != nil || json.Unmarshal(raw, &number) != nil || number < 1 || number > n.Max {
			return advice.For(n.Name, "is not a number that databases can have", n.Remedy)
		}
		*n.Into = number
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(names, name) {
			return advice.For(name, "is no setting of databases", "remove it, or write one of "+strings.Join(names, ", "))
		}
	}
	return nil
}
