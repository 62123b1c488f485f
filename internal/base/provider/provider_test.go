package provider_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/grants"
	"github.com/longshore/longshore/internal/test/expect"
)

// Names never change: existing things are found by them.
func TestNameIsGolden(t *testing.T) {
	cases := map[string]struct {
		prefix, role string
		tags         provider.Tags
		want         string
	}{
		"Instance": {
			"longshore", "instance",
			provider.Tags{Platform: "cf-eu", Instance: "3e8b3b0c-0b7d-4f0e-9a57-5a0f0c7f6d11"},
			"longshore-instance-tcbraic5sxjek42eq43yclzcye",
		},
		"Binding": {
			"longshore", "binding",
			provider.Tags{Platform: "cf-eu", Instance: "3e8b3b0c-0b7d-4f0e-9a57-5a0f0c7f6d11", Binding: "b-1"},
			"longshore-binding-cenpyktsgtnrou2ugnoj3blxoi",
		},
		"AnyCharacters": {
			"longshore-demo", "instance",
			provider.Tags{Platform: "ä\x00/", Instance: "../x y"},
			"longshore-demo-instance-oh6rcai66rjillpu5pz5wiczc4",
		},
		"Empty": {"longshore-demo", "binding", provider.Tags{}, "longshore-demo-binding-mzuhvlpymk6xo3epygfy5h4oea"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := provider.Name(c.prefix, c.role, c.tags)
			expect.Same(t, "name", c.want, got)
			if !regexp.MustCompile(`^[a-z0-9-]{1,63}$`).MatchString(got) {
				t.Errorf("name %q cannot be a host name", got)
			}
			c.tags.Incarnation = "another"
			if again := provider.Name(c.prefix, c.role, c.tags); again == got {
				t.Errorf("two lives have the name %q", again)
			}
		})
	}
}

func TestNamesNeverMeet(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   provider.Tags
	}{
		"Joined": {"ids that read the same when joined", provider.Tags{Platform: "a", Instance: "bc"},
			provider.Tags{Platform: "ab", Instance: "c"}},
		"JoinedBinding": {"also with a binding's", provider.Tags{Platform: "p", Instance: "a", Binding: "bc"},
			provider.Tags{Platform: "p", Instance: "ab", Binding: "c"}},
		"Shifted": {"an id in another's place", provider.Tags{Platform: "a", Instance: "b"},
			provider.Tags{Platform: "a", Binding: "b"}},
		"Separator": {"no character separates", provider.Tags{Platform: "a-b", Instance: "c"},
			provider.Tags{Platform: "a", Instance: "b-c"}},
		"LengthAsContent": {"not even one that looks like a length",
			provider.Tags{Platform: "a", Instance: "\x00\x00\x00\x00\x00\x00\x00\x01b"},
			provider.Tags{Platform: "a\x00\x00\x00\x00\x00\x00\x00\x01b"}},
		"Platforms": {"two platforms with one id", provider.Tags{Platform: "a", Instance: "i"},
			provider.Tags{Platform: "b", Instance: "i"}},
		"Case": {"letters of another case", provider.Tags{Platform: "a", Instance: "I"},
			provider.Tags{Platform: "a", Instance: "i"}},
		"Unicode": {"two spellings of one letter", provider.Tags{Platform: "a", Instance: "\u00e4"},
			provider.Tags{Platform: "a", Instance: "a\u0308"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if a, b := provider.Name("p", "r", c.a), provider.Name("p", "r", c.b); a == b {
				t.Errorf("%s: both are named %q", c.reason, a)
			}
		})
	}
	if a, b := provider.Name("p", "instance", cases["Case"].a), provider.Name("p", "binding", cases["Case"].a); a == b {
		t.Errorf("two roles are both named %q", a)
	}
}

func TestNameRefusesBadParts(t *testing.T) {
	for _, parts := range [][2]string{{"", "role"}, {"prefix", ""}, {"Prefix", "role"}, {"prefix", "ro/le"}, {"pre fix", "role"},
		{"prefix", "rôle"}} {
		t.Run(fmt.Sprintf("%q", parts), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("a name was made of it")
				}
			}()
			provider.Name(parts[0], parts[1], provider.Tags{})
		})
	}
}

