package hosted

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
)

// A Number is a setting of a plan that is a whole number, from Min to Max, or left
// out.
type Number struct {
	Name     string
	Min, Max int
	Into     *int
	Remedy   string
}

// readNumbers reads those of a plan's settings that are numbers. Others are known.
func readNumbers(settings map[string]any, numbers []Number, others []string) error {
	unknown := maps.Clone(settings)
	names := slices.Clone(others)
	for _, n := range numbers {
		names = append(names, n.Name)
		v, ok := settings[n.Name]
		if !ok {
			continue
		}
		i, whole := integer(v)
		if !whole || i < n.Min || i > n.Max {
			return advice.For(n.Name, "is not a number that databases can have", n.Remedy)
		}
		*n.Into = i
	}
	for _, name := range names {
		delete(unknown, name)
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		return advice.For(name, "is no setting of databases", "remove it, or write one of "+strings.Join(names, ", "))
	}
	return nil
}

// integer reads a number of any decoder.
func integer(v any) (int, bool) {
	switch n := v.(type) {
	case int:
		return n, true
	case int64:
		return int(n), n == int64(int(n))
	case uint64:
		return int(n), n <= math.MaxInt32
	case float64:
		return int(n), n == math.Trunc(n) && math.Abs(n) <= math.MaxInt32
	case json.Number:
		i, err := n.Int64()
		return int(i), err == nil && i <= math.MaxInt32
	}
	return 0, false
}
