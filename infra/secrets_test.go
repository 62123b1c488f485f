package main

import (
	"encoding/json"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// A reference to the secret would be replaced by the secret itself, wherever it stands.
func TestThePasswordStandsNowhere(t *testing.T) {
	for name, variant := range variants {
		text := string(expect.Get(json.Marshal(must(t, variant)))(t))
		expect.Never(t, name, text, "{{resolve:", "SecretString:")
	}
}
