package hosted

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/sorted"
)

// A Number is an optional setting of a plan: a whole number from 1 to Max.
type Number struct {
	Name   string
	Max    int
	Into   *int
	Remedy string
}

// ReadSettings reads a plan's settings of deletion and its numbers. The caller reads the settings
// named in others. An error names the setting that is wrong or unknown.
func ReadSettings(settings map[string]any, d *Deletion, numbers []Number, others ...string) error {
	names := append(others, onDelete)
	numbers = append(numbers, Number{Name: "retain_days", Max: 3650, Into: &d.RetainDays,
		Remedy: "write for how many days what is deleted is retained, 1 to 3650, or leave it out, or write on_delete: drop"})
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
	for name := range sorted.Map(settings) {
		if !slices.Contains(names, name) {
			return advice.For(name, "is no setting of databases", "remove it, or write one of "+strings.Join(names, ", "))
		}
	}
	if v, ok := settings[onDelete]; ok && (v != "drop" || d.RetainDays > 0) {
		return advice.For(onDelete, "is not a rule for deleted data", "write on_delete: drop, or retain_days alone")
	}
	return nil
}
