package provider_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/expect"
)

// Names never change: existing things are found by them.
func TestNameIsGolden(t *testing.T) {
	const id = "3e8b3b0c-0b7d-4f0e-9a57-5a0f0c7f6d11"
	for want, c := range map[string]struct {
		prefix, role string
		tags         provider.Tags
	}{
		"longshore-instance-tcbraic5sxjek42eq43yclzcye":      {"longshore", "instance", of("cf-eu", id, "")},
		"longshore-binding-cenpyktsgtnrou2ugnoj3blxoi":       {"longshore", "binding", of("cf-eu", id, "b-1")},
		"longshore-demo-instance-oh6rcai66rjillpu5pz5wiczc4": {"longshore-demo", "instance", of("ä\x00/", "../x y", "")},
		"longshore-demo-binding-mzuhvlpymk6xo3epygfy5h4oea":  {"longshore-demo", "binding", of("", "", "")},
	} {
		expect.Same(t, "name", want, provider.Name(c.prefix, c.role, c.tags))
		if !regexp.MustCompile(`^[a-z0-9-]{1,63}$`).MatchString(want) {
			t.Errorf("name %q cannot be a host name", want)
		}
		c.tags.Incarnation = "another"
		if again := provider.Name(c.prefix, c.role, c.tags); again == want {
			t.Errorf("two lives have the name %q", again)
		}
	}
}

func of(platform, instance, binding string) provider.Tags {
	return provider.Tags{Platform: platform, Instance: instance, Binding: binding}
}

func TestNamesNeverMeet(t *testing.T) {
	for reason, c := range map[string]struct{ a, b provider.Tags }{
		"ids that read the same when joined": {of("a", "bc", ""), of("ab", "c", "")},
		"also with a binding's":              {of("p", "a", "bc"), of("p", "ab", "c")},
		"an id in another's place":           {of("a", "b", ""), of("a", "", "b")},
		"no character separates":             {of("a-b", "c", ""), of("a", "b-c", "")},
		"not even one that looks like a length": {of("a", "\x00\x00\x00\x00\x00\x00\x00\x01b", ""),
			of("a\x00\x00\x00\x00\x00\x00\x00\x01b", "", "")},
		"two platforms with one id":   {of("a", "i", ""), of("b", "i", "")},
		"letters of another case":     {of("a", "I", ""), of("a", "i", "")},
		"two spellings of one letter": {of("a", "\u00e4", ""), of("a", "a\u0308", "")},
	} {
		if a, b := provider.Name("p", "r", c.a), provider.Name("p", "r", c.b); a == b {
			t.Errorf("%s: both are named %q", reason, a)
		}
	}
	tags := of("a", "I", "")
	if a, b := provider.Name("p", "instance", tags), provider.Name("p", "binding", tags); a == b {
		t.Errorf("two roles are both named %q", a)
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

// No format and no log tells a grant, the user's parameters, or the secret in a provider's input.
func TestGrantsAndRequestsAreRedacted(t *testing.T) {
	const canary = "canary-77aa"
	grant := provider.Grant{
		Credentials:     map[string]any{"password": canary},
		SyslogDrainURL:  "syslog-tls://" + canary,
		RouteServiceURL: "https://" + canary,
		VolumeMounts: []provider.VolumeMount{{Driver: canary,
			Device: provider.VolumeDevice{MountConfig: map[string]any{"key": canary}}}},
		Endpoints: []provider.Endpoint{{Host: canary}},
		ExpiresAt: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	done := provider.Status{Done: true, Percent: 100, Description: "ready", After: time.Second, Grant: &grant}
	in := provider.Instance{Platform: "p", ID: "i", Parameters: []byte(`{"password":"` + canary + `"}`)}
	b := provider.Binding{Instance: in, ID: "b", Secret: []byte(canary), Parameters: in.Parameters}
	state := provider.State{Format: 1, Data: []byte(canary)}
	source, held := provider.Source{State: state}, provider.Holding{State: state}
	status, failure := provider.Status{State: &state}, &provider.Failure{Message: "no", State: &state}
	logged := []any{grant, &grant, done, &done, in, &in, b, &b, state, &state, source, &source, held, status, &status, failure}
	safe := func(format string, v any, text string) {
		t.Helper()
		if text == "" {
			t.Errorf("%s shows nothing of %T at all", format, v)
		}
		expect.Never(t, fmt.Sprintf("%T by %s", v, format), text, canary, fmt.Sprintf("%x", canary),
			fmt.Sprint([]byte(canary)), base64.StdEncoding.EncodeToString([]byte(canary)))
	}
	for _, v := range append(logged, []provider.Grant{grant}, map[string]*provider.Grant{"a": &grant}) {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			safe(format, v, fmt.Sprintf(format, v))
		}
	}
	for _, v := range logged {
		var text, asJSON bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("bound", "what", v)
		slog.New(slog.NewJSONHandler(&asJSON, nil)).Info("bound", "what", v)
		safe("a log as text", v, text.String())
		safe("a log as JSON", v, asJSON.String())
	}
	var none *provider.Grant
	expect.Same(t, "no grant is shown as", "<nil>", fmt.Sprintf("%v", none))
}

func TestFailf(t *testing.T) {
	err := fmt.Errorf("stepping: %w", provider.Failf("no %s of size %d", "volume", 3))
	f, _ := errors.AsType[*provider.Failure](err)
	expect.Same(t, "failure", &provider.Failure{Message: "no volume of size 3"}, f)
	expect.Same(t, "error", "no volume of size 3", f.Error())
}
