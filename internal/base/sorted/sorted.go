// Package sorted walks maps in an order that stays: messages, templates and tests read the
// same each time.
package sorted

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Map gives the members of a map by their keys, from the least to the greatest. The walk
// may delete the member that it is at.
func Map[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
