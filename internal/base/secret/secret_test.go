package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/secret"
	"github.com/longshore/longshore/internal/test/expect"
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

// hidden requires that no form of the canary is there.
func hidden(t *testing.T, what, text string) {
	t.Helper()
	expect.Never(t, what, text, canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), fmt.Sprint([]byte(canary)),
		"Y2FuYXJ5")
}

func TestNoVerbShowsASecret(t *testing.T) {
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%T %[1]v"} {
			if strings.HasPrefix(name, "Member") && !strings.HasSuffix(verb, "v") {
				continue // package fmt shows what no verb fits: a Holder is needed
			}
			hidden(t, name+" by "+verb, fmt.Sprintf(verb, v))
		}
		hidden(t, name, fmt.Sprint(v)+fmt.Errorf("with %v", v).Error())
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
		hidden(t, name, out.String())
	}
}

// The stored JSON is the same as without this package.
func TestJSONIsTheValues(t *testing.T) {
	for want, v := range map[string]any{
		`{"Name":"a","Password":"b"}`:    login{Name: "a", Password: "b"},
		`{"Name":"a","Data":"Y2FuYXJ5"}`: key{"a", secret.Bytes(canary)},
		`{"Name":"a","Data":null}`:       key{"a", nil},
	} {
		expect.Same(t, "the JSON", want, string(expect.Get(json.Marshal(v))(t)))
	}
	var l login
	var k key
	expect.OK(t, json.Unmarshal([]byte(`{"Name":"a","Password":"b"}`), &l))
	expect.OK(t, json.Unmarshal([]byte(`{"Data":"Y2FuYXJ5"}`), &k))
	expect.Same(t, "what was read", []string{"b", canary}, []string{l.Password, string(k.Data)})
}
