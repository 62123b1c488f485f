package hosted_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
)

// A label survives whatever ids hold, in letters that every engine keeps.
func TestLabels(t *testing.T) {
	for _, id := range []string{"i", `'"\`, "ü𝄞\x00\x7f", "'; DROP ROLE o; --", "\xff"} {
		id = strings.ToValidUTF8(id, "?")
		l := hosted.Label{
			Tags: provider.Tags{Broker: "b", Platform: "p", Instance: id, Incarnation: "n"}, PlanID: id,
			Created: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
		}
		text := l.Text()
		if strings.ContainsAny(text, "'\x00\x7f") || strings.ContainsFunc(text, func(r rune) bool { return r > '~' || r < ' ' }) {
			t.Errorf("%q is not plain", text)
		}
		got, ok := hosted.ParseLabel(text)
		if expect.Same(t, text, l, got); !ok {
			t.Errorf("%q is no label", text)
		}
	}
	for _, text := range []string{"", "a comment", "longshore:", "longshore:{}", `longshore:{"platform":"p"}`, `{"platform":"p"}`} {
		if l, ok := hosted.ParseLabel(text); ok {
			t.Errorf("%q is the label %+v", text, l)
		}
	}
}

// Names are of 32 letters at most, and tell ids and lives apart.
func TestNames(t *testing.T) {
	a := hosted.Name("lsd", provider.Tags{Broker: "b", Platform: "p", Instance: "i", Incarnation: "1"})
	next := hosted.Name("lsd", provider.Tags{Broker: "b", Platform: "p", Instance: "i", Incarnation: "2"})
	other := hosted.Name("lsd", provider.Tags{Broker: "b2", Platform: "p", Instance: "i"})
	if a == next || a == other || len(a) > 32 || strings.Trim(a, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		t.Errorf("names %q, %q and %q", a, next, other)
	}
}

func TestPasswords(t *testing.T) {
	secret := []byte("0123456789abcdef0123456789abcdef")
	a, err := hosted.Password(secret, "a")
	again, _ := hosted.Password(secret, "a")
	b, _ := hosted.Password(secret, "b")
	if err != nil || len(a) != 32 || a != again || a == b {
		t.Errorf("passwords of %d letters, the same again %v, for another name %v, error %v", len(a), a == again, a == b, err)
	}
	for _, short := range [][]byte{nil, {}, secret[:31]} { // from none of it, who knows the name knows the password
		if p, err := hosted.Password(short, "a"); err == nil || p != "" {
			t.Errorf("a secret of %d bytes gives the password %q: %v", len(short), p, err)
		}
	}
}
