package sorted_test

import (
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/test/expect"
)

// A walk has the order of the keys, and ends where its caller ends it.
func TestMap(t *testing.T) {
	said := ""
	for key, value := range sorted.Map(map[string]int{"c": 3, "a": 1, "d": 4, "b": 2}) {
		said += fmt.Sprintf("%s%d ", key, value)
		if key == "c" {
			break
		}
	}
	expect.Same(t, "the walk", "a1 b2 c3 ", said)
}

func TestSet(t *testing.T) {
	given := []string{"b", "a", "b"}
	expect.Same(t, "the set", []string{"a", "b"}, sorted.Set(given))
	expect.Same(t, "what was given", []string{"b", "a", "b"}, given)
}
