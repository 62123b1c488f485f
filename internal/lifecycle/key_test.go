package lifecycle_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

const (
	operationID = "0123456789-_abcdefGHIJ"
	unreserved  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
	// longestID is the longest identifier that paths may have (INP-13).
	longestID = 800
	// longestToken is the longest that platforms must take (PROV-25).
	longestToken = 10_000
)

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func TestKeys(t *testing.T) {
	expect.Same(t, "the instance of a binding", instanceKey, bindingKey.InstanceKey())
	expect.Same(t, "the instance of an instance", instanceKey, instanceKey.InstanceKey())
	other := lifecycle.Key{Platform: "platform", Instance: "instance", Binding: "other"}
	expect.Same(t, "another binding of the same instance", other, bindingKey.BindingKey("other"))
	if former := bindingKey.Former("x"); former.Current() != bindingKey || former.InstanceKey() != instanceKey {
		t.Errorf("what has the id of a former life now is %+v, of the instance %+v", former.Current(), former.InstanceKey())
	}
	holds(t, bindingKey.IsBinding() && !instanceKey.IsBinding(), "a binding is taken for an instance, or the other way round")
}

func TestTokens(t *testing.T) {
	tests := map[string]struct {
		reason string
		key    lifecycle.Key
	}{
		"Instance": {"ids of an ordinary platform", lifecycle.Key{Platform: "default", Instance: "7d2a3f7e-6f3c-4a57-9f5c-8c1f3f1d2b11"}},
		"Binding":  {"a binding's has one part more", bindingKey},
		"Former":   {"a former life's has its incarnation", bindingKey.Former(operationID)},
		"OfAll":    {"and of an instance no binding", instanceKey.Former(operationID)},
		"Dots":     {"what parts a token may be in an id", lifecycle.Key{Platform: "p.q", Instance: "..", Binding: "."}},
		"Paths":    {"INP-11: so may what parts a URL", lifecycle.Key{Platform: "p#1", Instance: "a/b?c#d%2F&e=f", Binding: "../../etc"}},
		"Text":     {"ids may be in any language", lifecycle.Key{Platform: "ä", Instance: "日本語\u2028🚢", Binding: "\u0000\t\n\"\\"}},
		"Base64":   {"an id may look like a part", lifecycle.Key{Platform: b64("p"), Instance: operationID, Binding: b64("b")}},
		"Long": {"the longest ids",
			lifecycle.Key{Platform: "p", Instance: strings.Repeat("i", longestID), Binding: strings.Repeat("b", longestID)}},
		"LongText": {"the longest ids, in wide characters",
			lifecycle.Key{Platform: strings.Repeat("ä", 100), Instance: strings.Repeat("🚢", longestID/4),
				Binding: strings.Repeat("日", longestID/3)}},
	}
	seen := map[string]string{}
	for name, tc := range tests {
		token := lifecycle.Token{Operation: operationID, Key: tc.key}
		text := token.String()
		holds(t, strings.Trim(text, unreserved) == "" && text != "" && len(text) <= longestToken, "PROV-25: "+tc.reason, text)
		same(t, tc.reason, token, expect.Get(lifecycle.ParseToken(text))(t, tc.reason))
		if other, ok := seen[text]; ok {
			t.Errorf("the token of %s is that of %s, too", name, other)
		}
		seen[text] = name
	}
}

// Keys that read the same when their parts are joined have other tokens.
func TestTokensDoNotMeet(t *testing.T) {
	seen := map[string]lifecycle.Key{}
	for _, key := range []lifecycle.Key{
		{Platform: "a", Instance: "bc"}, {Platform: "ab", Instance: "c"}, {Platform: "a", Instance: "b", Binding: "c"},
		{Platform: "a.b", Instance: "c"}, {Platform: "a", Instance: "b.c"}, {Platform: "abc", Instance: "d"}, {Platform: "ab", Instance: "cd"},
		{Platform: "a", Instance: "b", Life: "c"}, {Platform: "a", Instance: "b", Binding: "c", Life: "d"},
	} {
		text := lifecycle.Token{Operation: operationID, Key: key}.String()
		if other, ok := seen[text]; ok {
			t.Errorf("%+v and %+v have the token %q", key, other, text)
		}
		seen[text] = key
	}
}

