package compile_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/test/expect"
)

// A member of the offering holds for each plan that does not say otherwise.
func TestShared(t *testing.T) {
	c, err := load(map[string]string{"a/offering.yaml": spoil(map[int]string{
		5: "bindable: true\nfree: false\nmaintenance_info: {version: 1.0.0, description: d}\n" +
			"settings:\n  size: {min: 1, max: 2}\n  note: x",
		10: "  description: The small one",
		13: "  description: The large one\n  free: true\n  maintenance_info: {version: 2.0.0}\n" +
			"  settings: {size: {max: 9}, note: ~, more: ~}",
	})})
	expect.OK(t, err)
	_, small, _ := c.Plan("offering-1", "plan-1")
	_, large, _ := c.Plan("offering-1", "plan-2")
	if *small.Free || !*large.Free || small.MaintenanceInfo.Version != "1.0.0" || large.MaintenanceInfo.Version != "2.0.0" ||
		large.MaintenanceInfo.Description != "d" {
		t.Errorf("small %+v\nlarge %+v", small, large)
	}
	want := []map[string]any{
		{"size": map[string]any{"min": 1.0, "max": 2.0}, "note": "x"},
		{"size": map[string]any{"min": 1.0, "max": 9.0}, "more": nil},
	}
	expect.Same(t, "settings", want, []map[string]any{small.Settings, large.Settings})
}

// A problem of what plans share has the line where it stands, and is told once.
func TestSharedProblems(t *testing.T) {
	text := spoil(map[int]string{
		5:  "bindable: true\nsettings:\n  size: {min: 1}\nasynchronous: alowed",
		13: "  description: The large one\n  settings:\n    size: {max: 9}",
	})
	judge := func(p check.Plan) (json.RawMessage, error) {
		if p.Plan == "large" {
			return nil, advice.For("size.max", "is too much", "write 3")
		}
		return nil, advice.For("size.min", "is too small", "write 2")
	}
	o := compile.Options{Providers: map[string]check.Func{"demo": judge}}
	source := func(text string) compile.Source {
		return compile.Source{Name: "mine", FS: folder(map[string]string{"a/offering.yaml": text})}
	}
	for about, c := range map[string]struct {
		text string
		want []found
	}{
		"Schema": {text, []found{{"mine/a/offering.yaml", 8, "asynchronous must be"}}},
		"Provider": {strings.Replace(text, "alowed", "allowed", 1), []found{
			{"mine/a/offering.yaml", 7, "settings.size.min is too small"},
			{"mine/a/offering.yaml", 18, "plans[1].settings.size.max is too much"}}},
	} {
		_, err := compile.Load(o, source(c.text))
		expect.Same(t, about, c.want, problemsOf(t, about, err, c.want))
	}
}

// A plan's version stands for the files that it was locked with. They are locked anew
// under another version, and never under the same.
func TestLock(t *testing.T) {
	digest := "one"
	judge := func(p check.Plan) (json.RawMessage, error) { return nil, p.Lock(digest) }
	o := compile.Options{Providers: map[string]check.Func{"demo": judge}}
	files := map[string]string{
		"a/offering.yaml": spoil(map[int]string{10: "  description: The small one\n  maintenance_info: {version: 1.0.0}"}),
	}
	mine := func() compile.Source { return compile.Source{Name: "mine", FS: folder(files)} }
	refused := func(about string, err error, file string, line int, says string) {
		t.Helper()
		want := []found{{file, line, says}}
		expect.Same(t, about, want, problemsOf(t, about, err, want))
	}
	_, err := compile.Load(o, mine())
	refused("no lock", err, "mine/a/offering.yaml", 11, "has the version 1.0.0, which offering.lock does not have")

	lock := func() {
		t.Helper()
		locks, err := compile.Lock(o, mine())
		if err != nil || len(locks) != 1 {
			t.Fatalf("locks %v: %v", locks, err)
		}
		for name, text := range locks {
			files[name] = string(text)
		}
	}
	lock()
	const want = "{\n  \"plan-1\": {\n    \"version\": \"1.0.0\",\n    \"digest\": \"one\"\n  }\n}\n"
	expect.Same(t, "the lock", want, files["a/offering.lock"])
	if _, err := compile.Load(o, mine()); err != nil {
		t.Errorf("locked: %v", err)
	}
	lock()

	digest = "two"
	_, err = compile.Load(o, mine())
	refused("changed", err, "mine/a/offering.yaml", 11, "still has the version 1.0.0")
	_, err = compile.Lock(o, mine())
	refused("locked again", err, "mine/a/offering.yaml", 11, "still has the version 1.0.0")

	files["a/offering.yaml"] = strings.Replace(files["a/offering.yaml"], "1.0.0", "1.1.0", 1)
	_, err = compile.Load(o, mine())
	refused("raised", err, "mine/a/offering.yaml", 11, "has the version 1.1.0, which offering.lock does not have")
	lock()
	if _, err := compile.Load(o, mine()); err != nil {
		t.Errorf("locked anew: %v", err)
	}

	files["a/offering.lock"] = "<<<<<<< HEAD"
	_, err = compile.Load(o, mine())
	refused("conflict", err, "mine/a/offering.lock", 0, "cannot be read")
}

// Where the provider says what users may set, a plan has no schemas of its own, and those
// that follow are what platforms are shown.
func TestDescribed(t *testing.T) {
	judge := func(p check.Plan) (json.RawMessage, error) {
		p.Describe(check.Parameters{
			Properties: map[string]any{"a": map[string]any{"type": "string"}, "b": map[string]any{"type": "integer"}},
			Required:   []string{"a"}, Fixed: []string{"a"},
		})
		return nil, nil
	}
	o := compile.Options{Providers: map[string]check.Func{"demo": judge}}
	c, err := compile.Load(o, compile.Source{Name: "mine", FS: fstest.MapFS{"a/offering.yaml": {Data: []byte(sound)}}})
	expect.OK(t, err)
	_, p, _ := c.Plan("offering-1", "plan-1")
	got, err := json.Marshal(p.Schemas)
	expect.OK(t, err)
	const begins = `{"parameters":{"$schema":"http://json-schema.org/draft-04/schema#","additionalProperties":false,"properties":`
	const ends = `"type":"object"}}`
	const want = `{"service_instance":{"create":` + begins + `{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"],` +
		ends +
		`,"update":` + begins + `{"b":{"type":"integer"}},` + ends +
		`},"service_binding":{"create":` + begins + `{},` + ends + `}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	own := folder(map[string]string{"a/offering.yaml": withSchema(draft, "type: object")})
	_, err = compile.Load(o, compile.Source{Name: "mine", FS: own})
	wrong := []found{{"mine/a/offering.yaml", 11, "plans[0].schemas says what users may set, which follows"}}
	if diff := cmp.Diff(wrong, problemsOf(t, "schemas of its own", err, wrong)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
