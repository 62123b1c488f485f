// Package suggest finds the name that a mistyped one was meant to be. What the
// names are of is left to the caller.
package suggest

import (
	"fmt"
	"strings"
)

// Nearest is the known name that a mistyped one probably meant; empty when
// none is near. Case, hyphens and underscores do not count: planUpdateable is
// plan_updateable.
func Nearest(name string, known []string) string {
	const longest = 64 // no name that we know is longer; keeps the cost small
	if len(name) > longest {
		return ""
	}
	typed := plain(name)
	best, bestDistance := "", min(3, max(1, len(typed)/4))+1
	for _, k := range known {
		// Edits that leave no letter in place prove no likeness.
		if d := distance(typed, plain(k)); d < bestDistance && d < len(typed) {
			best, bestDistance = k, d
		}
	}
	return best
}

// Meant is advice on a mistyped name: the one that it probably meant, or else what is
// given.
func Meant(name string, known []string, otherwise string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// distance is how many single-byte edits lead from a to b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
