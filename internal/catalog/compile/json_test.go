package compile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

func TestLoadHidesTheClientSecret(t *testing.T) {
	const secret = "canary-5b2f"
	client := "dashboard_client:\n  id: [" + secret + "]\n  secret: " + secret + "\n  redirect_ur: " + secret + "\n"
	_, err := load(map[string]string{"a/offering.yaml": sound + client})
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a file's secret must not reach an error: Load(...): %v", err)
	}

	o := expect.Get(load(map[string]string{"a/offering.yaml": sound + "dashboard_client: {id: client, secret: " + secret +
		", redirect_uri: \"https://example.com\"}\n"}))(t).Offerings()[0]
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		expect.Never(t, "formatted by "+verb, fmt.Sprintf(verb, o.DashboardClient)+fmt.Sprintf(verb, o), secret)
	}
}

func TestCatalogJSON(t *testing.T) {
	read := func(name string) string { return string(expect.Get(os.ReadFile("testdata/" + name))(t)) }
	for _, tc := range []struct{ reason, text, want string }{
		{"CAT-27: what is absent is omitted, never null; bindable is always there (CAT-02).",
			spoil(map[int]string{5: "bindable: false\ntags: []\nmetadata: {}", 6: "", 11: "", 12: "", 13: ""}),
			`{"id":"offering-1","name":"one","description":"The first","bindable":false,` +
				`"plans":[{"id":"plan-1","name":"small","description":"The small one"}]}`},
		{"Every member has the specification's name; false is emitted where it overrides (CAT-14 to CAT-16); the " +
			"broker's own stay inside.", read("most.yaml"), read("most.json")},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := expect.Get(load(map[string]string{"a/offering.yaml": tc.text}))(t, tc.reason)
			var want bytes.Buffer
			expect.OK(t, json.Compact(&want, []byte(tc.want)))
			expect.Same(t, tc.reason+"\nJSON", want.String(), string(expect.Get(json.Marshal(c.Offerings()[0]))(t)))
		})
	}
}
