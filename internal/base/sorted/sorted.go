// Package sorted walks maps and makes sets in a stable order, so that messages, templates and tests read the same each time.
package sorted

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Map yields the members of a map in the order of their keys. The loop may delete the current member.
func Map[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// Set returns the texts in order, each once.
func Set(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }
