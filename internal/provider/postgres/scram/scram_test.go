package scram

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// The example is RFC 7677's: its password and salt, and what follows of them.
func TestVerifier(t *testing.T) {
	salt := expect.Get(base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ=="))(t)
	const want = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$" +
		"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	expect.Same(t, "verifier", want, expect.Get(verifier("pencil", salt))(t))
}

func TestEachVerifierHasItsSalt(t *testing.T) {
	a, b := expect.Get(Verifier("pencil"))(t), expect.Get(Verifier("pencil"))(t)
	if a == b || !strings.HasPrefix(a, "SCRAM-SHA-256$4096:") {
		t.Errorf("%q and %q", a, b)
	}
}

func TestOnlyASCII(t *testing.T) {
	for _, password := range []string{"é", "tab\t", "nul\x00"} {
		if got, err := Verifier(password); err == nil {
			t.Errorf("%q gives %q", password, got)
		}
	}
}
