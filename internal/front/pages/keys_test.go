package pages

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
)

// A session holds who signed on, and fits into its cookie however long a login's ids are.
func TestSessionsHoldAPerson(t *testing.T) {
	key := expect.Get(vault.NewLocal(bytes.Repeat([]byte("k"), 32)))(t)
	scope := Scope{Platform: "p", Instance: "i", Acts: true}.sum()
	for length, holds := range map[int]bool{0: true, 36: true, 128: true, 129: false, 5000: false} {
		person := strings.Repeat("x", length)
		sealed := expect.Get(session{scope, time.Unix(1e9, 0), person}.seal(t.Context(), key))(t)
		if size := len(cookieName(scope)) + len(sealed); size >= 400 {
			t.Errorf("with an id of %d bytes the cookie has %d", length, size)
		}
		if !holds {
			person = ""
		}
		if is, err := sessionIn(t.Context(), key, sealed); err != nil || is != (session{scope, time.Unix(1e9, 0), person}) {
			t.Errorf("with an id of %d bytes the session is %+v: %v", length, is, err)
		}
	}
}
