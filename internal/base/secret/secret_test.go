package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/secret"
)

const canary = "canary"

type login struct {
	secret.Holder
	Name, Password string
}

type key struct {
	Name string
	Data secret.Bytes
}

var values = map[string]any{
	"Holder": login{Name: canary, Password: canary}, "Pointer": &login{Password: canary}, "Slice": []login{{Password: canary}},
	"Map": map[string]*login{"a": {Password: canary}}, "Nested": struct{ Login login }{login{Password: canary}},
	"Embedded": struct{ login }{login{Password: canary}},
	"Bytes":    secret.Bytes(canary), "Member": key{"a", secret.Bytes(canary)}, "Members": []*key{{"a", secret.Bytes(canary)}},
}

// hides reports whether no form of the canary is there.
func hides(text string) bool {
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary),
		fmt.Sprint([]byte(canary)), "Y2FuYXJ5"} {
		if strings.Contains(text, form) {
			return false
		}
	}
	return true
}

func TestNoVerbShowsASecret(t *testing.T) {
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%T %[1]v"} {
			if strings.HasPrefix(name, "Member") && !strings.HasSuffix(verb, "v") {
				continue // package fmt shows what no verb fits: a Holder is needed
			}
			if text := fmt.Sprintf(verb, v); !hides(text) {
				t.Errorf("%s by %s: %s", name, verb, text)
			}
		}
		if text := fmt.Sprint(v) + fmt.Errorf("with %v", v).Error(); !hides(text) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestNoLogShowsASecret(t *testing.T) {
	for name, v := range values {
		var out bytes.Buffer
		handlers := []slog.Handler{slog.NewTextHandler(&out, nil)}
		switch name {
		case "Holder", "Pointer", "Embedded", "Bytes": // JSON asks the outermost alone
			handlers = append(handlers, slog.NewJSONHandler(&out, nil))
		}
		for _, h := range handlers {
			slog.New(h).With("with", v).Info("message", "v", v, slog.Group("g", "v", v))
		}
		if !hides(out.String()) {
			t.Errorf("%s: %s", name, out.String())
		}
	}
}

// The stored JSON is the same as without this package.
func TestJSONIsTheValues(t *testing.T) {
	for want, v := range map[string]any{
		`{"Name":"a","Password":"b"}`:    login{Name: "a", Password: "b"},
		`{"Name":"a","Data":"Y2FuYXJ5"}`: key{"a", secret.Bytes(canary)},
		`{"Name":"a","Data":null}`:       key{"a", nil},
	} {
		if got, err := json.Marshal(v); err != nil || string(got) != want {
			t.Errorf("%s, error %v, want %s", got, err, want)
		}
	}
	var l login
	var k key
	first, second := json.Unmarshal([]byte(`{"Name":"a","Password":"b"}`), &l), json.Unmarshal([]byte(`{"Data":"Y2FuYXJ5"}`), &k)
	if first != nil || l.Password != "b" || second != nil || string(k.Data) != canary {
		t.Errorf("read %q and %q", l.Password, string(k.Data))
	}
}
