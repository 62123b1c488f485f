package demotest

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/demo"
)

// pin are parameters that can be guessed in ten thousand tries.
func pin(n int) json.RawMessage { return fmt.Appendf(nil, `{"pin":"%04d"}`, n) }

// RunGuesses proves that whoever reads all that the demo keeps learns nothing of
// the parameters: it is the same whatever they are, and no guess is confirmed
// by a digest in it. A world gives empty things, and all that then lies in them.
func RunGuesses(t *testing.T, world func(*testing.T) (things demo.Things, kept func() string)) {
	keeps := func(n int) string {
		things, kept := world(t)
		use(t, things, pin(n))
		return kept()
	}
	const secret = 4831
	kept := keeps(secret)
	if kept == "" || kept != keeps(secret) {
		t.Fatalf("it keeps nothing, or not the same each time:\n%s", kept)
	}
	if other := keeps(1234); kept != other {
		t.Errorf("what is kept depends on the parameters:\n%s\n%s", kept, other)
	}
	if found := guessed(kept); found != nil {
		t.Errorf("the parameters %s can be guessed from what is kept:\n%s", found, kept)
	}
}

// use makes and binds an instance with the parameters, and updates it to them
// twice: one update has ended then, and one runs.
func use(t *testing.T, things demo.Things, parameters json.RawMessage) {
	t.Helper()
	p := demo.New(things, demo.Options{Now: func() time.Time { return start }})
	in := provider.Instance{Platform: "p", ID: "i", Incarnation: "first", ServiceID: "s", PlanID: "plan", Parameters: parameters}
	as := func(id string, kind provider.Kind) provider.Instance {
		in.Operation = provider.Operation{ID: id, Kind: kind, Started: start, Synchronous: true}
		return in
	}
	slow := as("runs", provider.KindUpdate)
	slow.Settings = map[string]any{"delay_seconds": 60}
	b := provider.Binding{Instance: as("bound", provider.KindBind), ID: "b", Incarnation: "bound", Parameters: parameters,
		Secret: make([]byte, 32)}
	for _, step := range []func() (provider.Status, error){
		func() (provider.Status, error) { return p.Provision(t.Context(), as("first", provider.KindProvision)) },
		func() (provider.Status, error) { return p.Bind(t.Context(), b) },
		func() (provider.Status, error) { return p.Update(t.Context(), as("ended", provider.KindUpdate)) },
		func() (provider.Status, error) { return p.Update(t.Context(), slow) },
	} {
		if _, err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

var word = regexp.MustCompile(`[A-Za-z0-9+/=_-]+`)

// guessed tries each PIN against each word that may be a digest of it, of ten
// bytes or more: plain, or behind another word, as one that is salted by what
// lies beside it.
func guessed(kept string) json.RawMessage {
	salts, digests := map[string]bool{"": true}, map[[10]byte]bool{}
	for _, w := range word.FindAllString(kept, -1) {
		salts[w] = true
		for _, decode := range []func(string) ([]byte, error){
			hex.DecodeString, base64.RawStdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
		} {
			if raw, err := decode(strings.TrimRight(w, "=")); err == nil && len(raw) >= 10 {
				digests[[10]byte(raw)] = true
			}
		}
	}
	hashes := []hash.Hash{md5.New(), sha1.New(), sha256.New(), sha512.New()}
	var text, sum []byte
	for n := range 10_000 {
		guess := pin(n)
		for salt := range salts {
			for _, between := range []string{"", "\n"} {
				text = append(append(append(text[:0], salt...), between...), guess...)
				for _, h := range hashes {
					h.Reset()
					h.Write(text)
					sum = h.Sum(sum[:0])
					if digests[[10]byte(sum)] {
						return guess
					}
				}
			}
		}
	}
	return nil
}