// LOP-08: whatever a platform sends is a token of this broker, or it is not;
// what is none is an error, and the caller's business.
func TestWhatIsNoToken(t *testing.T) {
	good := lifecycle.Token{Operation: operationID, Key: bindingKey}.String()
	for reason, text := range map[string]string{
		"nothing":                               "",
		"a literal that checkers send":          "provision",
		"dots":                                  "...",
		"an operation alone":                    operationID,
		"no instance":                           operationID + "." + b64("p"),
		"an empty platform":                     operationID + ".." + b64("i"),
		"an empty instance":                     operationID + "." + b64("p") + ".",
		"an empty binding":                      operationID + "." + b64("p") + "." + b64("i") + ".",
		"a part too many":                       good + "." + b64("x") + "." + b64("y"),
		"an empty life":                         good + ".",
		"an empty life of an instance":          operationID + "." + b64("p") + "." + b64("i") + "..",
		"an id that is too short":               good[1:],
		"an id that is too long":                "A" + good,
		"an id that no operation has":           strings.Repeat("%", 22) + good[22:],
		"an id with a slash in it":              "0123456789/_abcdefGHIJ" + good[22:],
		"an id that is no text":                 strings.Repeat("\xff", 22) + good[22:],
		"a part that is not base64":             operationID + ".!." + b64("i"),
		"base64 with padding":                   operationID + "." + b64("p") + "==." + b64("i"),
		"base64 of the other alphabet":          operationID + ".//__." + b64("i"),
		"base64 with bits that mean nothing":    operationID + ".cB." + b64("i"),
		"base64 with a line break in it":        operationID + ".cA\r\n." + b64("i"),
		"an instance that is no text":           operationID + "." + b64("p") + "." + b64("\xff"),
		"a platform that is no text":            operationID + "." + b64("\xc3\x28") + "." + b64("i"),
		"a binding that is no text":             operationID + "." + b64("p") + "." + b64("i") + "." + b64("\xed\xa0\x80"),
		"a space before it":                     " " + good,
		"a line break after it":                 good + "\n",
		"a token that is percent-encoded again": strings.ReplaceAll(good, ".", "%2E"),
	} {
		if got, err := lifecycle.ParseToken(text); err == nil || got != (lifecycle.Token{}) {
			t.Errorf("%s: %q was read as %+v, error %v", reason, text, got, err)
		} else if len(text) > 3 && strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error repeats what was sent: %v", reason, err)
		}
	}
}

// A token that parses prints as the same text, and a record could hold its key.
func FuzzParseToken(f *testing.F) {
	f.Add(lifecycle.Token{Operation: operationID, Key: bindingKey}.String())
	f.Add(lifecycle.Token{Operation: strings.Repeat("A", 22), Key: instanceKey}.String())
	f.Add(operationID + ".cA\r.aQ")
	f.Add(strings.Repeat("\xff", 22) + ".cA.aQ")
	f.Add("....")
	f.Fuzz(func(t *testing.T, s string) {
		token, err := lifecycle.ParseToken(s)
		if err != nil {
			return
		}
		expect.Same(t, "what the token reads as", s, token.String())
		if strings.Trim(s, unreserved) != "" {
			t.Errorf("%q has characters that no token has", s)
		}
		k := token.Key
		if k.Platform == "" || k.Instance == "" || strings.ToValidUTF8(k.Platform+k.Instance+k.Binding, "") != k.Platform+k.Instance+k.Binding {
			t.Errorf("%q reads as the key %+v", s, k)
		}
	})
}
