// Package suggest finds the known name that a mistyped one probably meant.
package suggest

import (
	"fmt"
	"strings"
)

// Nearest returns the known name that a mistyped one probably meant; empty if none is near. It
// ignores case, hyphens and underscores: planUpdateable counts as plan_updateable.
func Nearest(name string, known []string) string {
	const longest = 64 // no known name is longer; bounds the cost
	if len(name) > longest {
		return ""
	}
	typed := plain(name)
	best, bestDistance := "", min(3, max(1, len(typed)/4))+1
	for _, k := range known {
		// A name with no letter left in place is not similar.
		if d := distance(typed, plain(k)); d < bestDistance && d < len(typed) {
			best, bestDistance = k, d
		}
	}
	return best
}

// Meant returns advice on a mistyped name: the nearest known name, or else the given text.
func Meant(name string, known []string, otherwise string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// distance returns the number of single-byte edits that lead from a to b (Levenshtein).
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
