// Package vaulttest is the one suite that every vault passes: what is sealed
// opens where it was sealed for, and nowhere else. What a vault has beyond
// that (key files, key services and their errors) its own tests prove.
package vaulttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
)

// A Factory makes a vault, another one that has the same key, as the next
// process would have it, and a third one that has another key.
type Factory func(t *testing.T) (v, again, stranger vault.Vault)

var here = label("platform", "ab", "c", vault.Grant)

func label(platform, instance, binding string, m vault.Member) vault.Label {
	return vault.Label{Key: lifecycle.Key{Platform: platform, Instance: instance, Binding: binding}, Member: m}
}

// plain is a text that must not be seen in what is sealed.
var plain = []byte(`{"password":"canary-4f8b-secret"}`)

// Run runs the suite.
func Run(t *testing.T, open Factory) {
	for name, test := range map[string]func(t *testing.T, open Factory){
		"RoundTrip":  testRoundTrip,
		"Nil":        testNil,
		"Differs":    testDiffers,
		"Labels":     testLabels,
		"Changed":    testChanged,
		"Strangers":  testStrangers,
		"NotAliased": testNotAliased,
		"Together":   testTogether,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

func seal(t *testing.T, v vault.Vault, at vault.Label, plain []byte) []byte {
	t.Helper()
	sealed, err := v.Seal(t.Context(), at, plain)
	if err != nil {
		t.Fatalf("sealing %d bytes: %v", len(plain), err)
	}
	if len(sealed) > len(plain)+limits.SealedOverhead { // a record has no room for more
		t.Errorf("%d bytes are %d when they are sealed, more than %d longer", len(plain), len(sealed), limits.SealedOverhead)
	}
	return sealed
}

func opens(t *testing.T, reason string, v vault.Vault, at vault.Label, sealed, want []byte) {
	t.Helper()
	got, err := v.Open(t.Context(), at, sealed)
	if err != nil {
		t.Fatalf("%s: %v", reason, err)
	}
	if !bytes.Equal(got, want) || (got == nil) != (want == nil) {
		t.Fatalf("%s: %d bytes came back as %d others", reason, len(want), len(got))
	}
}

func stays(t *testing.T, reason string, v vault.Vault, at vault.Label, sealed []byte) {
	t.Helper()
	got, err := v.Open(t.Context(), at, sealed)
	if !errors.Is(err, vault.ErrSealed) || got != nil {
		t.Errorf("%s: got %d bytes and error %v, want %v", reason, len(got), err, vault.ErrSealed)
	}
	if err != nil && strings.Contains(err.Error(), "canary") {
		t.Errorf("%s: the error tells the secret", reason)
	}
}

func testRoundTrip(t *testing.T, open Factory) {
	v, again, _ := open(t)
	large := make([]byte, 64<<10)
	if _, err := rand.Read(large); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"Text": plain, "Empty": {}, "Byte": {0}, "Large": large} {
		for _, at := range []vault.Label{
			here,
			label("platform", "instance", "", vault.Parameters),
			label("platform", "instance", "", vault.Secret),
			label("ä", "in \"st\" <an> {ce}\n\u2028\x00", strings.Repeat("long", 64), vault.Grant),
		} {
			sealed := seal(t, v, at, want)
			opens(t, name, v, at, sealed, want)
			opens(t, name+", by the next process", again, at, sealed, want)
			if len(want) > 1 && bytes.Contains(sealed, want) {
				t.Errorf("%s: it is in clear", name)
			}
		}
	}
}

func testNil(t *testing.T, open Factory) {
	v, _, _ := open(t)
	if sealed := seal(t, v, here, nil); sealed != nil {
		t.Errorf("nil is sealed to %d bytes", len(sealed))
	}
	opens(t, "nil opens to nil", v, here, nil, nil)
	if sealed := seal(t, v, here, []byte{}); len(sealed) == 0 {
		t.Error("a text of no bytes is sealed to none, as if it was nil")
	}
}

func testDiffers(t *testing.T, open Factory) {
	v, _, _ := open(t)
	if bytes.Equal(seal(t, v, here, plain), seal(t, v, here, plain)) {
		t.Error("sealing the same twice gives the same")
	}
}

func testLabels(t *testing.T, open Factory) {
	v, _, _ := open(t)
	sealed := seal(t, v, here, plain)
	ofInstance := seal(t, v, label("platform", "ab", "", vault.Grant), plain)
	for reason, other := range map[string]vault.Label{
		"another platform":           label("other", "ab", "c", vault.Grant),
		"another instance":           label("platform", "xy", "c", vault.Grant),
		"another binding":            label("platform", "ab", "d", vault.Grant),
		"no binding":                 label("platform", "ab", "", vault.Grant),
		"another member":             label("platform", "ab", "c", vault.Secret),
		"ids that read the same":     label("platform", "a", "bc", vault.Grant),
		"ids that are swapped":       label("ab", "platform", "c", vault.Grant),
		"ids in other letters":       label("platform", "AB", "c", vault.Grant),
		"an id with a zero in it":    label("platform", "ab\x00", "c", vault.Grant),
		"a label with nothing in it": {},
	} {
		stays(t, reason, v, other, sealed)
	}
	stays(t, "a binding of the same instance", v, here, ofInstance)
}

func testChanged(t *testing.T, open Factory) {
	v, _, _ := open(t)
	sealed, other := seal(t, v, here, plain), seal(t, v, here, plain)
	for n := range sealed {
		broken := bytes.Clone(sealed)
		broken[n] ^= 1
		stays(t, "a bit is changed", v, here, broken)
		if n < 16 || n%7 == 0 { // a call each, where the key is elsewhere
			stays(t, "the end is missing", v, here, sealed[:n])
			broken[n] ^= 0x81
			stays(t, "another bit is changed", v, here, broken)
			// Two that begin alike may still be one of the two.
			joined := append(bytes.Clone(sealed[:n]), other[min(n, len(other)):]...)
			if !bytes.Equal(joined, sealed) && !bytes.Equal(joined, other) {
				stays(t, "two sealed values are joined", v, here, joined)
			}
		}
	}
	stays(t, "there is more", v, here, append(bytes.Clone(sealed), 0))
	stays(t, "there is nothing", v, here, []byte{})
	stays(t, "it never was sealed", v, here, plain)
	opens(t, "it is unharmed by all that", v, here, sealed, plain)
}

func testStrangers(t *testing.T, open Factory) {
	v, _, stranger := open(t)
	stays(t, "another key", stranger, here, seal(t, v, here, plain))
	stays(t, "another key, the other way", v, here, seal(t, stranger, here, plain))
}

func testNotAliased(t *testing.T, open Factory) {
	v, _, _ := open(t)
	mine := bytes.Clone(plain)
	sealed := seal(t, v, here, mine)
	if !bytes.Equal(mine, plain) {
		t.Error("sealing changed the text")
	}
	kept := bytes.Clone(sealed)
	clear(mine)
	opens(t, "the text that was given stays the caller's", v, here, sealed, plain)
	opened, err := v.Open(t.Context(), here, sealed)
	if err != nil {
		t.Fatal(err)
	}
	clear(opened)
	if !bytes.Equal(sealed, kept) {
		t.Error("opening, or what was opened, changed what is sealed")
	}
	opens(t, "what was opened is the caller's", v, here, sealed, plain)
}

func testTogether(t *testing.T, open Factory) {
	v, _, _ := open(t)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			want := bytes.Repeat([]byte{byte(n)}, 100)
			for range 5 {
				sealed, err := v.Seal(context.Background(), here, want)
				if err != nil {
					t.Errorf("sealing: %v", err)
					return
				}
				got, err := v.Open(context.Background(), here, sealed)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("opening: %d bytes, error %v", len(got), err)
				}
			}
		})
	}
	all.Wait()
}