func TestTags(t *testing.T) {
	in := provider.Instance{Platform: "platform", ID: "instance", Incarnation: "creation"}
	b := provider.Binding{Instance: in, ID: "binding", Incarnation: "bind"}
	want := provider.Tags{Platform: "platform", Instance: "instance", Incarnation: "creation"}
	expect.Same(t, "tags of an instance", want, provider.TagsOf(in))
	whole := provider.Tags{Platform: "platform", Instance: "instance", Binding: "binding", Incarnation: "bind", Of: "creation"}
	expect.Same(t, "tags of a binding", whole, provider.BindingTagsOf(b))

	expect.Same(t, "tags of a binding's instance", provider.TagsOf(in), whole.OfInstance())
	expect.Same(t, "tags of an instance's instance", provider.TagsOf(in), provider.TagsOf(in).OfInstance())
}

func TestGrantIsRedacted(t *testing.T) {
	const canary = "canary-of-a-grant"
	grant := provider.Grant{
		Credentials:     map[string]any{"password": canary},
		SyslogDrainURL:  "syslog-tls://" + canary,
		RouteServiceURL: "https://" + canary,
		VolumeMounts: []grants.VolumeMount{{Driver: canary,
			Device: grants.VolumeDevice{MountConfig: map[string]any{"key": canary}}}},
		Endpoints: []grants.Endpoint{{Host: canary}},
		ExpiresAt: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	status := provider.Status{Done: true, Percent: 100, Description: "ready", After: time.Second, Grant: &grant}
	shown := map[string]any{
		"Value":         grant,
		"Pointer":       &grant,
		"Slice":         []provider.Grant{grant},
		"Map":           map[string]*provider.Grant{"a": &grant},
		"Status":        status,
		"StatusPointer": &status,
	}
	for name, v := range shown {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			t.Run(name+"/"+format, func(t *testing.T) { safe(t, canary, fmt.Sprintf(format, v)) })
		}
	}
	for _, name := range []string{"Value", "Pointer", "Status", "StatusPointer"} {
		for kind, handler := range map[string]func(*bytes.Buffer) slog.Handler{
			"Text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			"JSON": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				var out bytes.Buffer
				slog.New(handler(&out)).Info("bound", "what", shown[name])
				safe(t, canary, out.String())
			})
		}
	}
	var none *provider.Grant
	expect.Same(t, "no grant is shown as", "<nil>", fmt.Sprintf("%v", none))
}

// safe requires that the canary is in text in none of its forms.
func safe(t *testing.T, canary, text string) {
	t.Helper()
	if text == "" {
		t.Error("nothing is shown at all")
	}
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%v", []byte(canary))} {
		if strings.Contains(text, form) {
			t.Errorf("a grant is told: %s", text)
		}
	}
}

// No format prints the user's parameters or the secret in a provider's input.
func TestRequestsAreRedacted(t *testing.T) {
	const canary = "canary-77aa"
	in := provider.Instance{Platform: "p", ID: "i", Parameters: []byte(`{"password":"` + canary + `"}`)}
	b := provider.Binding{Instance: in, ID: "b", Secret: []byte(canary), Parameters: in.Parameters}
	var out bytes.Buffer
	state := provider.State{Format: 1, Data: []byte(canary)}
	source, held := provider.Source{State: state}, provider.Holding{State: state}
	status, failure := provider.Status{State: &state}, &provider.Failure{State: &state}
	for _, v := range []any{in, &in, b, &b, state, &state, source, &source, held, status, &status, failure} {
		_, _ = fmt.Fprintf(&out, "%v %+v %#v %s\n", v, v, v, v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
	}
	safe(t, canary, out.String())
	safe(t, base64.StdEncoding.EncodeToString([]byte(canary)), out.String())
	if strings.Contains(out.String(), fmt.Sprint([]byte(canary))) {
		t.Errorf("printed a secret:\n%s", out.String())
	}
}

func TestFailf(t *testing.T) {
	err := fmt.Errorf("stepping: %w", provider.Failf("no %s of size %d", "volume", 3))
	f, ok := errors.AsType[*provider.Failure](err)
	if !ok {
		t.Fatalf("%v is no failure", err)
	}
	expect.Same(t, "failure", &provider.Failure{Message: "no volume of size 3"}, f)
	expect.Same(t, "error", f.Message, f.Error())
}
