package compile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/test/expect"
)

// A member of the offering holds for each plan that does not say otherwise.
func TestShared(t *testing.T) {
	c := expect.Get(load(map[string]string{"a/offering.yaml": spoil(map[int]string{
		5: "bindable: true\nfree: false\nmaintenance_info: {version: 1.0.0, description: d}\n" +
			"settings:\n  size: {min: 1, max: 2}\n  note: x",
		13: "  description: The large one\n  free: true\n  maintenance_info: {version: 2.0.0}\n" +
			"  settings: {size: {max: 9}, note: ~, more: ~}",
	})}))(t)
	_, small, _ := c.Plan("offering-1", "plan-1")
	_, large, _ := c.Plan("offering-1", "plan-2")
	if *small.Free || !*large.Free || small.MaintenanceInfo.Version != "1.0.0" || large.MaintenanceInfo.Version != "2.0.0" ||
		large.MaintenanceInfo.Description != "d" {
		t.Errorf("small %+v\nlarge %+v", small, large)
	}
	expect.Same(t, "settings", []map[string]any{
		{"size": map[string]any{"min": 1.0, "max": 2.0}, "note": "x"},
		{"size": map[string]any{"min": 1.0, "max": 9.0}, "more": nil},
	}, []map[string]any{small.Settings, large.Settings})
}

// A problem of what plans share has the line where it stands, and is told once.
func TestSharedProblems(t *testing.T) {
	text := spoil(map[int]string{5: "bindable: true\nsettings:\n  size: {min: 1}\nasynchronous: alowed",
		13: "  description: The large one\n  settings:\n    size: {max: 9}"})
	o := judgedBy(func(p check.Plan) (json.RawMessage, error) {
		if p.Plan == "large" {
			return nil, advice.For("size.max", "is too much", "write 3")
		}
		return nil, advice.For("size.min", "is too small", "write 2")
	})
	_, err := compile.Load(o, mine(text))
	refuses(t, "Schema", err, found{"mine/a/offering.yaml", 8, "asynchronous must be"})
	_, err = compile.Load(o, mine(strings.Replace(text, "alowed", "allowed", 1)))
	refuses(t, "Provider", err, found{"mine/a/offering.yaml", 7, "settings.size.min is too small"},
		found{"mine/a/offering.yaml", 18, "plans[1].settings.size.max is too much"})
}

// A plan's version stands for the files that it was locked with. They are locked anew
// under another version, and never under the same.
func TestLock(t *testing.T) {
	digest := "one"
	o := judgedBy(func(p check.Plan) (json.RawMessage, error) { return nil, p.Lock(digest) })
	files := map[string]string{"a/offering.yaml": small("maintenance_info: {version: 1.0.0}")}
	source := func() compile.Source { return compile.Source{Name: "mine", FS: folder(files)} }
	judge := func() error { return expect.Err(compile.Load(o, source())) }
	lock := func() {
		t.Helper()
		locks, err := compile.Lock(o, source())
		if err != nil || len(locks) != 1 {
			t.Fatalf("locks %v: %v", locks, err)
		}
		for name, text := range locks {
			files[name] = string(text)
		}
	}
	const file, still = "mine/a/offering.yaml", "still has the version 1.0.0"
	refuses(t, "no lock", judge(), found{file, 11, "has the version 1.0.0, which offering.lock does not have"})
	lock()
	const want = "{\n  \"plan-1\": {\n    \"version\": \"1.0.0\",\n    \"digest\": \"one\"\n  }\n}\n"
	expect.Same(t, "the lock", want, files["a/offering.lock"])
	expect.OK(t, judge(), "locked")
	lock()

	digest = "two"
	refuses(t, "changed", judge(), found{file, 11, still})
	refuses(t, "locked again", expect.Err(compile.Lock(o, source())), found{file, 11, still})

	files["a/offering.yaml"] = strings.Replace(files["a/offering.yaml"], "1.0.0", "1.1.0", 1)
	refuses(t, "raised", judge(), found{file, 11, "has the version 1.1.0, which offering.lock does not have"})
	lock()
	expect.OK(t, judge(), "locked anew")

	files["a/offering.lock"] = "<<<<<<< HEAD"
	refuses(t, "conflict", judge(), found{"mine/a/offering.lock", 0, "cannot be read"})
}

// Where the provider says what users may set, a plan has no schemas of its own, and those
// that follow are what platforms are shown.
func TestDescribed(t *testing.T) {
	o := judgedBy(func(p check.Plan) (json.RawMessage, error) {
		p.Describe(check.Parameters{Required: []string{"a"}, Fixed: []string{"a"},
			Properties: map[string]any{"a": map[string]any{"type": "string"}, "b": map[string]any{"type": "integer"}}})
		return nil, nil
	})
	_, p, _ := expect.Get(compile.Load(o, mine(sound)))(t).Plan("offering-1", "plan-1")
	const begins = `{"parameters":{"$schema":"http://json-schema.org/draft-04/schema#","additionalProperties":false,"properties":`
	const ends = `"type":"object"}}`
	const want = `{"service_instance":{"create":` + begins + `{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"],` +
		ends + `,"update":` + begins + `{"b":{"type":"integer"}},` + ends + `},"service_binding":{"create":` + begins + `{},` +
		ends + `}}`
	expect.Same(t, "schemas", want, string(expect.Get(json.Marshal(p.Schemas))(t)))
	_, err := compile.Load(o, mine(withSchema(draft, "type: object")))
	refuses(t, "schemas of its own", err,
		found{"mine/a/offering.yaml", 11, "plans[0].schemas says what users may set, which follows"})
}
