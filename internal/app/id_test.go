package app

import (
	"testing"
	"unicode"

	"github.com/longshore/longshore/internal/lifecycle"
)

func TestIDsBeginWithALetter(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		id := NewID()
		if len(id) != lifecycle.OperationIDLength || !unicode.IsLetter(rune(id[0])) || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
}
